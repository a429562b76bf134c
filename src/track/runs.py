"""One MLflow run: opened when the device is ready, closed with what its directory holds.

Called by run.py and ingest.py. FINISHED is written last, when metrics and artifacts are in. When
the store fails on the way, the run directory stays in (or goes back to) `pending`.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import StoreError
from ..schema import Spec
from ..workload_rules import experiment_of
from . import artifacts, comparing, facts, names, notes, redact
from .connect import experiment_id, experiment_name, is_unreachable, patiently
from .outcome import Outcome
from .store import Store, refuse_simulated

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

log = logging.getLogger(__name__)

METRICS_PER_BATCH = 1000  # what a server takes in one request
OTHERS_PER_BATCH = 100
REFUSALS = (400, 413, 422)


@dataclass(frozen=True)
class Run:
    """An open run; everything about it goes through its id."""

    client: MlflowClient
    store: Store
    directory: Path
    run_id: str
    experiment_id: str
    experiment: str
    name: str
    artifact_uri: str
    simulated: bool
    strict_names: bool

    @property
    def link(self) -> str:
        """The run's page: on the server, or the path that `mlflow ui` shows it under."""
        page = f"#/experiments/{self.experiment_id}/runs/{self.run_id}"
        web = self.store.shown_uri.startswith(("http://", "https://"))
        return f"{self.store.shown_uri}/{page}" if web else f"http://127.0.0.1:5000/{page}"


def open_run(
    client: MlflowClient,
    store: Store,
    spec: Spec,
    ready: Mapping[str, Any],
    directory: Path,
    more_tags: Mapping[str, str] | None = None,
) -> Run:
    """Start a RUNNING run with its parameters and tags; `ready` is what the child said.

    Raises UserError for a simulated run on its way to a server, StoreError when the store fails.
    """
    device = str(ready.get("device") or "unknown")
    simulated = device == "simulated"
    tracking = spec.config.tracking
    if simulated:
        refuse_simulated(store, tracking.allow_simulated)
    experiment = experiment_name(tracking.experiment, experiment_of(spec.config), simulated)
    found_id = experiment_id(client, store, experiment)
    name = redact.text(facts.run_name(spec, simulated))
    tags = facts.tags(spec, ready, str(directory)) | facts.as_tags(more_tags or {})
    first = dict(list(tags.items())[:OTHERS_PER_BATCH])
    # The process tags come with the run itself: from its first moment the janitor can judge it.
    first |= {key: tags[key] for key in (facts.PID, facts.MACHINE, facts.STARTED)}
    made = patiently(store, lambda: client.create_run(found_id, tags=first, run_name=name))
    run = Run(
        client=client,
        store=store,
        directory=directory,
        run_id=made.info.run_id,
        experiment_id=found_id,
        experiment=experiment,
        name=name,
        artifact_uri=made.info.artifact_uri,
        simulated=simulated,
        strict_names=tracking.strict_names,
    )
    try:
        _log_params_and_tags(run, facts.params(spec, device), tags)
    except BaseException as error:
        with contextlib.suppress(Exception):
            _end(run, "FAILED", {"error": f"its parameters could not be written: {error}"})
        raise
    return run


def _log_params_and_tags(run: Run, params: Mapping[str, str], tags: Mapping[str, str]) -> None:
    from mlflow.entities import RunTag

    items: list[Any] = [_param(name, value) for name, value in params.items()]
    for some in _chunks(items, OTHERS_PER_BATCH):
        _log_batch(run, params=some)
    items = [RunTag(name, value) for name, value in tags.items()]
    for some in _chunks(items[OTHERS_PER_BATCH:], OTHERS_PER_BATCH):
        _log_batch(run, tags=some)


def close_run(run: Run, outcome: Outcome) -> str:
    """Track the finished directory and close the run; returns where its files are now.

    Headline metrics go in only when the measurement is whole. Raises StoreError when the store
    fails, and then the directory is where it was and the message says how to send it later.
    """
    kept: artifacts.Kept | None = None
    try:
        tags = _log_metrics(run, outcome) | outcome.tags()
        tags |= comparing.tags(run.directory, outcome.summary)
        _set_tags(run, tags)
        _log_batch(run, params=[_param(facts.SOURCE, tags[facts.SOURCE])])
        begun = time.perf_counter()
        kept = artifacts.keep(run.client, run.store, run.run_id, run.artifact_uri, run.directory)
        if outcome.metrics:  # a failed run has none
            spent_us = (time.perf_counter() - begun) * 1e6
            _log_batch(run, metrics=[_metric("phase/upload_us", spent_us)])
        _end(run, outcome.status, {})
    except BaseException as error:
        if kept is not None:
            kept.undo()
        _give_up(run, error)
        notes.update(run.directory, process=None)  # free for ingest
        if isinstance(error, StoreError):
            raise StoreError(
                f"{error}\nThe run directory is kept; send it later with: "
                f"python -m src.ingest {run.directory}"
            ) from error
        raise
    kept.settle()
    return kept.where


def unwritten(run: Run | None, directory: Path, failure: OSError) -> StoreError:
    """Close a run whose directory could not be completed, and return what to raise for it."""
    error = StoreError(
        f"{directory}: {failure.strerror or failure} while the report was written. What was "
        "measured is kept there; make room, then send it with: "
        f"python -m src.ingest {directory}"
    )
    if run is not None:
        _give_up(run, error)
    return error


def withdraw(run: Run) -> None:
    """Take back an open run whose request turned out to be refused: it measured nothing."""
    _end(run, "FAILED", {"error": "refused before anything was measured"})
    patiently(run.store, lambda: run.client.delete_run(run.run_id))


def _metric(name: str, value: float) -> Any:
    from mlflow.entities import Metric

    return Metric(name, value, int(time.time() * 1000), 0)


def _param(name: str, value: str) -> Any:
    from mlflow.entities import Param

    return Param(name, value)


def _give_up(run: Run, error: BaseException) -> None:
    """Close a run whose directory could not be tracked, if the store answers at all.

    One that does not would cost minutes more; the janitor closes the run later.
    """
    if isinstance(error, StoreError) and is_unreachable(error):
        return
    status = "FAILED" if isinstance(error, Exception) else "KILLED"
    reason = f"not tracked in full ({error or type(error).__name__}); kept in {run.directory}"
    with contextlib.suppress(Exception):
        _end(run, status, {"error": reason})


def _end(run: Run, status: str, tags: Mapping[str, Any]) -> None:
    if tags:
        _set_tags(run, tags)
    patiently(run.store, lambda: run.client.set_terminated(run.run_id, status))


def _set_tags(run: Run, tags: Mapping[str, Any]) -> None:
    from mlflow.entities import RunTag

    items = [RunTag(name, value) for name, value in facts.as_tags(tags).items()]
    for some in _chunks(items, OTHERS_PER_BATCH):
        _log_batch(run, tags=some)


def _log_metrics(run: Run, outcome: Outcome) -> dict[str, str]:
    """Send the metrics in batches; returns tags that say what could not be sent."""
    from mlflow.entities import Metric

    finite = {name: value for name, value in outcome.metrics.items() if math.isfinite(value)}
    keys = names.keys_of(finite, run.strict_names)
    now_ms = int(time.time() * 1000)
    items = [Metric(keys[name], float(value), now_ms, 0) for name, value in finite.items()]
    refused: list[str] = []
    for some in _chunks(items, METRICS_PER_BATCH):
        refused += _log_batch(run, metrics=some)
    tags = {}
    if dropped := len(outcome.metrics) - len(finite):
        tags["dropped_nonfinite"] = str(dropped)
    if refused:
        tags["refused_names"] = ", ".join(refused)
    return tags


def _log_batch(run: Run, **items: list[Any]) -> list[str]:
    """Send one batch; one that is refused goes entry by entry. Returns the keys left out."""
    try:
        _send(run, items)
    except StoreError as error:
        if not _is_refusal(error):
            raise
    else:
        return []
    refused: list[str] = []
    for kind, entries in items.items():
        for entry in entries:
            try:
                _send(run, {kind: [entry]})
            except StoreError as error:
                if not _is_refusal(error):
                    raise
                refused.append(entry.key)
                hint = " Try tracking.strict_names=true." if ":" in entry.key else ""
                log.warning("The store refuses '%s': %s%s", entry.key, error, hint)
    return refused


def _send(run: Run, items: Mapping[str, list[Any]]) -> None:
    patiently(run.store, lambda: run.client.log_batch(run.run_id, synchronous=True, **items))


def _is_refusal(error: StoreError) -> bool:
    """Did the store understand and say no, so that single entries may still pass?"""
    status = getattr(error.__cause__, "get_http_status_code", None)
    return status is not None and status() in REFUSALS


def _chunks(items: list[Any], size: int) -> list[list[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]

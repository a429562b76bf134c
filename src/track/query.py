"""Reads runs from the store for a comparison: one search, no artifacts.

Called by compare.py and summary_run.py. Never writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..analyze.measured import Measured
from ..errors import StoreError, UserError, nearest
from .connect import patiently
from .store import Store

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

MOST_RUNS = 1000  # what a server gives at once; MLflow's own compare page gives up at 100
PROFILES = "tags.kind = 'profile'"


def search(
    client: MlflowClient,
    store: Store,
    filter_string: str = "",
    *,
    experiment: str | None = None,
    most: int = MOST_RUNS,
) -> list[Measured]:
    """Return the profile runs that an MLflow filter finds, the newest first.

    Raises UserError for an unknown experiment and for a filter that MLflow does not take.
    """
    ids = _experiments(client, store, experiment)
    if not ids:
        return []
    query = f"{PROFILES} and {filter_string}" if filter_string.strip() else PROFILES
    try:
        found = patiently(
            store,
            lambda: client.search_runs(
                ids, query, max_results=most, order_by=["attributes.start_time DESC"]
            ),
        )
    except StoreError as error:
        if not is_refused(error):
            raise
        raise UserError(
            f"--filter {filter_string!r}: MLflow does not take this filter "
            f"({_first_line(error)}). Type for example --filter \"params.variant = 'fused'\"."
        ) from None
    return [measured(run) for run in found]


def by_ids(client: MlflowClient, store: Store, run_ids: Sequence[str]) -> list[Measured]:
    """Return the runs with these ids, in this order; a unique beginning of an id is enough.

    Raises UserError for an id that no profile run has.
    """
    wanted = list(dict.fromkeys(run_ids))
    for typed in wanted:
        if not typed.isalnum() or not typed.isascii():
            raise UserError(f"{typed!r}: not the id of a run. Ids look like 0123abcd...: {_WHERE}")
    whole = all(len(typed) == 32 for typed in wanted)
    listed = ", ".join(f"'{typed}'" for typed in wanted)
    found = search(client, store, f"attributes.run_id IN ({listed})" if whole else "")
    return [_only(typed, found, store) for typed in wanted]


_WHERE = "a run prints its id at its end, and its page in MLflow shows it."


def _only(typed: str, runs: Sequence[Measured], store: Store) -> Measured:
    matching = [run for run in runs if run.run_id.startswith(typed)]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise UserError(
            f"{typed}: {store.shown_uri} has no profile run of that id. Type another: {_WHERE}"
        )
    examples = " or ".join(run.run_id[: len(typed) + 4] for run in matching[:2])
    raise UserError(f"{typed}: {len(matching)} runs begin so. Type more of it: {examples}.")


def _experiments(client: MlflowClient, store: Store, name: str | None) -> list[str]:
    known = patiently(store, lambda: client.search_experiments(max_results=MOST_RUNS))
    if name is None:
        return [str(experiment.experiment_id) for experiment in known]
    for experiment in known:
        if name in (experiment.name, str(experiment.experiment_id)):
            return [str(experiment.experiment_id)]
    names = [str(experiment.name) for experiment in known]
    close = nearest(name, names) or (names[0] if names else None)
    instead = f"Type --experiment {close!r}." if close else "There is none yet: run something."
    raise UserError(
        f"--experiment {name!r}: no such experiment in {store.shown_uri} "
        f"(it has: {', '.join(names[:8])}). {instead}"
    )


def newest_scope(runs: Sequence[Measured]) -> tuple[str, list[Measured]]:
    """The newest sweep, or the newest run when it is in none: in words, and the runs."""
    if not runs:
        return "", []
    newest = max(runs, key=lambda run: run.started_ms)
    if newest.sweep is None:
        return f"the newest run, {newest.run_id}", [newest]
    return f"the newest sweep, {newest.sweep}", [run for run in runs if run.sweep == newest.sweep]


def measured(run: Any) -> Measured:
    """Take what a comparison needs out of MLflow's run."""
    return Measured(
        run_id=str(run.info.run_id),
        name=str(run.info.run_name or run.info.run_id),
        status=str(run.info.status),
        started_ms=int(run.info.start_time or 0),
        experiment_id=str(run.info.experiment_id),
        params=dict(run.data.params),
        tags=dict(run.data.tags),
        metrics=dict(run.data.metrics),
    )


def is_refused(error: StoreError) -> bool:
    """Did the store understand the request and say no?"""
    status = getattr(error.__cause__, "get_http_status_code", None)
    return status is not None and status() in (400, 422)


def _first_line(error: StoreError) -> str:
    return str(error.__cause__).splitlines()[0][:200]

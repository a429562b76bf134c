"""The end of a sweep, and of a single run: views, verdicts, and a summary run with the report.

Called by run.py when everything is tracked. What fails here costs no run: it becomes a line.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..analyze import comparison_json, comparison_text
from ..analyze.comparison import Comparison, axis_of, compare
from ..analyze.measured import Measured
from ..errors import ToolError
from ..schema import Spec
from . import connect, facts, query, redact, scoreboard, store, verdicts, views
from .connect import patiently
from .scoreboard import JobResult

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

    from .runs import Run

KIND = "summary"
MOST_LIKE_IT = 200  # runs of one workload and input that a new run is compared with, the newest
PAGE, DATA, TEXT = "comparison.html", "comparison.json", "comparison.md"


def after_sweep(
    results: Sequence[JobResult], sweep_id: str, cwd: Path, repository: Path
) -> list[str]:
    """Compare a sweep's runs and track the report; returns lines that say where it is."""
    ids = [result.run_id for result in results if result.run_id]
    tracking = scoreboard.read_tracking()
    if not ids or tracking is None:
        return []
    target = store.locate(tracking, cwd, repository)
    try:
        client = connect.connect(target)
        runs = query.by_ids(client, target, ids)
        lines = []
        for experiment_id in dict.fromkeys(run.experiment_id for run in runs):
            mine = [run for run in runs if run.experiment_id == experiment_id]
            lines += _summarize(client, target, sweep_id, experiment_id, mine)
    except Exception as error:
        return [f"The sweep is tracked, but could not be compared: {_words(error)}"]
    where = f" --uri {target.shown_uri}" if target.is_server else f" --root {target.root}"
    return [*lines, f"As text: python -m src.compare --sweep {sweep_id}{where}"]


def _summarize(
    client: MlflowClient,
    target: store.Store,
    sweep_id: str,
    experiment_id: str,
    runs: list[Measured],
) -> list[str]:
    found = compare(runs, across=axis_of(runs))
    verdicts.write(client, target, found)
    others = [run.run_id for run in runs] if any(r.sweep != sweep_id for r in runs) else []
    view = views.of_sweep(sweep_id, others)
    views.install(client, target, experiment_id, [*views.of_experiment(), view])
    base = views.address(target)
    lines = [f"Compare these {len(runs)} runs: {views.link(base, experiment_id, view)}"]
    run_id = write(client, target, sweep_id, experiment_id, found)
    return [*lines, f"Report: {base}/#/experiments/{experiment_id}/runs/{run_id}/artifacts"]


def write(
    client: MlflowClient,
    target: store.Store,
    sweep_id: str,
    experiment_id: str,
    found: Comparison,
) -> str:
    """Track a summary run with the report and its pictures; returns its id."""
    name = f"{'sim ' if found.simulated else ''}summary of sweep {sweep_id}"
    tags = facts.as_tags(
        {
            "kind": KIND,
            "sweep_id": sweep_id,
            "device": "simulated" if found.simulated else "neuron",
            "mlflow.source.name": "python -m src.run",
            "mlflow.source.type": "LOCAL",
            verdicts.NOTE: _note(found),
            **facts.process_tags(),
        }
    )
    made = patiently(target, lambda: client.create_run(experiment_id, tags=tags, run_name=name))
    run_id = str(made.info.run_id)
    try:
        with tempfile.TemporaryDirectory() as folder:
            _files(found, f"sweep {sweep_id}", Path(folder))
            patiently(target, lambda: client.log_artifacts(run_id, folder))
    except BaseException:
        patiently(target, lambda: client.set_terminated(run_id, "FAILED"))
        raise
    patiently(target, lambda: client.set_terminated(run_id, "FINISHED"))
    return run_id


def _files(found: Comparison, title: str, folder: Path) -> None:
    from ..analyze import page, plots

    (folder / TEXT).write_text(comparison_text.markdown(found), encoding="utf-8")
    data = json.dumps(comparison_json.as_data(found), indent=1, allow_nan=False)
    (folder / DATA).write_text(data + "\n", encoding="utf-8")
    (folder / PAGE).write_text(page.page(found, f"Comparison of {title}"), encoding="utf-8")
    plots.draw(found, folder)


def _note(found: Comparison) -> str:
    """As many whole tables as a description holds."""
    parts = comparison_text.markdown_parts(found)
    while len("\n\n".join(parts)) > facts.LONGEST_TAG - 60 and len(parts) > 1:
        parts.pop()
    whole = len(parts) == len(comparison_text.markdown_parts(found))
    return "\n\n".join([*parts, *([] if whole else [f"The rest is in {TEXT} and {PAGE}."])])


def after_run(run: Run, spec: Spec) -> str:
    """Judge one run beside its like; returns the line with the link that shows them."""
    config = spec.config
    shape = facts.params(spec, "")["input.shape"]
    view = views.of_input(config.workload.name, shape, config.input.dtype)
    try:
        views.install(run.client, run.store, run.experiment_id, [*views.of_experiment(), view])
        runs = query.search(
            run.client,
            run.store,
            view.filter_string,
            experiment=run.experiment_id,
            most=MOST_LIKE_IT,
        )
        verdicts.write(run.client, run.store, compare(runs), only=[run.run_id])
    except Exception as error:
        return f"The run is tracked, but could not be compared: {_words(error)}"
    return f"Beside its like: {views.link(views.address(run.store), run.experiment_id, view)}"


def _words(error: Exception) -> str:
    said = str(error) if isinstance(error, ToolError) else f"{type(error).__name__}: {error}"
    return redact.text(" ".join(said.split()))[:300]

"""Has this been measured already? A FINISHED run with the same measurement_id says so.

Called by run.py once the child has said its versions. Reads the store only.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..schema import Spec
from ..workload_rules import experiment_of
from . import facts
from .connect import experiment_name, patiently
from .scoreboard import JobResult
from .store import Store

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient


class AlreadyMeasured(Exception):
    """Carries the run that makes this job unnecessary."""

    def __init__(self, run: Any) -> None:
        self.run = run
        super().__init__(run.info.run_id)

    def result(self, spec: Spec) -> JobResult:
        """The job's line in the end table, with the run that stands for it and its age."""
        info, metrics = self.run.info, dict(self.run.data.metrics)
        simulated = self.run.data.tags.get("device") == "simulated"
        return JobResult(
            job=spec.job,
            name=facts.run_name(spec, simulated),
            status="SKIPPED",
            exit_code=0,
            seconds=0.0,
            metrics=metrics,
            message=f"measured {_age(info.end_time)} ago by run {info.run_id}",
            run_id=info.run_id,
            experiment_id=info.experiment_id,
            simulated=simulated,
        )


def finished(
    client: MlflowClient, target: Store, spec: Spec, ready: Mapping[str, Any]
) -> Any | None:
    """Return the newest FINISHED run of the same measurement, or None."""
    simulated = ready.get("device") == "simulated"
    tracking = spec.config.tracking
    name = experiment_name(tracking.experiment, experiment_of(spec.config), simulated)
    experiment = patiently(target, lambda: client.get_experiment_by_name(name))
    if experiment is None:
        return None
    query = (
        f"tags.measurement_id = '{ready['measurement_id']}' and attributes.status = 'FINISHED' "
        "and tags.kind = 'profile'"
    )
    found = patiently(
        target,
        lambda: client.search_runs(
            [experiment.experiment_id], query, max_results=1, order_by=["start_time DESC"]
        ),
    )
    return found[0] if found else None


def _age(end_time_ms: int | None) -> str:
    if end_time_ms is None:
        return "some time"
    seconds = max(0.0, time.time() - end_time_ms / 1000)
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"

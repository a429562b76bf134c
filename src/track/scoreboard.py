"""How each job of a command ended: one small file a job, read by the door for the end table.

Jobs may run in other processes (a launcher's workers), so files are what joins them. They live in
the command's scratch folder and are gone with it. Never touches the store.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .. import rundir
from ..schema import TrackingConfig

SCRATCH = "PROFILE_RUN_SCRATCH"
"""Names the scratch folder for Hydra (conf/config.yaml) and for jobs in other processes."""
SWEEP = "sweep.json"
TRACKING = "tracking.json"


@dataclass(frozen=True)
class Sweep:
    """What the callback found before job 1."""

    sweep_id: str
    jobs: int
    concurrent_jobs: int = 1


@dataclass(frozen=True)
class JobResult:
    """One job, as the end table shows it."""

    job: int
    name: str
    status: str
    """FINISHED, FAILED, KILLED, REFUSED or SKIPPED."""
    exit_code: int
    seconds: float
    metrics: dict[str, float] = field(default_factory=dict)
    message: str = ""
    run_id: str | None = None
    experiment_id: str | None = None
    simulated: bool = False


def scratch() -> Path:
    """The scratch folder of this command."""
    return Path(os.environ[SCRATCH])


def enter() -> None:
    """Note that composing succeeded and a job began: an exit from here on is no slip."""
    (scratch() / "entered").touch()


def entered() -> bool:
    """Did any job begin, or was a sweep found to be in order?"""
    return any((scratch() / name).exists() for name in ("entered", SWEEP))


def write_sweep(sweep: Sweep) -> None:
    """Announce a sweep whose jobs are all in order."""
    rundir.write_json(scratch() / SWEEP, asdict(sweep))


def read_sweep() -> Sweep | None:
    """The announced sweep; None for a single run."""
    data = rundir.read_json(scratch() / SWEEP)
    return None if data is None else Sweep(**data)


def write_tracking(tracking: TrackingConfig) -> None:
    """Note where the jobs' runs go; the scratch folder is this user's alone."""
    rundir.write_json(scratch() / TRACKING, asdict(tracking))


def read_tracking() -> TrackingConfig | None:
    """Where the jobs' runs went; None when none was tracked."""
    data = rundir.read_json(scratch() / TRACKING)
    return None if data is None else TrackingConfig(**data)


def write(result: JobResult) -> None:
    """Note how a job ended."""
    rundir.write_json(scratch() / f"job-{result.job:06d}.json", asdict(result))


def read_all() -> list[JobResult]:
    """The jobs that ended so far, in their order."""
    paths = sorted(scratch().glob("job-*.json"))
    return [JobResult(**json.loads(path.read_text(encoding="utf-8"))) for path in paths]


def remaining_s(done: int, jobs: int, started: float) -> float | None:
    """Seconds that the rest will take at the pace so far; None before the first job ended.

    `started` is a time.monotonic().
    """
    return None if done == 0 else (time.monotonic() - started) / done * (jobs - done)

"""The Hydra callback of a sweep: expands and checks all jobs before job 1, or only shows them.

Named in conf/config.yaml. An ordinary exception in a callback only warns in Hydra, so a refusal
leaves through SystemExit with its message in `refusal`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from hydra.experimental.callback import Callback

from ..composed import config_of
from ..errors import UserError
from ..schema import Config, Spec
from . import facts, lease, order, scoreboard

SWEEP_ID = "PROFILE_RUN_SWEEP_ID"
CHECK_ALL_UP_TO = 64
"""Composing costs 0.13 s a job: of longer sweeps each value is checked once, and each pair of
options of two groups."""
refusal: str | None = None
"""Why the sweep did not start, for the door to say."""
answer: str | None = None
"""What sweep.preview found, for the door to show."""


@dataclass(frozen=True)
class Job:
    """One job of a sweep before it runs: what it overrides, and its configuration."""

    overrides: tuple[str, ...]
    config: Config


class SweepCallback(Callback):
    """Stops a sweep that can never work before its first job."""

    def on_multirun_start(self, config: Any, **kwargs: Any) -> None:
        global refusal
        try:
            _prepare(config)
        except UserError as error:
            refusal = str(error)
            raise SystemExit(UserError.exit_code) from None


def _prepare(config: Any) -> None:
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

    global answer
    all_overrides = expand(config)
    if all_overrides is None:  # another sweeper decides as it goes; each job checks itself
        scoreboard.write_sweep(scoreboard.Sweep(new_sweep_id(), 0, concurrent_jobs(config)))
        return
    if _composed(config, all_overrides[0]).sweep.order == "interleaved":
        order.interleave_hydra(BasicSweeper)
        all_overrides = [tuple(job) for job in order.interleaved(all_overrides)]
    jobs = [Job(o, _composed(config, o)) for o in _to_check(all_overrides)]
    at_once = min(concurrent_jobs(config), len(all_overrides))
    lease.refuse_oversubscription([job.config for job in jobs], at_once)
    if jobs[0].config.sweep.preview:
        every = jobs if len(jobs) == len(all_overrides) else None
        answer = "\n".join(preview(every, all_overrides, at_once))
        raise SystemExit(0)
    scoreboard.write_sweep(scoreboard.Sweep(new_sweep_id(), len(all_overrides), at_once))


def new_sweep_id() -> str:
    """This command's sweep id; jobs in other processes inherit it through the environment."""
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    return os.environ.setdefault(SWEEP_ID, f"{stamp}-{os.getpid()}")


def expand(config: Any) -> list[tuple[str, ...]] | None:
    """The overrides of each job, in order; None when the sweeper is not Hydra's own."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.override_parser.overrides_parser import OverridesParser

    sweeper = config.hydra.sweeper
    if not str(sweeper.get("_target_", "")).endswith("BasicSweeper"):
        return None
    words = [f"{key}={value}" for key, value in (sweeper.get("params") or {}).items()]
    words += list(config.hydra.overrides.task)
    loader = GlobalHydra.instance().config_loader()
    parsed = OverridesParser.create(config_loader=loader).parse_overrides(words)
    batches = BasicSweeper.split_arguments(parsed, None)
    return [tuple(overrides) for batch in batches for overrides in batch]


def _composed(config: Any, overrides: Sequence[str]) -> Config:
    from hydra.core.global_hydra import GlobalHydra
    from omegaconf import open_dict

    loader = GlobalHydra.instance().config_loader()
    job = loader.load_sweep_config(config, list(overrides))
    with open_dict(job):
        job.pop("hydra", None)
    return config_of(job, overrides)


def _to_check(jobs: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    if len(jobs) <= CHECK_ALL_UP_TO:
        return jobs
    seen: set[tuple[str, str]] = set()
    chosen = []
    for job in jobs:
        groups = [word for word in job if "." not in word.partition("=")[0]]
        pairs = {(a, b) for a in job for b in (groups if a in groups else [a])}
        if not pairs <= seen:
            seen |= pairs
            chosen.append(job)
    return chosen


def concurrent_jobs(config: Any) -> int:
    """How many jobs the launcher runs at once; 1 for Hydra's own launcher."""
    wanted = int(config.hydra.launcher.get("n_jobs") or 1)
    return wanted if wanted > 0 else max(1, (os.cpu_count() or 1) + 1 + wanted)


def preview(
    jobs: list[Job] | None, all_overrides: list[tuple[str, ...]], at_once: int
) -> Iterator[str]:
    """Lines that list the jobs, what differs, and the files to expect; nothing is touched."""
    varying = _varying(all_overrides)
    yield f"{len(all_overrides)} jobs, {at_once} at a time; nothing is run (sweep.preview=true)"
    for number, overrides in enumerate(all_overrides):
        differs = " ".join(word for word in overrides if word.partition("=")[0] in varying)
        name = f"  {facts.run_name(Spec(jobs[number].config), False)}" if jobs else ""
        yield f"  {number:>3}  {differs or '(as configured)'}{name}"
    if jobs is None:
        return
    files = sum(files_expected(job.config) for job in jobs)
    yield (
        f"Files: at least {files} in the profiler's folders, and a dozen beside them in each run. "
        f"Disk: about {files * BYTES_A_FILE / 1e6:.0f} MB by rule of thumb "
        f"({BYTES_A_FILE // 1000} kB a file, as small steps leave; a device trace of a large model "
        "can take gigabytes)."
    )


BYTES_A_FILE = 40_000
FILES_OF_MODE = {"RUNTIME": 2, "DEVICE": 2, "CPU_UTIL": 1, "HOST_MEMORY": 1}  # neuron_api 3.1


def files_expected(config: Config) -> int:
    """Files that the profiler leaves at least: those of each mode and trace.json, each window."""
    modes = sum(FILES_OF_MODE[mode] for mode in config.profiler.modes)
    return config.profiler.repeats * (modes + 1)


def _varying(jobs: Sequence[Sequence[str]]) -> set[str]:
    values: dict[str, set[str]] = {}
    for job in jobs:
        for word in job:
            key, _, value = word.partition("=")
            values.setdefault(key, set()).add(value)
    return {key for key, found in values.items() if len(found) > 1}


def description(overrides: Sequence[str], sweep_id: str, job: int) -> str:
    """What a run of a sweep says of itself in the UI."""
    return f"Job {job} of sweep `{sweep_id}`: {' '.join(overrides) or 'as configured'}"

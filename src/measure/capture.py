"""A Step under torch.profiler -> the profiler's files and its operator rows, window by window.

Called by job.py with a warmed-up step. The published sequence: a NeuronConfig and a NeuronProfiler
of their own for each window, both activities, the synchronize inside the profile block, export.
Never decides whether what it got is good: analyze/health.py does.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch._dynamo.utils import counters
from torch.profiler import ProfilerActivity

from ..rundir import OperatorRow, Operators, Window
from ..schema import Config, ProfilerConfig
from .devices import Device
from .variants import Step

OPTIONAL_KEYWORDS = (
    "correlate_device_time",
    "precache_node_info",
    "neff_cache_dir",
    "max_events_per_nc",
)
"""NeuronConfig keywords that a run can do without, the least certain first."""


def capture(
    step: Step,
    device: Device,
    config: Config,
    profile_dir: Path,
    on_window: Callable[[int], None] = lambda window: None,
) -> Operators:
    """Profile `repeats` windows of `steps` calls each; the step must be warm.

    Writes the profiler's own tree under `profile_dir`. Exceptions of the step pass through.
    """
    windows, dropped = [], set()
    for number in range(config.profiler.repeats):
        on_window(number)
        window, lost = _window(step, device, config, profile_dir)
        windows.append(window)
        dropped |= lost
    has_time = any(row.self_neuron_us for window in windows for row in window.operators)
    # Without the correlation, device rows of key_averages() are dispatch, not engine time.
    lawful = has_time and "correlate_device_time" not in dropped
    return Operators(
        device_time_source=device.device_time_source if lawful else None,
        windows=tuple(windows),
        dropped_keywords=tuple(sorted(dropped)),
    )


def neuron_config(
    device: Device, profiler: ProfilerConfig, cores: str, profile_dir: Path
) -> tuple[Any, set[str]]:
    """Make the NeuronConfig; returns it with the optional keywords that this release refused."""
    modes = [getattr(device.profiling.ProfileMode, mode) for mode in profiler.modes]
    wanted = {
        "modes": modes,
        "profile_output_dir": str(profile_dir),
        "capture_enabled_for_nc": profiler.capture_cores or cores,
        "max_events_per_nc": profiler.max_events_per_nc,
        "neff_cache_dir": profiler.neff_cache_dir or device.neff_cache_dir,
        "precache_node_info": profiler.precache_node_info,
        "correlate_device_time": profiler.correlate_device_time,
    }
    keywords = {name: value for name, value in wanted.items() if value is not None}
    dropped: set[str] = set()
    while True:
        try:
            return device.profiling.NeuronConfig(**keywords), dropped
        except TypeError as error:
            refused = _refused_keyword(error, keywords)
            if refused is None:
                raise
            del keywords[refused]
            dropped.add(refused)


def _refused_keyword(error: TypeError, keywords: dict[str, Any]) -> str | None:
    """The optional keyword that an 'unexpected keyword' TypeError names, else the least certain."""
    named = re.search(r"keyword argument:? '?(\w+)'?", str(error))
    if named:
        return named[1] if named[1] in OPTIONAL_KEYWORDS and named[1] in keywords else None
    if "incompatible constructor arguments" not in str(error):  # pybind11's wording
        return None
    return next((name for name in OPTIONAL_KEYWORDS if name in keywords), None)


def _window(
    step: Step, device: Device, config: Config, profile_dir: Path
) -> tuple[Window, set[str]]:
    profiler = config.profiler
    settings, dropped = neuron_config(device, profiler, config.cores, profile_dir)
    exporter = device.profiling.NeuronProfiler(settings)
    schedule = profiler.schedule
    before = _session_dirs(profile_dir)
    compiled_before = counters["stats"]["unique_graphs"]
    with warnings.catch_warnings():
        # Steps are warm already; a profiler warm-up step would be in the runtime's own trace.
        warnings.filterwarnings("ignore", message="Profiler won't be using warmup")
        profile = torch.profiler.profile(
            activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1],
            schedule=torch.profiler.schedule(
                skip_first=schedule.skip_first,
                wait=schedule.wait,
                warmup=schedule.warmup,
                active=profiler.steps,
                repeat=1,
            ),
            on_trace_ready=exporter.export_trace,
            record_shapes=profiler.record_shapes,
            profile_memory=profiler.profile_memory,
            with_stack=profiler.with_stack,
            with_flops=profiler.with_flops,
            acc_events=profiler.acc_events,
            experimental_config=settings,
        )
    total = schedule.skip_first + schedule.wait + schedule.warmup + profiler.steps
    with torch.no_grad(), profile:
        for number in range(total):
            step()
            if number == total - 1:
                device.synchronize()  # inside the block, before the step that ends the window
            profile.step()
    session = _new_session(before, profile_dir)
    averages = profile.key_averages()
    return (
        Window(
            steps=profiler.steps,
            operators=tuple(rows(averages)),
            self_cpu_total_us=float(averages.self_cpu_time_total),
            session_dir=None if session is None else str(session.relative_to(profile_dir)),
            executions=None if session is None else device.count_executions(session),
            compiles=counters["stats"]["unique_graphs"] - compiled_before,
        ),
        dropped,
    )


def rows(averages: Iterable[Any]) -> list[OperatorRow]:
    """The profiler's averages as rows; a row without device time has None, not 0."""
    return [
        OperatorRow(
            name=row.key,
            calls=row.count,
            self_cpu_us=float(row.self_cpu_time_total),
            cpu_total_us=float(row.cpu_time_total),
            self_neuron_us=float(row.self_device_time_total) or None,
            annotation=bool(row.is_user_annotation) or row.key.startswith("ProfilerStep"),
        )
        for row in averages
    ]


def _session_dirs(profile_dir: Path) -> set[Path]:
    return {path.parent for path in profile_dir.rglob("*") if path.is_file()}


def _new_session(before: set[Path], profile_dir: Path) -> Path | None:
    """The folder that this window filled: the one with most files when there are several."""
    new = _session_dirs(profile_dir) - before
    return max(new, key=lambda path: len(list(path.iterdir())), default=None)

"""A Step under torch.profiler -> the profiler's files and its operator rows, window by window.

Called by job.py with a warmed-up step. The published sequence: a NeuronConfig and a NeuronProfiler
of their own for each window, both activities, the synchronize inside the profile block, export.
Never decides whether what it got is good: analyze/health.py does.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch._dynamo.utils import counters
from torch.profiler import ProfilerActivity

from ..errors import MeasureError
from ..rundir import NeffCache, OperatorRow, Operators, Window
from ..schema import Config
from . import caches, fallbacks, session_files
from .devices import Device, Executions, obstacles
from .neuron_config import neuron_config
from .variants import Step

TRACE = "trace.json"


@dataclass(frozen=True)
class _Seen:
    """One window, and what it adds to the whole run's findings."""

    window: Window
    dropped: set[str]
    fallen_back: set[str]


def capture(
    step: Step,
    device: Device,
    config: Config,
    profile_dir: Path,
    on_window: Callable[[int], None] = lambda window: None,
    neff_cache: NeffCache | None = None,
) -> Operators:
    """Profile `repeats` windows of `steps` calls each; the step must be warm.

    Writes the profiler's own tree under `profile_dir`. Exceptions of the step pass through, but
    device memory that ran out becomes a MeasureError with the cure.
    """
    seen = []
    for number in range(config.profiler.repeats):
        on_window(number)
        seen.append(_window(step, device, config, profile_dir))
    dropped = set().union(*(one.dropped for one in seen))
    has_time = any(
        row.self_neuron_us and not row.annotation for one in seen for row in one.window.operators
    )
    # Without the correlation, device rows of key_averages() are dispatch, not engine time.
    lawful = (
        has_time and config.profiler.correlate_device_time
    ) and "correlate_device_time" not in dropped
    with torch.no_grad():
        found = fallbacks.listed(step, device)
    source = "torch_neuronx" if found is not None else None
    in_trace = sorted(set().union(*(one.fallen_back for one in seen)))
    if not found and in_trace:
        found, source = tuple(in_trace), "trace"
    return Operators(
        device_time_source=device.device_time_source if lawful else None,
        windows=tuple(one.window for one in seen),
        fallback_operators=found,
        dropped_keywords=tuple(sorted(dropped)),
        neff_cache=neff_cache,
        fallback_source=source,
    )


def _window(step: Step, device: Device, config: Config, profile_dir: Path) -> _Seen:
    profiler = config.profiler
    settings, dropped = neuron_config(device, profiler, config.cores, str(profile_dir))
    exporter = device.profiling.NeuronProfiler(settings)
    profile = _profile(config, settings, exporter)
    files_before = session_files.stamps(profile_dir)
    neffs_before = caches.neffs_in(device.neff_cache_dir)
    compiled_before = counters["stats"]["unique_graphs"]
    schedule = profiler.schedule
    total = schedule.skip_first + schedule.wait + schedule.warmup + profiler.steps
    with ExitStack() as block:
        block.enter_context(torch.no_grad())
        try:
            block.enter_context(profile)
        except Exception as error:
            raise MeasureError(obstacles.profiler_failed(error, config)) from error
        try:
            for number in range(total):
                if number == total - profiler.steps:
                    begun_ns = time.perf_counter_ns()
                step()
                if number == total - 1 or profiler.sync == "step":
                    device.synchronize()  # inside the block, before the step that ends the window
                if number == total - 1:
                    host_us = (time.perf_counter_ns() - begun_ns) / 1000
                profile.step()
        except Exception as error:
            if obstacles.is_out_of_memory(error):
                raise MeasureError(obstacles.profiler_failed(error, config)) from error
            raise
    compiles = counters["stats"]["unique_graphs"] - compiled_before
    sessions = session_files.filled(files_before, session_files.stamps(profile_dir))
    _complete_trace(profile, sessions)
    averages, events = profile.key_averages(), profile.events() or ()
    runs = _executions(device, sessions)
    return _Seen(
        window=Window(
            steps=profiler.steps,
            operators=tuple(rows(averages, _dispatch(events))),
            self_cpu_total_us=float(averages.self_cpu_time_total),
            session_dir=str(sessions[0].relative_to(profile_dir)) if sessions else None,
            executions=runs.count if runs else None,
            executions_us=runs.busy_us if runs else None,
            compiles=compiles,
            new_neffs=caches.added(device.neff_cache_dir, neffs_before),
            host_us=host_us,
        ),
        dropped=dropped,
        fallen_back=fallbacks.in_trace(events),
    )


def _profile(config: Config, settings: Any, exporter: Any) -> torch.profiler.profile:
    profiler = config.profiler
    schedule = profiler.schedule

    def export(profile: torch.profiler.profile) -> None:
        try:
            exporter.export_trace(profile)
        except Exception:  # what it does with a folder or file that is there is not published
            traceback.print_exc()

    with warnings.catch_warnings():
        # Steps are warm already; a profiler warm-up step would be in the runtime's own trace.
        warnings.filterwarnings("ignore", message="Profiler won't be using warmup")
        return torch.profiler.profile(
            activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1],
            schedule=torch.profiler.schedule(
                skip_first=schedule.skip_first,
                wait=schedule.wait,
                warmup=schedule.warmup,
                active=profiler.steps,
                repeat=1,
            ),
            on_trace_ready=export,
            record_shapes=profiler.record_shapes,
            profile_memory=profiler.profile_memory,
            with_stack=profiler.with_stack,
            with_flops=profiler.with_flops,
            acc_events=profiler.acc_events,
            experimental_config=settings,
        )


def _complete_trace(profile: torch.profiler.profile, sessions: list[Path]) -> None:
    """Where export_trace left no framework trace, the ordinary export still can."""
    if sessions and not any((session / TRACE).exists() for session in sessions):
        profile.export_chrome_trace(str(sessions[0] / TRACE))


def _executions(device: Device, sessions: list[Path]) -> Executions | None:
    """The executions of all of a window's sessions; None when one of them cannot be read."""
    read = [found for session in sessions if (found := device.executions(session)) is not None]
    if not read:
        return None
    times = [found.busy_us for found in read if found.busy_us is not None]
    return Executions(
        count=sum(found.count for found in read),
        busy_us=sum(times) if len(times) == len(read) else None,
    )


def _dispatch(events: Iterable[Any]) -> frozenset[str]:
    """Names of rows that are the device's dispatch work, wherever the profiler puts them."""
    return frozenset(
        event.name
        for event in events
        if str(getattr(event, "activity_type", "")).startswith("privateuse1_")
    )


def rows(averages: Iterable[Any], dispatch: frozenset[str] = frozenset()) -> list[OperatorRow]:
    """The profiler's averages as rows; a row without device time has None, not 0.

    Only framework rows carry device time: a row of the device itself (privateuse1_runtime or
    privateuse1_driver) is dispatch, and would count twice what its operator has already.
    """
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
        if str(row.device_type) == "DeviceType.CPU" and row.key not in dispatch
    ]

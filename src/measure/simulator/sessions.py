"""One profiling session: opened and closed with torch.profiler's own recording, whether or not
there is an exporter.

`hook` wraps four methods of `torch.autograd.profiler.profile`, because PyTorch offers a Python
device no other way to learn of a session's start and stop, nor to add rows. A session without a
NeuronConfig, or without the PrivateUse1 activity, is left alone.
"""

from __future__ import annotations

import os
import resource
import time
import warnings
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.autograd.profiler import profile

from . import record, table, trace_files
from .profiling import NeuronConfig
from .record import Event

INSTANCE = "i-simulated"


@dataclass
class HostSample:
    """What the host had used at one moment."""

    time_ns: int
    user_cpu_s: float
    system_cpu_s: float
    peak_resident_bytes: int

    @staticmethod
    def now() -> HostSample:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return HostSample(time.time_ns(), used.ru_utime, used.ru_stime, used.ru_maxrss * 1024)


@dataclass
class Session:
    """What one session saw; `visible` and `dropped` are known when it has stopped."""

    config: NeuronConfig
    folder: str
    known_models: frozenset[str]
    started: HostSample
    stopped: HostSample | None = None
    events: list[Event] = field(default_factory=list)
    visible: list[Event] = field(default_factory=list)
    dropped: int = 0

    def accept(self, event: Event) -> bool:
        """Take an event that was launched; True asks for a marker among the profiler's rows."""
        self.events.append(event)
        return self.config.correlate_device_time and event.exec_id > 0

    def stop(self) -> None:
        """Keep what is synchronized, on a captured core, and still in the core's ring."""
        self.stopped = HostSample.now()
        rings: dict[int, deque[Event]] = {}
        for event in self.events:
            if (
                not event.synchronized
                or not self.config.captures(event.nc_idx)
                or not self.config.has_executions
            ):
                continue
            ring = rings.setdefault(event.nc_idx, deque(maxlen=self.config.max_events_per_nc))
            self.dropped += len(ring) == ring.maxlen
            ring.append(event)
        kept = {id(event) for ring in rings.values() for event in ring}
        self.visible = [event for event in self.events if id(event) in kept]

    def executions(self) -> dict[int, Event]:
        """The visible executions by their number; empty unless they are to be correlated."""
        if not self.config.correlate_device_time:
            return {}
        return {event.exec_id: event for event in self.visible if event.exec_id}


_last_stamp = 0


def _new_folder(root: str) -> str:
    global _last_stamp
    _last_stamp = max(time.time_ns(), _last_stamp + 1)
    return os.path.join(os.path.abspath(root), f"{INSTANCE}_pid_{os.getpid()}", str(_last_stamp))


def session_of(profiler: Any) -> Session | None:
    """The Neuron session of a `torch.autograd.profiler.profile` object, if it has one."""
    found: Session | None = getattr(profiler, "_simulated_neuron_session", None)
    return found


def _open(profiler: Any) -> None:
    profiler._simulated_neuron_session = None
    config = profiler.experimental_config
    if (
        isinstance(config, NeuronConfig)
        and profiler.use_device == torch._C._get_privateuse1_backend_name()
    ):
        known = frozenset(record.device.models)
        session = Session(config, _new_folder(config.profile_output_dir), known, HostSample.now())
        profiler._simulated_neuron_session = session
        record.device.listener = session.accept


def _close(session: Session) -> None:
    record.device.listener = None
    record.device.pending.clear()
    session.stop()


def _report(session: Session) -> None:
    if session.dropped:
        warnings.warn(
            f"{session.dropped} trace events were dropped "
            f"(max_events_per_nc={session.config.max_events_per_nc}): "
            "raise max_events_per_nc or shorten the window",
            stacklevel=3,
        )
    try:
        trace_files.write(session)
    except OSError as error:
        # As on the real device, a session that cannot write must not take the profiled program down
        # with it.
        warnings.warn(
            f"simulated neuron device: the session's files could not be written: {error}",
            stacklevel=3,
        )


def hook() -> None:
    """Wrap torch.profiler's start, stop, table and export, once."""
    torch_profile: Any = profile
    start, leave = torch_profile._start_trace, torch_profile.__exit__
    parse, export = torch_profile._ensure_function_events, torch_profile.export_chrome_trace

    def _start_trace(self: Any) -> None:
        start(self)
        _open(self)

    def __exit__(self: Any, *error: Any) -> Any:
        session = session_of(self)
        is_open = session is not None and session.stopped is None
        if session is not None and is_open:
            # Before PyTorch's own exit, which calls `torch.neuron.synchronize()` itself: that call
            # comes after the window, and must not make visible what the user forgot to wait for.
            _close(session)
        result = leave(self, *error)
        if session is not None and is_open:
            _report(session)
        return result

    def _ensure_function_events(self: Any) -> None:
        is_parsed = self._function_events is not None
        parse(self)
        session = session_of(self)
        if session is not None and not is_parsed:
            table.correlate_rows(self._function_events, session.executions())

    def export_chrome_trace(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        result = export(self, path, *args, **kwargs)
        session = session_of(self)
        if session is not None:
            table.rewrite_trace(path, session.executions())
        return result

    for function in (_start_trace, __exit__, _ensure_function_events, export_chrome_trace):
        setattr(profile, function.__name__, function)

"""A profiling session of the stand-in: opened and closed by torch.profiler's own recording.

Sees only what the caller synchronized inside the block: torch's own synchronize at the exit comes
too late, as on hardware where the session has been stopped by then.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch.autograd import DeviceType
from torch.autograd.profiler import profile
from torch.autograd.profiler_util import FunctionEvent

from . import _board, _diary, _files, _moods

_table = importlib.import_module("_standin_simulator.table")
GIB = 1024**3


@dataclass
class Session:
    """One block of torch.profiler.profile with a NeuronConfig."""

    config: Any
    folder: Path
    known: frozenset[str]
    """Programs that had run before it."""
    events: list[Any] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)
    is_open: bool = True

    def take(self, event: Any) -> bool:
        if event.duration_ns:
            event.duration_ns = _board.duration_ns(event.duration_ns)
        self.events.append(event)
        return bool(event.exec_id)

    @property
    def asked(self) -> dict[str, Any]:
        asked: dict[str, Any] = self.config._asked
        return asked

    @property
    def executions(self) -> list[Any]:
        return [event for event in self.seen if event.exec_id]


def of(profiler: Any) -> Session | None:
    found: Session | None = getattr(profiler, "_standin_session", None)
    return found


def _open(profiler: Any) -> None:
    from .profiling import NeuronConfig

    profiler._standin_session = None
    config = profiler.experimental_config
    if not isinstance(config, NeuronConfig):
        return
    asked = config._asked
    output = Path(asked.get("profile_output_dir", "./output"))
    _diary.note(
        "start",
        config=config.number,
        use_cpu=bool(profiler.use_cpu),
        use_device=str(profiler.use_device),
        calls=dict(_board.calls),
        unsynchronized=_board.unsynchronized,
        environ=_diary.variables(),
    )
    if profiler.use_device != "neuron" or not output.is_dir():
        return  # without PrivateUse1, or a folder to write to, nothing is recorded
    _act_at_start(asked)
    if _moods.on("silent_start", "start_warns"):
        return
    session = Session(config, _folder(output), frozenset(_board.calls))
    profiler._standin_session = session
    _board.record.device.listener = session.take
    _board.session_is_open = True


def _act_at_start(asked: dict[str, Any]) -> None:
    if _moods.on("aborts"):
        os.abort()
    if _moods.on("start_raises"):
        raise RuntimeError("nrt_profile_start failed: NRT_UNINITIALIZED")
    if _moods.on("start_warns"):
        warnings.warn("Neuron profiler could not be started: see the runtime's log", stacklevel=2)
    if _moods.on("device_out_of_memory") and "DEVICE" in asked["modes"]:
        raise RuntimeError(f"nrt_profile_start: failed to allocate {5 * GIB} bytes (NRT_RESOURCE)")
    if _moods.on("device_out_of_memory_silent") and "DEVICE" in asked["modes"]:
        print("ERROR NRT: failed to allocate the device profile buffer", file=sys.stderr)
    if _moods.on("noisy"):
        for number in range(20_000):
            print(f"2026-Dec-01 00:00:00 WARN  TDRV: message {number}", file=sys.stderr)
    if _moods.on("compile_in_window"):
        _board.write_neff(f"{time.time_ns():016x}")


def _folder(output: Path) -> Path:
    process = f"i-0standin0000000_pid_{os.getpid()}"
    if _moods.on("odd_folder"):
        process = f"7f3a9c-container_pid_{os.getpid()}"
    return (
        output / process if _moods.on("no_time_level") else output / process / f"{time.time_ns()}"
    )


def _close(session: Session) -> None:
    _board.record.device.listener = None
    _board.session_is_open = False
    session.is_open = False
    session.seen = [event for event in session.events if event.synchronized]
    ran = {event.model.key for event in session.executions}
    _diary.note(
        "stop", config=session.config.number, launched=len(session.events),
        seen=len(session.seen), with_grad=_board.with_grad, ran=sorted(ran),
    )  # fmt: skip
    session.folder.mkdir(parents=True, exist_ok=True)
    if not _moods.on("empty_folder"):
        _files.write(session)
    if _moods.on("dropped_events"):
        print("WARN NRT: 1,234 trace events were dropped", file=sys.stderr)


def _timed(session: Session) -> dict[int, Any]:
    """The executions whose time goes to the table."""
    if not session.asked.get("correlate_device_time") or _moods.on(
        "no_device_time", "dispatch_rows", "empty_folder"
    ):
        return {}
    if _moods.on("doubled"):
        for event in session.executions:
            event.duration_ns *= 2
    return {event.exec_id: event for event in session.executions}


def _dispatch_rows(rows: Any) -> list[FunctionEvent]:
    """Rows of the device's dispatch, which are no engine time and must not be taken for it."""
    if not rows or not _moods.on("dispatch_rows", "dispatch_rows_beside"):
        return []
    start = rows[0].time_range.start
    made = []
    for number, kind in enumerate(("privateuse1_runtime", "privateuse1_driver"), start=1):
        made.append(
            FunctionEvent(
                id=10_000_000 + number,
                name="nrta_execute_schedule",
                thread=number,
                start_us=start,
                end_us=start + 5000,
                device_type=DeviceType.PrivateUse1,
                activity_type=kind,
                input_shapes=(),
                stack=[],
            )
        )
    return made


def hook() -> None:
    """Follow torch.profiler: its start, its end, its table and its trace."""
    torch_profile: Any = profile
    start, leave = torch_profile._start_trace, torch_profile.__exit__
    parse, export = torch_profile._ensure_function_events, torch_profile.export_chrome_trace

    def _start_trace(self: Any) -> None:
        start(self)
        _open(self)

    def __exit__(self: Any, *error: Any) -> Any:  # noqa: N807  # the name that it replaces
        session = of(self)
        if session is not None and session.is_open:
            _close(session)
        _board.leaving = True
        try:
            return leave(self, *error)
        finally:
            _board.leaving = False

    def _ensure_function_events(self: Any) -> None:
        is_parsed = self._function_events is not None
        parse(self)
        session = of(self)
        if session is not None and not is_parsed:
            _table.correlate_rows(self._function_events, _timed(session))
            self._function_events.extend(_dispatch_rows(self._function_events))

    def export_chrome_trace(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        result = export(self, path, *args, **kwargs)
        if of(self) is not None:
            _files.take_out_markers(path)
        return result

    for function in (_start_trace, __exit__, _ensure_function_events, export_chrome_trace):
        setattr(torch_profile, function.__name__, function)

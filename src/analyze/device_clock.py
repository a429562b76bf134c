"""Executions of one window with their start times, on the clock of the source that has them.

Called by deeper.py. On hardware that is what neuron-explorer made of the runtime's trace, or the
trace's own kernel rows; for the simulated device the cost model's clock, which no host time shares.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import executions
from .spans import DeviceRow, Trace

SYSTEM_PROFILE = "system_profile.json"
SIMULATED_RUNTIME = "ntrace.pb.simulated.json"
SIMULATED_INFO = "trace_info.pb.simulated.json"
MODEL_CLOCK = "the cost model's own, simulated"
EXPLORER_CLOCK = f"nc_exec_running rows of {SYSTEM_PROFILE}"
TRACE_CLOCK = "kernel rows of trace.json"
COPIES = {
    "nrt_tensor_write": "host to device",
    "nrt_tensor_read": "device to host",
    "nrt_tensor_copy": "device to device",
}


@dataclass(frozen=True)
class Run:
    """One device execution on one logical core, merged over its physical cores."""

    name: str
    """The operator that launched it where that is known, else the program."""
    core: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Copy:
    """One copy that the runtime recorded."""

    direction: str
    bytes: int | None
    before: str | None
    """The execution that came next on its core: the operator that most likely needed the copy."""


@dataclass(frozen=True)
class DeviceClock:
    """What the device did in one window."""

    source: str
    shares_host_clock: bool
    runs: tuple[Run, ...]
    copies: tuple[Copy, ...] | None = None
    """None: the source does not list copies."""
    fixed_us: float | None = None
    """Of the simulated device only: the cost model's constant for each execution."""


def read(session: Path, trace: Trace | None, simulated: bool) -> DeviceClock | None:
    """Return a session's executions; None when no readable file has their start times."""
    owners = _owners(trace)
    if simulated:
        data = _json(session / SIMULATED_RUNTIME)
        events = data.get("events") if isinstance(data, Mapping) else None
        info = _json(session / SIMULATED_INFO)
        cost = info.get("cost_model") if isinstance(info, Mapping) else None
        fixed = cost.get("dispatch_us") if isinstance(cost, Mapping) else None
        return _from_events(events, owners, MODEL_CLOCK, fixed)
    data = _json(session / SYSTEM_PROFILE)
    if isinstance(data, Mapping):
        found = _from_events(
            data.get("trace_event") or data.get("trace_events"), owners, EXPLORER_CLOCK
        )
        if found is not None:
            return found
    if trace is not None and trace.kernels and not trace.simulated:
        runs = _merged_rows(trace)
        return DeviceClock(TRACE_CLOCK, shares_host_clock=True, runs=runs) if runs else None
    return None


def _from_events(
    events: Any, owners: Mapping[str, str], source: str, fixed_us: float | None = None
) -> DeviceClock | None:
    if not isinstance(events, list):
        return None
    rows = [_named_as_published(event) for event in events if isinstance(event, Mapping)]
    merged = executions.merge(rows)
    if not merged:
        return None
    programs = {
        str(row["model_id"]): str(row.get("operator") or row.get("model_name"))
        for row in rows
        if row.get("model_id") is not None and (row.get("operator") or row.get("model_name"))
    }
    runs = tuple(
        Run(
            owners.get(one.model_id) or programs.get(one.model_id) or f"model {one.model_id}",
            one.core,
            one.start_ns,
            one.end_ns,
        )
        for one in merged
    )
    return DeviceClock(source, False, runs, _copies(rows, runs), fixed_us)


def _named_as_published(event: Mapping[str, Any]) -> dict[str, Any]:
    """The simulated device says start_ns where neuron-explorer says timestamp or start_ts."""
    start = event.get("timestamp", event.get("start_ts", event.get("start_ns")))
    return {**event, "timestamp": start}


def _copies(rows: Iterable[Mapping[str, Any]], runs: tuple[Run, ...]) -> tuple[Copy, ...]:
    found = []
    by_core: dict[str, list[Run]] = {}
    for run in runs:  # in order of start
        by_core.setdefault(run.core, []).append(run)
    for row in rows:
        direction = COPIES.get(str(row.get("name")))
        start = row["timestamp"]
        if direction is None or not isinstance(start, (int, float)):
            continue
        own = by_core.get(str(row.get("nc_idx")), [])
        # Reads come after the execution that made the value, writes before the one that needs it.
        place = bisect.bisect_left(own, start, key=lambda run: run.start_ns)
        size = row.get("bytes")
        found.append(
            Copy(
                direction,
                int(size) if isinstance(size, (int, float)) else None,
                own[place].name if place < len(own) and direction == "host to device" else None,
            )
        )
    return tuple(found)


def _owners(trace: Trace | None) -> dict[str, str]:
    """Program -> the operator that launched it, from the trace's kernel rows."""
    found = {}
    for row in trace.kernels if trace else ():
        name = _owner(trace, row)
        if name and row.args.get("model_id") is not None:
            found[str(row.args["model_id"])] = name
    return found


def _owner(trace: Trace | None, row: DeviceRow) -> str | None:
    if trace is not None and row.owner is not None:
        return trace.spans[row.owner].name
    operator = row.args.get("operator")
    return str(operator) if operator else None


def _merged_rows(trace: Trace) -> tuple[Run, ...]:
    """Kernel rows as executions; rows of one execution on two physical cores are one."""
    spans: dict[tuple[str, ...], list[Any]] = {}
    for number, row in enumerate(trace.kernels):
        run = next(
            (row.args[key] for key in ("flow_id", "exec_id", "correlation") if key in row.args),
            f"row {number}",
        )
        key = (str(row.args.get("model_id")), str(run), row.core)
        end = row.start_ns + row.duration_ns
        span = spans.setdefault(key, [row.start_ns, end, _owner(trace, row) or row.name])
        span[0], span[1] = min(span[0], row.start_ns), max(span[1], end)
    runs = [Run(name, key[2], start, end) for key, (start, end, name) in spans.items()]
    return tuple(sorted(runs, key=lambda run: (run.start_ns, run.end_ns)))


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None

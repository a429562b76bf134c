"""Device executions from the runtime's events: rows of the physical cores merged, then added up.

Called by devices/neuron.py with what neuron-explorer wrote. Under LNC2 each execution has one row
for each of two physical cores; adding the rows plain would double the time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

EXECUTION = "nc_exec_running"


@dataclass(frozen=True)
class Execution:
    """One NEFF run on one logical core, from its first row's start to its last row's end."""

    model_id: str
    core: str
    start_ns: int
    end_ns: int
    rows: int
    """Rows merged: the physical cores that it ran on."""

    @property
    def length_us(self) -> float:
        return (self.end_ns - self.start_ns) / 1000


def merge(events: Iterable[Any]) -> list[Execution]:
    """Merge the nc_exec_running rows of one session, in order of start.

    One execution is one (process, model, flow or execution, logical core); flow ids start again
    for each model. Rows of one key that do not overlap are executions of their own: whether flow
    ids are ever used again is not published. Rows without an id, a start or a length are left out.
    """
    rows: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for event in _of_hardware(events):
        key, start, end = _key(event), _start(event), None
        if start is not None:
            end = _end(event, start)
        if key is not None and start is not None and end is not None and end >= start:
            rows.setdefault(key, []).append((start, end))
    found = []
    for key, spans in rows.items():
        merged: list[list[int]] = []
        for start, end in sorted(spans):
            if merged and (start < merged[-1][1] or start == merged[-1][0]):
                merged[-1][1:] = [max(merged[-1][1], end), merged[-1][2] + 1]
            else:
                merged.append([start, end, 1])
        found += [Execution(key[1], key[3], *one) for one in merged]
    return sorted(found, key=lambda one: (one.start_ns, one.end_ns))


def _of_hardware(events: Iterable[Any]) -> list[Mapping[str, Any]]:
    """The executions as the hardware saw them, where the rows say who saw them."""
    rows = [one for one in events if isinstance(one, Mapping) and one.get("name") == EXECUTION]
    seen = [one for one in rows if one.get("trace_event_source") == "neuron_hw"]
    return seen or rows


def _key(event: Mapping[str, Any]) -> tuple[str, ...] | None:
    try:
        extra = json.loads(event.get("extra_attributes_json") or "{}")
    except (TypeError, ValueError):
        extra = {}
    if not isinstance(extra, Mapping):
        extra = {}

    def value(name: str) -> Any:
        return event[name] if event.get(name) is not None else extra.get(name)

    run = value("flow_id")
    if run is None or run in ([], "", "[]"):  # parquet has a list, empty for no flow
        run = value("exec_id")
    if run is None:
        return None
    return (str(value("process_id")), str(value("model_id")), str(run), str(value("nc_idx")))


def _start(event: Mapping[str, Any]) -> int | None:
    start = event.get("timestamp", event.get("start_ts"))
    return int(start) if isinstance(start, (int, float)) else None


def _end(event: Mapping[str, Any], start: int) -> int | None:
    length = event.get("duration")
    length = event.get("duration_ns") if length is None else length
    if isinstance(length, (int, float)):
        return start + int(length)
    end = event.get("end_ts")
    return int(end) if isinstance(end, (int, float)) else None

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
    for each model. Rows without an id, a start or a length are left out.
    """
    spans: dict[tuple[str, ...], list[int]] = {}
    for event in events:
        if not isinstance(event, Mapping) or event.get("name") != EXECUTION:
            continue
        key, start, length = _key(event), _start(event), event.get("duration")
        length = event.get("duration_ns") if length is None else length
        if key is None or start is None or not isinstance(length, (int, float)) or length < 0:
            continue
        span = spans.setdefault(key, [start, start, 0])
        span[0], span[1] = min(span[0], start), max(span[1], start + int(length))
        span[2] += 1
    found = [Execution(key[1], key[3], *span) for key, span in spans.items()]
    return sorted(found, key=lambda one: (one.start_ns, one.end_ns))


def _key(event: Mapping[str, Any]) -> tuple[str, ...] | None:
    try:
        extra = json.loads(event.get("extra_attributes_json") or "{}")
    except (TypeError, ValueError):
        extra = {}
    if not isinstance(extra, Mapping):
        extra = {}

    def value(name: str) -> Any:
        return event[name] if event.get(name) is not None else extra.get(name)

    run = value("flow_id") if value("flow_id") is not None else value("exec_id")
    if run is None:
        return None
    return (str(value("process_id")), str(value("model_id")), str(run), str(value("nc_idx")))


def _start(event: Mapping[str, Any]) -> int | None:
    start = event.get("timestamp", event.get("start_ts"))
    return int(start) if isinstance(start, (int, float)) else None

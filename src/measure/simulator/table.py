"""Device time in the profiler's rows (`key_averages()`) and in the exported trace, from the markers
beside executions.

Both name the same owner for an execution: the innermost row around its marker, or for a compiled
graph the row `Torch-Compiled Region`. The markers themselves are taken out.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from typing import Any

from .record import MARKER, Event

_REGION = "Torch-Compiled Region"


def _exec_id(name: str) -> int:
    return int(name.removeprefix(MARKER))


def correlate_rows(rows: Any, executions: Mapping[int, Event]) -> None:
    """Give each execution's device time to its owner's FunctionEvent, in place; `rows` is
    torch's EventList.
    """
    markers = [row for row in rows if row.name.startswith(MARKER)]
    if not markers:
        return
    owned: dict[int, list[Event]] = {}
    owners: dict[int, Any] = {}
    for marker in markers:
        parent = marker.cpu_parent
        if parent is not None:
            parent.cpu_children.remove(marker)
        event = executions.get(_exec_id(marker.name))
        owner = _owner(parent, event)
        if owner is not None and event is not None:
            owned.setdefault(id(owner), []).append(event)
            owners[id(owner)] = owner
    rows[:] = [row for row in rows if not row.name.startswith(MARKER)]
    names = {owner.name for owner in owners.values()}
    for row in rows:
        if row.name not in names or str(row.device_type) != "DeviceType.CPU":
            continue
        # torch's table adds up device time over rows it calls legacy; for those the row's own
        # kernels are its whole time, children included.
        row.is_legacy = True
        for event in _in_tree(row, owned):
            row.append_kernel(
                event.model.name if event.model else "",
                event.nc_idx,
                (event.duration_ns or 0) / 1000,
            )


def _owner(parent: Any, event: Event | None) -> Any:
    while parent is not None and parent.is_python_function:  # with_stack=True puts these between
        parent = parent.cpu_parent
    row = parent if event is not None and event.model and event.model.kind == "graph" else None
    while row is not None and not row.name.startswith(_REGION):
        row = row.cpu_parent
    return row or parent


def _in_tree(row: Any, owned: Mapping[int, list[Event]]) -> Iterable[Event]:
    yield from owned.get(id(row), ())
    for child in row.cpu_children:
        yield from _in_tree(child, owned)


def rewrite_trace(path: str, executions: Mapping[int, Event]) -> None:
    """Take the markers out of an exported Chrome trace, and put each execution in as a kernel
    row of its core.
    """
    opened: Any = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    complete = [
        one
        for one in events
        if one.get("ph") == "X" and one.get("cat") in ("cpu_op", "user_annotation")
    ]
    complete.sort(key=lambda one: (one["ts"], -one["dur"]))
    kernels: list[dict[str, Any]] = []
    busy_until: dict[int, float] = {}
    stacks: dict[Any, list[dict[str, Any]]] = {}
    for one in complete:
        stack = stacks.setdefault(one["tid"], [])
        while stack and stack[-1]["ts"] + stack[-1]["dur"] < one["ts"] + one["dur"]:
            stack.pop()
        if not one["name"].startswith(MARKER):
            stack.append(one)
            continue
        event = executions.get(_exec_id(one["name"]))
        if event is None or event.model is None:
            continue
        owner = stack[-1] if stack else None
        if event.model.kind == "graph":
            owner = next((row for row in reversed(stack) if row["name"].startswith(_REGION)), owner)
        start = max(one["ts"], busy_until.get(event.nc_idx, 0.0))
        busy_until[event.nc_idx] = start + (event.duration_ns or 0) / 1000
        kernels.append(_kernel_row(event, owner, start))
    kept = [one for one in events if not str(one.get("name", "")).startswith(MARKER)]
    for core in sorted(busy_until):
        for kind, value in (
            ("process_name", "neuron (simulated)"),
            ("thread_name", f"NC {core} (simulated)"),
        ):
            kept.append(
                {
                    "name": kind,
                    "ph": "M",
                    "pid": "neuron",
                    "tid": f"NC {core}",
                    "ts": 0,
                    "args": {"name": value},
                }
            )
    trace["traceEvents"] = kept + kernels
    trace["simulated"] = True
    with opened(path, "wt", encoding="utf-8") as file:
        json.dump(trace, file)


def _kernel_row(event: Event, owner: dict[str, Any] | None, start_us: float) -> dict[str, Any]:
    assert event.model is not None
    args: dict[str, Any] = {
        "simulated": True,
        "correlation": event.exec_id,
        "exec_id": event.exec_id,
        "model_id": event.model.model_id,
        "nc_idx": event.nc_idx,
        "operator": owner["name"] if owner else None,
    }
    if owner and "External id" in owner.get("args", {}):
        args["External id"] = owner["args"]["External id"]
    return {
        "ph": "X",
        "cat": "kernel",
        "name": event.model.name,
        "pid": "neuron",
        "tid": f"NC {event.nc_idx}",
        "ts": start_us,
        "dur": (event.duration_ns or 0) / 1000,
        "args": args,
    }

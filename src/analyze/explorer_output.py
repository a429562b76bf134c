"""What neuron-explorer printed or wrote, as rows and device time.

Called by explorer/sessions.py. Layouts as published, and each of them is allowed to be otherwise:
what cannot be read is None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import executions

EVENTS = ("trace_event", "trace_events")  # real files have the first, the documentation the second
# The first bracket of a line that is not indented, as the inside of printed JSON is; after a log
# line's own [mark] the next brace as well.
_START = re.compile(
    r"^(?=[^\s}\],\"])[^\n{\[]*(?P<brace>[{\[])"
    r"(?:[^\n{]{0,300}\][^\n{]{0,300}(?P<later>\{))?",
    re.MULTILINE,
)


@dataclass(frozen=True)
class DeviceTime:
    """The executions of one session, in microseconds of the device's own clock."""

    executions: int
    busy_us: float
    """Sum of their lengths, each merged over the physical cores of its logical core."""
    union_us: float
    """Time in which at least one ran, on any core."""
    span_us: float
    """First start to last end."""
    by_core_us: dict[str, float] = field(default_factory=dict)
    """Busy time of each logical core."""
    models: int = 0


def json_in(text: str) -> Any:
    """Return the largest JSON object or list among log lines; None without any, or cut short."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    decoder, best, length, passed = json.JSONDecoder(), None, 0, 0
    for match in _START.finditer(text):
        if match.start() < passed:  # inside of what was read already
            continue
        for place in filter(lambda at: at >= 0, (match.start("brace"), match.start("later"))):
            try:
                found, passed = decoder.raw_decode(text, place)
            except ValueError:
                continue
            if found and passed - place > length:
                best, length = found, passed - place
            break
    return best


def events_in(data: Any) -> list[Any]:
    """Return the system profile's rows, under either spelling; empty when there are none."""
    if isinstance(data, list):
        return data
    if isinstance(data, Mapping):
        for key in EVENTS:
            if isinstance(data.get(key), list) and data[key]:
                return list(data[key])
    return []


def device_time(rows: Iterable[Any]) -> DeviceTime | None:
    """Add up the nc_exec_running rows; None when there is none, which is not zero time."""
    runs = executions.merge(rows)
    if not runs:
        return None
    by_core: dict[str, float] = {}
    for run in runs:
        by_core[run.core] = by_core.get(run.core, 0.0) + run.length_us
    union_ns, end_ns = 0, runs[0].start_ns
    for run in runs:  # in order of start
        union_ns += max(run.end_ns - max(run.start_ns, end_ns), 0)
        end_ns = max(end_ns, run.end_ns)
    return DeviceTime(
        executions=len(runs),
        busy_us=sum(by_core.values()),
        union_us=union_ns / 1000,
        span_us=(end_ns - runs[0].start_ns) / 1000,
        by_core_us=by_core,
        models=len({run.model_id for run in runs}),
    )

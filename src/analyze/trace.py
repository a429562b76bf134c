"""A reader of trace.json, the Chrome trace of torch.profiler: step marks and self times.

For reports and later analyses, on any machine; it needs no torch. Times are microseconds.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..rundir import OperatorRow

# Categories of spans on the host's threads, which nest. The others are instants or device rows.
HOST_CATEGORIES = ("cpu_op", "user_annotation", "python_function")
GZIP = b"\x1f\x8b"
STEP_MARK = re.compile(r"ProfilerStep#(\d+)")


@dataclass(frozen=True)
class StepMark:
    """One profiled step as `prof.step()` marked it."""

    number: int
    ts_us: float
    dur_us: float


@dataclass
class _Span:
    name: str
    category: str
    start_ns: int
    end_ns: int
    children_ns: int = 0
    only_child: _Span | None = None
    children: int = 0


@dataclass
class _Sum:
    calls: int = 0
    self_ns: int = 0
    total_ns: int = 0
    annotation: bool = False


def read_steps(path: Path) -> list[StepMark]:
    """Return the steps that the trace marks, in order of time; UserError when it is no trace."""
    marks = []
    for event in complete_events(load(path)):
        match = STEP_MARK.fullmatch(event["name"])
        if match and event.get("cat") == "user_annotation":
            marks.append(StepMark(int(match[1]), float(event["ts"]), float(event["dur"])))
    return sorted(marks, key=lambda mark: (mark.ts_us, mark.number))


def read_operators(path: Path) -> list[OperatorRow]:
    """Return calls and CPU times by name, equal to torch's key_averages(), in order of time.

    One pass with a stack per thread. Spans of one thread that overlap only in part are not
    parent and child; a span that is its namesake's only child is the same call (both as torch
    has it). Device time is not in here: trace.json's device rows are not bound to one meaning.
    """
    threads: dict[tuple[Any, Any], list[_Span]] = {}
    for event in complete_events(load(path)):
        if event.get("cat") in HOST_CATEGORIES:
            thread = (str(event.get("pid")), str(event.get("tid")))
            threads.setdefault(thread, []).append(_span(event))
    for spans in threads.values():
        spans.sort(key=lambda span: (span.start_ns, -span.end_ns))
    sums: dict[str, _Sum] = {}
    for span in sorted((s for spans in threads.values() for s in spans), key=_start):
        sums.setdefault(span.name, _Sum(annotation=span.category == "user_annotation"))
    for spans in threads.values():
        _add_thread(spans, sums)
    return [
        OperatorRow(
            name=name,
            calls=sum_.calls,
            self_cpu_us=sum_.self_ns / 1000,
            cpu_total_us=sum_.total_ns / 1000,
            annotation=sum_.annotation,
        )
        for name, sum_ in sums.items()
    ]


def _start(span: _Span) -> int:
    return span.start_ns


def _add_thread(spans: list[_Span], sums: dict[str, _Sum]) -> None:
    stack: list[_Span] = []
    for span in spans:
        while stack and not (span.start_ns < stack[-1].end_ns and span.end_ns <= stack[-1].end_ns):
            _close(stack.pop(), sums)
        if stack:
            parent = stack[-1]
            parent.children += 1
            parent.children_ns += span.end_ns - span.start_ns
            parent.only_child = span if parent.children == 1 else None
        stack.append(span)
    while stack:
        _close(stack.pop(), sums)


def _close(span: _Span, sums: dict[str, _Sum]) -> None:
    sum_ = sums[span.name]
    length = span.end_ns - span.start_ns
    sum_.self_ns += length - span.children_ns
    sum_.calls += 1
    sum_.total_ns += length
    child = span.only_child
    if child is not None and child.name == span.name:  # closed before its parent
        sum_.calls -= 1
        sum_.total_ns -= child.end_ns - child.start_ns


def _span(event: dict[str, Any]) -> _Span:
    # Whole nanoseconds, as the profiler recorded them: sums of floats near 1e13 would unnest spans.
    start = round(event["ts"] * 1000)
    # In torch's averages the steps are one row.
    name = "ProfilerStep*" if STEP_MARK.fullmatch(event["name"]) else event["name"]
    return _Span(name, event["cat"], start, start + round(event["dur"] * 1000))


def complete_events(data: Any) -> Iterator[dict[str, Any]]:
    """Yield the events that have a start and a length; what has another form is passed over."""
    events = data.get("traceEvents", []) if isinstance(data, dict) else data
    for event in events if isinstance(events, list) else []:
        if (
            isinstance(event, dict)
            and event.get("ph") == "X"
            and isinstance(event.get("name"), str)
            and isinstance(event.get("ts"), (int, float))
            and isinstance(event.get("dur"), (int, float))
        ):
            yield event


def load(path: Path) -> Any:
    """Return the parsed trace; UserError when it cannot be read."""
    try:
        data = path.read_bytes()
        return json.loads(gzip.decompress(data) if data.startswith(GZIP) else data)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read ({error}).") from None
    except ValueError as error:
        raise UserError(f"{path}: not a trace ({error}). Is it cut short?") from None

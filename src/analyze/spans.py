"""trace.json as nested host spans and device rows, for books, tables and the timeline.

Called by deeper.py, once a window. Never adds a host time to a device time.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from .trace import HOST_CATEGORIES, STEP_MARK, complete_events, load

OPERATOR, ANNOTATION = "cpu_op", "user_annotation"
DISPATCH_CATEGORIES = ("privateuse1_runtime", "privateuse1_driver")
"""Host-side dispatch and its interaction with the device; never engine time."""
KERNEL = "kernel"


@dataclass
class Span:
    """One span of a host thread. Times are ns of the trace's clock. Not changed after parse()."""

    name: str
    category: str
    thread: tuple[str, str]
    start_ns: int
    end_ns: int
    external_id: int | None = None
    dims: str | None = None
    """Sizes of the inputs, as "8x128, 128"; None without profiler.record_shapes."""
    types: str | None = None
    """Their types in the same order, as "BFloat16, float"."""
    parent: int | None = None
    """Place of the enclosing span in Trace.spans."""
    self_ns: int = 0
    """Without the time of the spans that it encloses."""

    @property
    def is_operator(self) -> bool:
        return self.category == OPERATOR


@dataclass(frozen=True)
class DeviceRow:
    """One row of category `kernel`."""

    name: str
    core: str
    start_ns: int
    duration_ns: int
    external_id: int | None
    args: dict[str, Any]
    owner: int | None = None
    """Place of the host span that launched it in Trace.spans; None when the trace has no link."""


@dataclass(frozen=True)
class Trace:
    """One window's trace.json."""

    spans: tuple[Span, ...]
    marks: tuple[Span, ...]
    """ProfilerStep#N, in order of time."""
    kernels: tuple[DeviceRow, ...]
    dispatch: tuple[Span, ...]
    simulated: bool

    @property
    def steps(self) -> int:
        return max(len(self.marks), 1)

    def inside_steps(self, span: Span) -> bool:
        """Whether a span starts inside a marked step; without any mark all of them count."""
        return not self.marks or self.mark_of(span) is not None

    def mark_of(self, span: Span) -> int | None:
        """Place in `marks` of the step in which a span starts."""
        place = bisect.bisect_right(self.mark_starts, span.start_ns) - 1
        return place if place >= 0 and span.start_ns < self.marks[place].end_ns else None

    @cached_property
    def mark_starts(self) -> list[int]:
        return [mark.start_ns for mark in self.marks]

    def ancestors(self, place: int | None) -> Iterable[int]:
        """The span itself and those around it, innermost first."""
        while place is not None:
            yield place
            place = self.spans[place].parent


def read(path: Path) -> Trace:
    """Read a trace; UserError when it is none."""
    return parse(load(path))


def parse(data: Any) -> Trace:
    """Take the spans and rows out of a parsed trace."""
    host: list[Span] = []
    rows: list[DeviceRow] = []
    dispatch: list[Span] = []
    simulated = isinstance(data, dict) and data.get("simulated") is True
    for event in complete_events(data):
        category = event.get("cat")
        if category in HOST_CATEGORIES:
            host.append(_span(event))
        elif category in DISPATCH_CATEGORIES:
            dispatch.append(_span(event))
        elif category == KERNEL:
            rows.append(_row(event))
            simulated = simulated or rows[-1].args.get("simulated") is True
    spans = nest(host)
    places = {s.external_id: p for p, s in enumerate(spans) if s.external_id is not None}
    marks = [s for s in spans if s.category == ANNOTATION and STEP_MARK.fullmatch(s.name)]
    return Trace(
        spans=tuple(spans),
        marks=tuple(sorted(marks, key=lambda mark: mark.start_ns)),
        kernels=tuple(
            replace(row, owner=places.get(row.external_id) if row.external_id else None)
            for row in sorted(rows, key=lambda row: row.start_ns)
        ),
        dispatch=tuple(sorted(dispatch, key=lambda span: span.start_ns)),
        simulated=simulated,
    )


def nest(spans: Iterable[Span]) -> list[Span]:
    """Order spans by thread and time and note each one's parent and self time in it."""
    ordered, parents, self_ns = hierarchy(spans)
    for span, parent, own in zip(ordered, parents, self_ns, strict=True):
        span.parent, span.self_ns = parent, own
    return ordered


def hierarchy(spans: Iterable[Span]) -> tuple[list[Span], list[int | None], list[int]]:
    """Return the ordered spans, the places of their parents, and their self times in ns.

    As torch's table has it: spans of one thread that overlap only in part are not parent and child.
    """
    ordered = sorted(spans, key=lambda span: (span.thread, span.start_ns, -span.end_ns))
    self_ns = [span.end_ns - span.start_ns for span in ordered]
    parents: list[int | None] = []
    stack: list[int] = []
    for place, span in enumerate(ordered):
        while stack and not _encloses(ordered[stack[-1]], span):
            stack.pop()
        parents.append(stack[-1] if stack else None)
        if stack:
            self_ns[stack[-1]] -= span.end_ns - span.start_ns
        stack.append(place)
    return ordered, parents, self_ns


def union(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join intervals that overlap or touch, in order of time."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def length(intervals: Iterable[tuple[int, int]]) -> int:
    """Add up the intervals' lengths."""
    return sum(end - start for start, end in intervals)


def _encloses(outer: Span, inner: Span) -> bool:
    return (
        outer.thread == inner.thread
        and inner.start_ns < outer.end_ns
        and inner.end_ns <= outer.end_ns
    )


def _span(event: dict[str, Any]) -> Span:
    args = event.get("args") if isinstance(event.get("args"), dict) else {}
    assert args is not None
    dims, types = _inputs(args)
    start = round(event["ts"] * 1000)  # the profiler recorded whole nanoseconds
    return Span(
        name=event["name"],
        category=event["cat"],
        thread=(str(event.get("pid")), str(event.get("tid"))),
        start_ns=start,
        end_ns=start + round(event["dur"] * 1000),
        external_id=args.get("External id"),
        dims=dims,
        types=types,
    )


def _row(event: dict[str, Any]) -> DeviceRow:
    args = event.get("args") if isinstance(event.get("args"), dict) else {}
    assert args is not None
    core = args.get("nc_idx")
    return DeviceRow(
        name=event["name"],
        core=str(event.get("tid") if core is None else core),
        start_ns=round(event["ts"] * 1000),
        duration_ns=round(event["dur"] * 1000),
        external_id=args.get("External id"),
        args=args,
    )


def _inputs(args: dict[str, Any]) -> tuple[str | None, str | None]:
    """Sizes and types of the inputs that are tensors with a size."""
    dims, types = args.get("Input Dims"), args.get("Input type")
    if not isinstance(dims, list):
        return None, None
    names = types if isinstance(types, list) and len(types) == len(dims) else ["?"] * len(dims)
    found: list[tuple[list[Any], str]] = []
    for sizes, name in zip(dims, names, strict=True):
        if isinstance(sizes, list) and sizes:
            several = sizes if isinstance(sizes[0], list) else [sizes]  # a list of tensors
            found += [(one, str(name).removeprefix("c10::")) for one in several if one]
    return (
        ", ".join("x".join(map(str, sizes)) for sizes, _ in found),
        ", ".join(name for _, name in found),
    )

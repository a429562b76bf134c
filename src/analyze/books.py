"""Books that balance: where the time of a window went, per step, on the device and on the host.

Device: Self NEURON + idle = span + overlap + residual. Host: operators + outside = span - residual.
Each book is on one clock; the two are never added.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .device_clock import DeviceClock, Run
from .spans import Span, Trace, hierarchy, length, union

MOVES = frozenset({"aten::copy_", "aten::_to_copy", "aten::_local_scalar_dense"})


@dataclass(frozen=True)
class Gap:
    """Time on one core between two executions, waiting for the second."""

    before: str
    core: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class DeviceBook:
    """One window of the device, per step, in microseconds of the source's clock."""

    source: str
    executions: float
    span_us: float
    """From the first execution's start to the last one's end."""
    busy_us: float
    """Sum of the executions, each merged over its physical cores."""
    union_us: float
    """Time in which at least one core executed."""
    idle_us: float
    """Time in which no core executed: span - union."""
    overlap_us: float
    """Counted more than once in busy because cores worked side by side: busy - union."""
    self_neuron_us: float | None
    residual_us: float | None
    """Self NEURON - busy: what the operators' table has more (or less) than the executions."""
    gaps: int
    """Of the whole window."""
    longest_gap_us: float
    longest_gap_before: str | None
    gap_us_before: dict[str, float]
    """Operator -> gap time before its executions, largest first."""


@dataclass(frozen=True)
class HostBook:
    """The marked steps of the host thread that ran them, per step, in microseconds."""

    span_us: float
    operators_us: float
    """Self CPU of the operators; annotations and Python frames are no operators."""
    outside_us: float
    """Inside the step, but in no operator."""
    residual_us: float
    """What neither explains: spans that overlap without nesting."""


def device_book(clock: DeviceClock, steps: int, self_neuron_us: float | None) -> DeviceBook:
    """Balance a window; `self_neuron_us` is the table's, per step."""
    runs = clock.runs
    span = max(run.end_ns for run in runs) - min(run.start_ns for run in runs)
    busy = sum(run.end_ns - run.start_ns for run in runs)
    joined = length(union((run.start_ns, run.end_ns) for run in runs))
    found = gaps(runs)
    longest = max(found, key=_length, default=None)
    before: dict[str, float] = {}
    for gap in sorted(found, key=_length, reverse=True):
        before[gap.before] = before.get(gap.before, 0.0) + _length(gap) / 1000 / steps
    per_step = 1000 * steps
    return DeviceBook(
        source=clock.source,
        executions=len(runs) / steps,
        span_us=span / per_step,
        busy_us=busy / per_step,
        union_us=joined / per_step,
        idle_us=(span - joined) / per_step,
        overlap_us=(busy - joined) / per_step,
        self_neuron_us=self_neuron_us,
        residual_us=None if self_neuron_us is None else self_neuron_us - busy / per_step,
        gaps=len(found),
        longest_gap_us=_length(longest) / 1000 if longest else 0.0,
        longest_gap_before=longest.before if longest else None,
        gap_us_before=dict(sorted(before.items(), key=lambda item: -item[1])),
    )


def gaps(runs: Iterable[Run]) -> list[Gap]:
    """The times in which a core waited between its executions, in order of the runs' start."""
    busy_until: dict[str, int] = {}
    found = []
    for run in sorted(runs, key=lambda run: (run.start_ns, run.end_ns)):
        before = busy_until.get(run.core)
        if before is not None and run.start_ns > before:
            found.append(Gap(run.name, run.core, before, run.start_ns))
        busy_until[run.core] = max(run.end_ns, before or run.end_ns)
    return found


def host_book(trace: Trace) -> HostBook | None:
    """Balance the marked steps; None when the trace marks none."""
    if not trace.marks:
        return None
    inside: list[list[Span]] = [[] for _ in trace.marks]
    for one in trace.spans:
        place = trace.mark_of(one) if one.is_operator else None
        if place is not None and one.thread == trace.marks[place].thread:
            inside[place].append(one)
    span = own = outside = 0
    for mark, operators in zip(trace.marks, inside, strict=True):
        whole = mark.end_ns - mark.start_ns
        span += whole
        own += sum(hierarchy(operators)[2])  # without the annotations between them
        covered = union((one.start_ns, min(one.end_ns, mark.end_ns)) for one in operators)
        outside += whole - length(covered)
    scale = 1000 * len(trace.marks)
    return HostBook(span / scale, own / scale, outside / scale, (span - own - outside) / scale)


def copy_operators(trace: Trace) -> dict[str, dict[str, float]]:
    """Operators that copy, by the outermost operator that caused them -> name -> calls per step.

    The trace does not say between which devices; nested copy operators are one copy.
    """
    found: dict[str, dict[str, float]] = {}
    holds_one = {
        above
        for place, span in enumerate(trace.spans)
        if span.name in MOVES
        for above in list(trace.ancestors(place))[1:]
    }
    for place, span in enumerate(trace.spans):
        if span.name not in MOVES or place in holds_one or not trace.inside_steps(span):
            continue
        around = [p for p in trace.ancestors(place) if trace.spans[p].is_operator]
        cause = found.setdefault(trace.spans[around[-1]].name, {})
        cause[span.name] = cause.get(span.name, 0.0) + 1 / trace.steps
    return found


def _length(gap: Gap) -> int:
    return gap.end_ns - gap.start_ns

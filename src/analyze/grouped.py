"""Tables of one window by module and by operator and input shape, per step.

Called by deeper.py. Device time is there only where the trace links executions to host spans, and
each execution goes to one row: to the operator that launched it, and to its innermost module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .spans import ANNOTATION, Span, Trace, hierarchy

# workload.annotate=modules marks `module: layers.0.attn`; torch's with_modules and with_stack
# leave `nn.Module: Linear_0`.
MODULE = re.compile(r"(?:nn\.Module|module): ?(.+)")
NO_MODULE = "(outside any module)"


@dataclass(frozen=True)
class ShapeRow:
    """An operator with one set of input shapes."""

    operator: str
    shapes: str | None
    """None: the profiler did not record shapes."""
    types: str | None
    calls: float
    self_cpu_us: float
    self_neuron_us: float | None
    executions: float | None


@dataclass(frozen=True)
class ModuleRow:
    """A module; `self` leaves out the modules inside it."""

    module: str
    calls: float
    operator_calls: float
    """Of operators directly in it that are in no other operator."""
    self_cpu_us: float
    cpu_total_us: float
    """From its start to its end, modules inside it included."""
    self_neuron_us: float | None
    neuron_total_us: float | None


@dataclass
class _Sum:
    calls: int = 0
    operators: int = 0
    cpu_ns: int = 0
    total_ns: int = 0
    device_ns: int = 0
    device_total_ns: int = 0
    executions: int = 0


def by_shape(trace: Trace) -> tuple[ShapeRow, ...]:
    """Group the operators inside the steps; hottest first by device time, then by host time."""
    sums: dict[tuple[str, str | None, str | None], _Sum] = {}
    for span in trace.spans:
        if span.is_operator and trace.inside_steps(span):
            found = sums.setdefault((span.name, span.dims, span.types), _Sum())
            found.calls += 1
            found.cpu_ns += span.self_ns
    for row in trace.kernels:
        owner = _owner(trace, row.owner)
        found_ = sums.get((owner.name, owner.dims, owner.types)) if owner else None
        if found_ is not None:
            found_.device_ns += row.duration_ns
            found_.executions += 1
    scale = trace.steps
    rows = [
        ShapeRow(
            *key,
            calls=one.calls / scale,
            self_cpu_us=one.cpu_ns / 1000 / scale,
            self_neuron_us=one.device_ns / 1000 / scale if one.executions else None,
            executions=one.executions / scale if one.executions else None,
        )
        for key, one in sums.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-(row.self_neuron_us or 0.0), -row.self_cpu_us)))


def by_module(trace: Trace) -> tuple[ModuleRow, ...]:
    """Group by module marks, in order of the first mark; empty when there are none."""
    names = [_module(span) for span in trace.spans]
    if not any(names):
        return ()
    sums: dict[str, _Sum] = {}
    ordered = sorted(range(len(names)), key=lambda place: trace.spans[place].start_ns)
    for place in ordered:
        span, name = trace.spans[place], names[place]
        if name and trace.inside_steps(span):
            found = sums.setdefault(name, _Sum())
            found.calls += 1
            if name not in (names[p] for p in list(trace.ancestors(place))[1:]):  # not recursive
                found.total_ns += span.end_ns - span.start_ns
    for place in ordered:
        span = trace.spans[place]
        if span.is_operator and trace.inside_steps(span):
            found = sums.setdefault(_around(trace, place, names)[0], _Sum())
            found.cpu_ns += span.self_ns
            parents = list(trace.ancestors(place))[1:]
            found.operators += not any(trace.spans[p].is_operator for p in parents)
    linked = 0
    for row in trace.kernels:
        if row.owner is not None and trace.inside_steps(trace.spans[row.owner]):
            around = _around(trace, row.owner, names)
            sums.setdefault(around[0], _Sum()).device_ns += row.duration_ns
            for name in set(around):
                sums.setdefault(name, _Sum()).device_total_ns += row.duration_ns
            linked += 1
    scale = 1000 * trace.steps
    return tuple(
        ModuleRow(
            module=name,
            calls=one.calls / trace.steps,
            operator_calls=one.operators / trace.steps,
            self_cpu_us=one.cpu_ns / scale,
            cpu_total_us=one.total_ns / scale,
            self_neuron_us=one.device_ns / scale if linked else None,
            neuron_total_us=one.device_total_ns / scale if linked else None,
        )
        for name, one in sums.items()
    )


def host_lane(trace: Trace) -> list[Span]:
    """The operators inside the steps that are in no other operator, in order of time."""
    ordered, parents, _ = hierarchy(
        one for one in trace.spans if one.is_operator and trace.inside_steps(one)
    )
    outermost = [one for one, above in zip(ordered, parents, strict=True) if above is None]
    return sorted(outermost, key=lambda span: span.start_ns)


def _module(span: Span) -> str | None:
    if span.category not in (ANNOTATION, "python_function"):
        return None
    match = MODULE.fullmatch(span.name)
    return match[1] if match else None


def _around(trace: Trace, place: int, names: list[str | None]) -> list[str]:
    found = [name for p in trace.ancestors(place) if (name := names[p])]
    return found or [NO_MODULE]


def _owner(trace: Trace, place: int | None) -> Span | None:
    if place is None:
        return None
    around = [trace.spans[p] for p in trace.ancestors(place) if trace.spans[p].is_operator]
    return around[0] if around and trace.inside_steps(around[0]) else None

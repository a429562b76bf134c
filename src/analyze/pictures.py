"""The lanes of timeline.svg from one window: what is drawn, on which clock, with which words.

Called by deeper.py. The host's lane is always the trace's clock; the device's lane shares it only
when its source does.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import workload_rules
from ..schema import Spec
from . import timeline
from .books import DeviceBook, HostBook
from .device_clock import DeviceClock
from .grouped import host_lane
from .markup import number, some
from .operators import Summary
from .spans import Trace
from .timeline import Box, Lane

NO_CLOCK = (
    "not known when: no readable file of this run has start times of executions "
    "(trace.json has dispatch only; neuron-explorer can read ntrace.pb)"
)


def draw(
    spec: Spec,
    trace: Trace,
    clock: DeviceClock | None,
    device: DeviceBook | None,
    host: HostBook | None,
    summary: Summary,
) -> str:
    """Return timeline.svg of a window."""
    host_boxes = [_box(one.name, one.start_ns, one.end_ns) for one in host_lane(trace)]
    device_boxes = [_box(run.name, run.start_ns, run.end_ns) for run in clock.runs] if clock else []
    marks = [_box(mark.name, mark.start_ns, mark.end_ns) for mark in trace.marks]
    host_span = _span(marks or host_boxes)
    device_span = _span(device_boxes)
    if clock is not None and clock.shares_host_clock:
        host_span = device_span = _span([*marks, *host_boxes, *device_boxes])
    return timeline.draw(
        _title(spec, summary),
        Lane(
            "Host",
            tuple(host_boxes),
            *host_span,
            caption=_host_caption(host, summary.simulated, len(host_boxes)),
            gap_word="host: in no operator",
        ),
        Lane(
            "Device",
            tuple(device_boxes),
            *device_span,
            caption=_device_caption(clock, device),
            gap_word="device: idle",
            note="" if clock else NO_CLOCK,
            fixed_us=(clock.fixed_us or 0.0) if clock else 0.0,
        ),
        summary.simulated,
    )


def _box(name: str, start_ns: int, end_ns: int) -> Box:
    return Box(name, start_ns / 1000, end_ns / 1000)


def _span(boxes: Sequence[Box]) -> tuple[float, float]:
    if not boxes:
        return 0.0, 0.0
    return min(box.start_us for box in boxes), max(box.end_us for box in boxes)


def _title(spec: Spec, summary: Summary) -> str:
    config = spec.config
    sizes = " ".join([*workload_rules.input_words(config.input), config.input.dtype])
    total = summary.metrics.get("self_neuron_us")
    told = f", Self NEURON {number(total)} us per step" if total is not None else ""
    word = "SIMULATED: " if summary.simulated else ""
    return f"{word}{workload_rules.title(config)} {config.variant.name}, {sizes}{told}"


def _host_caption(book: HostBook | None, simulated: bool, operators: int) -> str:
    clock = "this computer's Python, not Trainium's host" if simulated else "clock: trace.json"
    told = some(operators, "outermost operator")
    if book is not None:
        told += (
            f"; per step {number(book.span_us)} us: {number(book.operators_us)} in operators, "
            f"{number(book.outside_us)} in none"
        )
    return f"{told} ({clock})"


def _device_caption(clock: DeviceClock | None, book: DeviceBook | None) -> str:
    if clock is None or book is None:
        return ""
    return (
        f"{some(len(clock.runs), 'execution')}; per step {number(book.span_us)} us: "
        f"{number(book.union_us)} busy, {number(book.idle_us)} idle in {some(book.gaps, 'gap')} "
        f"(clock: {clock.source})"
    )

"""What would help next, in words and with the arithmetic, from one measured run.

Called by deeper.py, never for simulated time: that would repeat the cost model's assumptions as
if they were findings. A bound is a model of the time, and each sentence has its numbers in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..schema import Config
from .books import DeviceBook
from .chips import Peaks
from .grouped import ShapeRow
from .operator_work import ATTENTION, MATRIX, estimate
from .operators import COMPILED_REGION, StepRow, Summary
from .roofline import COMPUTE, DISPATCH, HALF, MEMORY, Bound, Dispatch, Floor, Work

SIMULATED = "None: the device time is simulated, and advice from it would only repeat the model."
HOT_SHARE = 10.0  # percent of Self NEURON that makes an operator worth a sentence
MOST_HOT = 4
IDLE_SHARE = 0.2  # of the device's span, from which on idling is worth a sentence


@dataclass(frozen=True)
class Facts:
    """What is known of the run; what is not known is None."""

    config: Config
    summary: Summary
    peaks: Peaks
    work: Work | None
    floor: Floor | None
    dispatch: Dispatch | None
    bound: Bound | None
    shapes: Sequence[ShapeRow] = ()
    book: DeviceBook | None = None
    compiles: int = 0
    fallbacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Hot:
    """One hot operator: its share, its bound by the model, and what to try."""

    name: str
    percent: float
    bound: str
    reason: str
    attempt: str


def hot_operators(facts: Facts) -> tuple[Hot, ...]:
    """The operators that take most of Self NEURON, at most four."""
    rows = [row for row in facts.summary.rows if row.self_neuron_us and row.calls]
    worth = [row for row in rows if (row.neuron_percent or 0) >= HOT_SHARE] or rows[:1]
    return tuple(_hot(row, facts) for row in worth[:MOST_HOT])


def advise(facts: Facts) -> tuple[str, ...]:
    """Sentences, the most promising first; each stands alone."""
    if facts.summary.simulated:
        return (SIMULATED,)
    said = [
        _fewer_executions(facts),
        _larger_work(facts),
        _neither(facts),
        _idle(facts.book),
        _graph_breaks(facts.summary.rows),
        _fewer_shapes(facts),
        _fallbacks(facts.fallbacks),
    ]
    return tuple(filter(None, said)) or (
        "Nothing stands out: no part of the model explains half of the time.",
    )


def _hot(row: StepRow, facts: Facts) -> Hot:
    assert row.self_neuron_us is not None
    each = row.self_neuron_us / row.calls
    label, reason = _bound_of(row, each, facts)
    return Hot(row.label, row.neuron_percent or 0.0, label, reason, _attempt(row, label, facts))


def _bound_of(row: StepRow, each_us: float, facts: Facts) -> tuple[str, str]:
    fixed = facts.dispatch
    region = row.label.startswith(COMPILED_REGION)
    if fixed and fixed.each_us >= HALF * each_us:
        return DISPATCH, (
            f"about {fixed.each_us:,.0f} of {each_us:,.0f} us a call are the fixed cost of a "
            "device execution"
        )
    if region and facts.floor and facts.floor.us:
        return facts.floor.side, f"the step's unavoidable work needs {facts.floor.us:,.0f} us"
    found = _largest_shape(row.name, facts.shapes)
    work = estimate(found) if found else None
    if work is not None:
        read_us = work.bytes_read / facts.peaks.hbm_bytes_per_s * 1e6
        rate = facts.peaks.flops_per_s
        compute_us = work.flops / rate * 1e6 if work.flops and rate else 0.0
        if compute_us > read_us:
            return COMPUTE, (
                f"{work.flops or 0:.3g} flop a call need {compute_us:,.0f} us at TensorE's peak, "
                f"reading its inputs {read_us:,.0f} us"
            )
        return MEMORY, (
            f"reading {_size(work.bytes_read)} a call needs {read_us:,.0f} us at "
            f"{facts.peaks.hbm_bytes_per_s / 1e9:,.0f} GB/s, its arithmetic {compute_us:,.0f} us"
        )
    if row.name in MATRIX | ATTENTION or region:
        return "not dispatch-bound", (
            f"{each_us:,.0f} us a call; memory or arithmetic, which takes shapes to tell: "
            "profiler.record_shapes=true"
        )
    return MEMORY, f"{each_us:,.0f} us a call, and it does little arithmetic for each byte"


def _largest_shape(name: str, shapes: Sequence[ShapeRow]) -> ShapeRow | None:
    """The row of an operator that took most of its time; the rows are hottest first."""
    return next((row for row in shapes if row.operator == name and row.shapes), None)


def _attempt(row: StepRow, label: str, facts: Facts) -> str:
    options = _options(facts.config)
    if label == COMPUTE:
        if facts.config.input.dtype == "float32":
            return "input.dtype=bfloat16: TensorE does about four times as much in it"
        return "larger matrices a call, so that TensorE stays full: a larger batch"
    if options and not row.label.startswith(COMPILED_REGION):
        why = "fewer executions" if label == DISPATCH else "intermediates that stay on the chip"
        return f"{why}: {' or '.join(options)}"
    if label == DISPATCH:
        return "more work in each execution: a larger batch (input=large)"
    if facts.config.input.dtype == "float32":
        return "input.dtype=bfloat16: half of the bytes"
    return "a kernel that keeps intermediates on the chip; profiler=combined shows the engines"


def _options(config: Config) -> list[str]:
    """Variants that the workload has and this run is not."""
    found = []
    if "fused" in config.workload.implementations and config.variant.implementation != "fused":
        found.append("variant=fused (a fused operator)")
    if config.variant.compile is None:
        found.append("variant=compiled (torch.compile)")
    return found


def _fewer_executions(facts: Facts) -> str:
    fixed, total = facts.dispatch, facts.summary.metrics.get("self_neuron_us")
    if fixed is None or not total or fixed.executions <= 1:
        return ""
    share = min(fixed.us / total, 1.0)
    noun = "device executions" if fixed.counted else "operator calls (executions are not counted)"
    said = (
        f"{fixed.executions:,.4g} {noun} at about {fixed.each_us:,.0f} us of fixed cost each "
        f"({fixed.source}) are {fixed.us:,.0f} of {total:,.0f} us, {share:.0%} of Self NEURON."
    )
    least = facts.floor.us if facts.floor else None
    options = _options(facts.config)
    if share < HALF / 2 or not options:
        return said if share >= HALF / 2 else ""
    said += f" Fewer executions would help: {' or '.join(options)}."
    if least is not None and facts.work is not None:
        one = fixed.each_us + least
        if one < total:
            said += (
                f" One execution that does only the unavoidable work ({_amount(facts.work)}) would "
                f"take at best about 1 x {fixed.each_us:,.0f} + {least:,.0f} = {one:,.0f} us, "
                f"{total / one:,.1f} times less."
            )
    return said


def _larger_work(facts: Facts) -> str:
    fixed, total = facts.dispatch, facts.summary.metrics.get("self_neuron_us")
    if fixed is None or not total or fixed.executions > 1 or not fixed.counted:
        return ""
    if fixed.us < HALF * total:
        return ""
    said = (
        f"One device execution is the fewest there can be, and about {fixed.us:,.0f} of "
        f"{total:,.0f} us are its fixed cost. More work in it costs little more: a larger batch."
    )
    least = facts.floor.us if facts.floor else None
    if least:
        rest = max(total - fixed.us, least)
        said += (
            f" Eight times the work would take about {fixed.us:,.0f} + 8 x {rest:,.0f} = "
            f"{fixed.us + 8 * rest:,.0f} us, {8 * total / (fixed.us + 8 * rest):,.1f} times the "
            "throughput."
        )
    return said


def _neither(facts: Facts) -> str:
    if facts.bound is None or facts.bound.label is not None:
        return ""
    return (
        f"Neither the fixed cost nor the floor takes half of the time: {facts.bound.reason}. "
        "profiler=combined records the engines, and neuron-explorer shows which of them works."
    )


def _idle(book: DeviceBook | None) -> str:
    if book is None or not book.span_us or book.idle_us < IDLE_SHARE * book.span_us:
        return ""
    longest = f", the longest {book.longest_gap_us:,.0f} us before `{book.longest_gap_before}`"
    return (
        f"The device waits {book.idle_us:,.0f} of {book.span_us:,.0f} us a step "
        f"({book.idle_us / book.span_us:.0%}) between executions{longest}: the host does not keep "
        "up. Fewer and larger executions, or execution=async, close the gaps."
    )


def _graph_breaks(rows: Sequence[StepRow]) -> str:
    regions = [row for row in rows if row.label.startswith(COMPILED_REGION) and row.calls]
    if len(regions) < 2:
        return ""
    return (
        f"torch.compile made {len(regions)} regions that run in a step, each with executions of "
        "its own: graph breaks (variant.compile.fullgraph=true names the first) or several shapes."
    )


def _fewer_shapes(facts: Facts) -> str:
    if not facts.compiles:
        return ""
    return (
        f"{facts.compiles} graph(s) were compiled inside the windows: each new shape is compiled "
        "anew. Fewer shapes (pad to a few sizes) or more warm-up (profiler.warmup)."
    )


def _fallbacks(names: tuple[str, ...]) -> str:
    if not names:
        return ""
    return (
        f"{', '.join(names)} ran on the CPU, which costs two copies and a wait each time: another "
        "way to write it keeps it on the device."
    )


def _amount(work: Work) -> str:
    parts = [_size(work.bytes_moved)] if work.bytes_moved else []
    if work.flops:
        parts.append(f"{work.flops:.3g} flop in {work.dtype}")
    return ", ".join(parts)


def _size(size_bytes: float) -> str:
    return f"{size_bytes / 1e6:,.1f} MB"

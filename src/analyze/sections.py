"""Sections of report.md: pictures, books, gaps, tables, roofline and advice.

Called by deeper.py. Only lays out; every number is made elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import books, grouped
from .advice import SIMULATED, Facts, advise, hot_operators
from .chips import SOURCE
from .device_clock import DeviceClock
from .markup import cell, count, grid, number, some, text
from .operators import Summary
from .spread import METHOD, over_windows
from .window import Seen

MOST_ROWS = 15
MOST_GAPS = 5
NO_DEVICE_BOOK = (
    "The device's book is missing: no readable file has start times of executions. trace.json has "
    "dispatch only, and ntrace.pb is for neuron-explorer to read."
)


def all_of(shown: Seen | None, windows: int, facts: Facts, picture: str) -> tuple[str, ...]:
    """Return the sections in the order of the report; those without content are left out."""
    word = ", simulated" if facts.summary.simulated else ""
    parts = []
    if shown is not None:
        parts += [
            _timeline(shown, picture, word),
            _books(shown, windows, facts.summary, word),
            _by_shape(shown, word),
            _by_module(shown, word),
        ]
    parts += [_limit(facts, word), _advice(facts)]
    return tuple(filter(None, parts))


def _timeline(shown: Seen, picture: str, word: str) -> str:
    return (
        f"## Timeline{word}\n\n![Host operators and device executions]({picture})\n\n"
        f"Window {shown.number + 1}, the one nearest to the median. trace.json opens in "
        "Perfetto (ui.perfetto.dev)."
    )


def _books(shown: Seen, windows: int, summary: Summary, word: str) -> str:
    parts = [f"## Where the time went, per step{word}"]
    book = shown.device
    if book is None:
        parts.append(NO_DEVICE_BOOK)
    else:
        rows = [("Self NEURON of the operators", number(book.self_neuron_us))]
        rows.append(("+ idle: no core executes", number(book.idle_us)))
        if number(book.overlap_us) != "0.0":
            rows.append(("- overlap: cores side by side", number(book.overlap_us)))
        rows += [
            ("- residual: Self NEURON - executions", number(book.residual_us)),
            ("**= span: first start to last end**", f"**{number(book.span_us)}**"),
        ]
        parts.append(
            f"{grid(('Device (us)', 'Value'), rows)}\n\n{some(book.executions, 'execution')}, "
            f"{number(book.busy_us)} us. Clock: {text(book.source)}. {_gaps(book, shown.steps)}"
        )
    if shown.host is not None:
        host = shown.host
        rows = [
            ("Self CPU of operators", number(host.operators_us)),
            ("+ in no operator", number(host.outside_us)),
            ("+ residual", number(host.residual_us)),
            ("**= span of the step's mark**", f"**{number(host.span_us)}**"),
        ]
        whose = " This host is not Trainium's." if summary.simulated else ""
        parts.append(
            f"{grid(('Host (us)', 'Value'), rows)}\n\nThe host's clock is another one: its times "
            f"are not added to the device's.{whose}"
        )
    parts += [_copies(shown.clock, books.copy_operators(shown.trace)), _spread(summary)]
    parts.append(f"{some(windows, 'window')} could be read; the metrics are medians over them.")
    return "\n\n".join(filter(None, parts))


def _gaps(book: books.DeviceBook, steps: int) -> str:
    if not book.gaps:
        return "No gap between the executions."
    before = list(book.gap_us_before.items())[:MOST_GAPS]
    listed = ", ".join(f"`{cell(name)}` {number(us)} us" for name, us in before)
    return (
        f"{some(book.gaps, 'gap')} in {some(steps, 'step')}, the longest "
        f"{number(book.longest_gap_us)} us before `{cell(book.longest_gap_before or '')}`. "
        f"Waiting per step, by the operator that came next: {listed}."
    )


def _copies(clock: DeviceClock | None, operators: dict[str, dict[str, float]]) -> str:
    parts = []
    if clock is not None and clock.copies:
        sums: dict[tuple[str, str], list[int]] = {}
        for copy in clock.copies:
            found = sums.setdefault((copy.direction, copy.before or ""), [0, 0])
            found[0] += 1
            found[1] += copy.bytes or 0
        listed = [
            f"{number_} {direction} ({size:,} bytes)"
            + (f", next execution `{cell(before)}`" if before else "")
            for (direction, before), (number_, size) in list(sums.items())[:MOST_GAPS]
        ]
        parts.append(f"Copies in the window, by the runtime: {'; '.join(listed)}.")
    if operators:
        listed = [
            f"`{cell(cause)}` ({', '.join(f'{name} x {count(n)}' for name, n in found.items())})"
            for cause, found in list(operators.items())[:MOST_GAPS]
        ]
        parts.append(
            "Operators that copied, by what caused them (the trace does not say from which device "
            f"to which): {', '.join(listed)}."
        )
    return " ".join(parts)


def _spread(summary: Summary) -> str:
    found = over_windows(summary.window_self_neuron_us)
    if found is None:
        return ""
    return (
        f"Self NEURON over {found.windows} windows: {number(found.smallest)} to "
        f"{number(found.largest)} us; {METHOD}: {number(found.low)} to {number(found.high)} us."
    )


def _by_shape(shown: Seen, word: str) -> str:
    rows = shown.shapes
    if not any(row.shapes is not None for row in rows):
        return ""
    cells = [
        (
            f"`{cell(row.operator)}`",
            text(row.shapes or "—"),
            text(row.types or "—"),
            count(row.calls),
            number(row.self_cpu_us),
            number(row.self_neuron_us),
        )
        for row in rows[:MOST_ROWS]
    ]
    head = ("Operator", "Input shapes", "Types", "Calls", "Self CPU (us)", "Self NEURON (us)")
    return f"## By operator and shape, per step{word}\n\n{grid(head, cells)}{_more(rows)}"


def _by_module(shown: Seen, word: str) -> str:
    rows = grouped.by_module(shown.trace)
    if not rows:
        return ""
    cells = [
        (
            f"`{cell(row.module)}`",
            count(row.calls),
            count(row.operator_calls),
            number(row.self_cpu_us),
            number(row.cpu_total_us),
            number(row.self_neuron_us),
            number(row.neuron_total_us),
        )
        for row in rows[: 2 * MOST_ROWS]
    ]
    head = (
        *("Module", "Calls", "Operators", "Self CPU (us)", "CPU total (us)"),
        *("Self NEURON (us)", "NEURON total (us)"),
    )
    return (
        f"## By module, per step{word}\n\n{grid(head, cells)}\n\nSelf is without the modules "
        f"inside.{_more(rows, 2 * MOST_ROWS)}"
    )


def _limit(facts: Facts, word: str) -> str:
    title = f"## Where is the limit{word}"
    work, least = facts.work, facts.floor
    if work is None or least is None or least.us is None:
        return f"{title}\n\nNot known: the run does not say how many bytes and flops a step needs."
    total = facts.summary.metrics.get("self_neuron_us")
    core, rate = facts.peaks, facts.peaks.flops_per_s
    what = "simulated time" if facts.summary.simulated else "Self NEURON"
    intensity = "—" if work.intensity is None else f"{work.intensity:,.2f} flop a byte"
    moved = f"{work.bytes_moved or 0:,.0f} bytes / {core.hbm_bytes_per_s / 1e9:,.1f} GB/s"
    peak = f"{rate / 1e12:,.1f} TFLOP/s {work.dtype}" if rate else f"no peak for {work.dtype}"
    rows = [
        (f"HBM: {moved}", number(least.memory_us)),
        (f"TensorE: {work.flops or 0:,.0f} flop / {peak}", number(least.compute_us)),
        ("**Floor: the larger one**", f"**{number(least.us)}**"),
        (f"Floor as a part of {what}", f"{least.us / total:.1%}" if total else "—"),
    ]
    said = [
        f"{title}\n\n{grid(('Least time of the work (us)', 'Value'), rows)}",
        f"Arithmetic intensity {intensity}. Peaks are those of {core}: {SOURCE}.",
    ]
    if facts.bound is not None:
        label = facts.bound.label or "no single bound"
        said.append(f"**{label}** ({facts.bound.source}): {text(facts.bound.reason)}.")
    elif facts.summary.simulated:
        said.append("No bound is named for simulated time: it would only repeat the cost model.")
    return "\n\n".join(said)


def _advice(facts: Facts) -> str:
    title = "## What would help next"
    if facts.summary.simulated:
        return f"{title}\n\n{SIMULATED}"
    if facts.summary.metrics.get("self_neuron_us") is None:
        return ""
    hot = [
        (f"`{cell(one.name)}`", f"{one.percent:.0f} %", one.bound, text(one.reason), one.attempt)
        for one in hot_operators(facts)
    ]
    head = ("Hot operator", "Of Self NEURON", "Bound (model)", "Because", "Try")
    table = grid(head, hot, align="---") if hot else "The device time is known as a total only."
    said = "\n".join(f"- {sentence}" for sentence in advise(facts))
    model = ""
    if facts.dispatch is not None:
        model = (
            "\n\nBounds are a model: executions x a fixed cost, bytes over HBM bandwidth, flops "
            f"over TensorE's peak. Fixed cost: {facts.dispatch.each_us:,.0f} us, "
            f"{facts.dispatch.source}. Engine metrics of neuron-explorer would replace it."
        )
    return f"{title}\n\n{table}\n\n{said}{model}"


def _more(rows: Sequence[object], most: int = MOST_ROWS) -> str:
    return f"\n\n{len(rows) - most} more rows in tables.json." if len(rows) > most else ""

"""The second look at a run: books, roofline, advice, tables, spread and the timeline.

Called by track/outcome.py after the summary. Writes timeline.svg, tables.json and roofline.json;
never changes the profile. What cannot be told is left out, and said in the report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from .. import rundir
from ..rundir import Operators
from ..schema import Spec
from . import books, grouped, pictures, roofline, sections, spread, window
from .advice import Facts
from .chips import SOURCE, peaks
from .operators import Summary
from .window import Seen

TIMELINE, TABLES, ROOFLINE = "timeline.svg", "tables.json", "roofline.json"
FROM_DEVICE: dict[str, Callable[[books.DeviceBook], float | None]] = {
    "window/span_us": lambda book: book.span_us,
    "window/busy_us": lambda book: book.busy_us,
    "window/idle_us": lambda book: book.idle_us,
    "window/residual_us": lambda book: book.residual_us,
    "window/longest_gap_us": lambda book: book.longest_gap_us,
}
FROM_HOST: dict[str, Callable[[books.HostBook], float]] = {
    "window/host_span_us": lambda book: book.span_us,
    "window/host_operators_us": lambda book: book.operators_us,
    "window/host_outside_us": lambda book: book.outside_us,
}


@dataclass(frozen=True)
class Deeper:
    """What the second look found."""

    metrics: dict[str, float]
    sections: tuple[str, ...]
    """Markdown for the report."""


def examine(
    directory: Path,
    spec: Spec,
    operators: Operators,
    summary: Summary,
    engines: Mapping[str, float] | None = None,
) -> Deeper:
    """Write the files, and return metrics and report sections.

    `engines` are fractions 0..1 as roofline.bound takes them; None: those of explorer.json, if
    neuron-explorer was asked.
    """
    stamp = rundir.read_json(directory / rundir.ENVIRONMENT)
    environment: Mapping[str, Any] = stamp if isinstance(stamp, Mapping) else {}
    if "simulated" in (spec.config.device.name, environment.get("device")):
        summary = replace(summary, simulated=True)  # also when it has no device time at all
    seen = window.read_all(directory / rundir.PROFILE, operators, summary.simulated)
    shown = window.middle(seen)
    work = roofline.work_from(rundir.read_json(directory / rundir.WORK))
    if engines is None:
        engines = _explored(directory)
    facts = facts_of(spec, operators, summary, shown, environment, work, engines)
    limits = limits_of(facts)
    for name, data in ((TABLES, tables_of(shown, len(seen), summary)), (ROOFLINE, limits)):
        if data:
            rundir.write_json(directory / name, data)
    if shown is not None:
        picture = pictures.draw(spec, shown.trace, shown.clock, shown.device, shown.host, summary)
        (directory / TIMELINE).write_text(picture, encoding="utf-8")
    metrics = {
        **book_metrics(seen),
        **{f"roofline/{key}": limits.get(key) for key in roofline.METRICS},
        **spread_metrics(summary),
    }
    return Deeper(
        {key: value for key, value in metrics.items() if value is not None},
        sections.all_of(shown, len(seen), facts, TIMELINE),
    )


def book_metrics(seen: Sequence[Seen]) -> dict[str, float | None]:
    """Medians over the windows; host and device each on their own clock."""
    devices = [one.device for one in seen if one.device is not None]
    hosts = [one.host for one in seen if one.host is not None]
    return {
        **{key: _median(map(take, devices)) for key, take in FROM_DEVICE.items()},
        **{key: _median(map(take, hosts)) for key, take in FROM_HOST.items()},
    }


def spread_metrics(summary: Summary) -> dict[str, float]:
    """Extremes and confidence interval of Self NEURON over the windows; none for one window."""
    found = spread.over_windows(summary.window_self_neuron_us)
    if found is None:
        return {}
    return {
        "spread/self_neuron_us_min": found.smallest,
        "spread/self_neuron_us_max": found.largest,
        "spread/self_neuron_us_ci95_low": found.low,
        "spread/self_neuron_us_ci95_high": found.high,
    }


def tables_of(shown: Seen | None, windows: int, summary: Summary) -> dict[str, Any]:
    """What tables.json holds: the books of the shown window and its tables."""
    if shown is None:
        return {}
    device = "simulated" if summary.simulated else "neuron"
    copies = shown.clock.copies if shown.clock else None

    def rows(table: Sequence[Any]) -> list[dict[str, Any]]:
        return [{"device": device, **asdict(row)} for row in table]

    return {
        "format": 1,
        "device": device,
        "window": shown.number,
        "windows_read": windows,
        "steps": shown.steps,
        "device_book": asdict(shown.device) if shown.device else None,
        "host_book": asdict(shown.host) if shown.host else None,
        "by_operator_and_shape": rows(shown.shapes),
        "by_module": rows(grouped.by_module(shown.trace)),
        "runtime_copies": None if copies is None else rows(copies),
        "copy_operators": books.copy_operators(shown.trace),
    }


def limits_of(facts: Facts) -> dict[str, Any]:
    """What roofline.json holds; empty when nobody says what the step's work is."""
    work, least, bound = facts.work, facts.floor, facts.bound
    total = facts.summary.metrics.get("self_neuron_us")
    if work is None or least is None or least.us is None:
        return {}
    return {
        "format": 1,
        "device": "simulated" if facts.summary.simulated else "neuron",
        "chip": asdict(facts.peaks),
        "chip_source": SOURCE,
        "work": asdict(work),
        "intensity_flops_per_byte": work.intensity,
        "memory_us": least.memory_us,
        "compute_us": least.compute_us,
        "floor_us": least.us,
        "attained_fraction": least.us / total if total else None,
        "attained_fraction_of": "simulated time" if facts.summary.simulated else "Self NEURON",
        "dispatch": asdict(facts.dispatch) if facts.dispatch else None,
        "bound": asdict(bound) if bound else None,
    }


def facts_of(
    spec: Spec,
    operators: Operators,
    summary: Summary,
    shown: Seen | None,
    environment: Mapping[str, Any],
    work: roofline.Work | None,
    engines: Mapping[str, float] | None = None,
) -> Facts:
    """Gather what roofline and advice need; the fixed cost and the bound of hardware runs only."""
    dtype = work.dtype if work else spec.config.input.dtype
    core = peaks(environment.get("chip"), environment.get("lnc"), dtype)
    least = roofline.floor(work, core) if work else None
    metrics = summary.metrics
    total = metrics.get("self_neuron_us")
    cheapest = [
        row.self_neuron_us / row.calls
        for row in summary.rows
        if row.self_neuron_us and row.calls and not summary.simulated
    ]
    fixed = bound = None
    if not summary.simulated and total:
        fixed = roofline.dispatch(
            metrics.get("executions"), metrics.get("operator_calls"), min(cheapest, default=None)
        )
        if least is not None or fixed is not None:
            bound = roofline.bound(total, least or roofline.Floor(None, None), fixed, engines)
    return Facts(
        config=spec.config,
        summary=summary,
        peaks=core,
        work=work,
        floor=least,
        dispatch=fixed,
        bound=bound,
        shapes=shown.shapes if shown else (),
        book=shown.device if shown else None,
        compiles=sum(one.compiles for one in operators.windows),
        fallbacks=operators.fallback_operators or (),
    )


def _explored(directory: Path) -> Mapping[str, float] | None:
    data = rundir.read_json(directory / rundir.EXPLORER)
    engines = data.get("engines") if isinstance(data, Mapping) else None
    if not isinstance(engines, Mapping):
        return None
    return {str(key): value for key, value in engines.items() if isinstance(value, (int, float))}


def _median(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None

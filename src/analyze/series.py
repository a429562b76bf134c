"""The numbers behind the pictures, so that page.py and plots.py draw the same ones.

Pure; microseconds of one step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .aligning import REST
from .comparison import Comparison, Row
from .measured import HEADLINE, Measured

MOST_OPERATORS = 8  # colours that can be told apart; the rest is one more part
# Okabe and Ito's palette, made to be told apart with any kind of colour vision.
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C", "#B8A500"
)  # fmt: skip
REST_COLOUR = "#D9D9D9"
WATERMARK = "SIMULATED"


@dataclass(frozen=True)
class Bars:
    """One metric: a series for each place on the axis, a category for each group."""

    categories: tuple[str, ...]
    series: dict[str, tuple[float | None, ...]]


@dataclass(frozen=True)
class Lines:
    """One metric over a numeric dimension: a series of (x, y) for each place on the axis."""

    dimension: str
    series: dict[str, tuple[tuple[float, float], ...]]


@dataclass(frozen=True)
class Stack:
    """Operators of several runs: the parts of each run's time."""

    runs: tuple[str, ...]
    parts: dict[str, tuple[float, ...]]


def labels(comparison: Comparison) -> list[str]:
    """The places on the axis in their order; the colour of a place is the colour of its index."""
    return list(dict.fromkeys(row.label for row in comparison.rows))


def colour(index: int) -> str:
    """The colour of a place on the axis, or of an operator."""
    return COLOURS[index % len(COLOURS)]


def bars(comparison: Comparison, metric: str = HEADLINE) -> Bars:
    """The newest run of each label in each group."""
    categories = tuple(group.title for group in comparison.groups)
    series: dict[str, list[float | None]] = {
        label: [None] * len(categories) for label in labels(comparison)
    }
    for place, group in enumerate(comparison.groups):
        for row in sorted(group.rows, key=lambda row: row.run.started_ms):
            value = row.run.metric(metric)
            if value is not None and row.run.finished:
                series[row.label][place] = value
    known = {k: tuple(v) for k, v in series.items() if any(x is not None for x in v)}
    return Bars(_shortened(categories), known)


def _shortened(titles: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out the words that all titles share, when something is left of each."""
    words = [title.split(" ") for title in titles]
    if len(words) < 2 or len({len(w) for w in words}) != 1:
        return titles
    differs = [len({w[i] for w in words}) > 1 for i in range(len(words[0]))]
    short = tuple(" ".join(w for w, d in zip(ws, differs, strict=True) if d) for ws in words)
    return short if all(short) and len(set(short)) == len(titles) else titles


def lines(comparison: Comparison, metric: str = HEADLINE) -> Lines | None:
    """The metric over the input's size; None with fewer than two sizes of one workload."""
    rows = [r for r in comparison.rows if r.run.dims and r.run.finished and r.run.metric(metric)]
    ranks = {len(row.run.dims) for row in rows}
    if len(ranks) != 1 or len({row.run.workload for row in rows}) != 1:
        return None
    rank = ranks.pop()
    varying = [d for d in range(rank) if len({row.run.dims[d] for row in rows}) > 1]
    if not varying:
        return None
    name = f"dim{varying[0]}" if len(varying) == 1 else "elements of the input"
    series: dict[str, dict[float, float]] = {}
    for row in sorted(rows, key=lambda row: row.run.started_ms):
        dims = row.run.dims
        x = float(dims[varying[0]] if len(varying) == 1 else math.prod(dims))
        label = row.label if comparison.across != "input" else row.run.variant
        series.setdefault(label, {})[x] = row.run.metric(metric) or 0.0
    return Lines(name, {label: tuple(sorted(points.items())) for label, points in series.items()})


def stack(rows: list[Row], metric: str = HEADLINE) -> Stack | None:
    """The operators of the runs, hottest first; None when no run tells."""
    rows = [row for row in rows if row.run.by_operator(metric)]
    if not rows:
        return None
    totals: dict[str, float] = {}
    for row in rows:
        for name, value in row.run.by_operator(metric).items():
            totals[name] = totals.get(name, 0.0) + value
    shown = sorted(totals, key=lambda name: -totals[name])[:MOST_OPERATORS]
    parts = {
        name: tuple(row.run.by_operator(metric).get(name, 0.0) for row in rows) for name in shown
    }
    rest = tuple(_rest(row.run, metric, shown) for row in rows)
    if any(rest):
        parts[REST] = rest
    named = [row.label for row in rows]
    names = [
        label if named.count(label) == 1 else f"{label} {row.run.short_id}"
        for label, row in zip(named, rows, strict=True)
    ]
    return Stack(tuple(names), parts)


def _rest(run: Measured, metric: str, shown: list[str]) -> float:
    total = run.metric(metric) or 0.0
    listed = math.fsum(run.by_operator(metric).get(name, 0.0) for name in shown)
    return total - listed if total - listed > 0.001 * total else 0.0

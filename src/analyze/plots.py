"""Pictures of a comparison as PNG files, drawn with matplotlib, which is imported late.

Called by track/summary_run.py. A picture with simulated runs says so across its plot area.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import series
from .aligning import REST
from .comparison import Comparison
from .measured import HEADLINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES = {HEADLINE: "Self NEURON (us per step)"}
SIZE_INCHES = (8.0, 4.5)
DPI = 120
LONGEST_LABEL = 40
MOST_TICKS = 8
MOST_GROUPS = 24  # wider pictures cannot be read; the page has all


def draw(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the pictures that the comparison has data for; returns their paths."""
    from matplotlib import rc_context

    # Own settings, so that a user's matplotlibrc cannot make the pictures dark or tiny.
    style: Any = {
        "font.size": 10.0,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#E5E5E5",
    }
    made = []
    with rc_context():
        import matplotlib

        matplotlib.rcdefaults()
        matplotlib.rcParams.update(style)
        for name, figure in (
            ("bars.png", _bars(comparison)),
            ("lines.png", _lines(comparison)),
            ("operators.png", _operators(comparison)),
        ):
            if figure is not None:
                path = folder / name
                figure.savefig(path, dpi=DPI)
                made.append(path)
    return made


def _figure(comparison: Comparison, height_factor: float = 1.0) -> tuple[Figure, Axes]:
    # Not through pyplot: it would keep the figures and look for a display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(SIZE_INCHES[0], SIZE_INCHES[1] * height_factor), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    if comparison.simulated:
        axes.text(
            0.5, 0.5, series.WATERMARK, transform=axes.transAxes, ha="center", va="center",
            fontsize=48, color="#B00020", alpha=0.16, rotation=20, weight="bold", zorder=10,
        )  # fmt: skip
    return figure, axes


def _titled(axes: Axes, title: str, comparison: Comparison) -> None:
    mark = " (simulated)" if comparison.simulated else ""
    axes.set_title(title + mark, loc="left", fontsize=11, weight="bold")


def _bars(comparison: Comparison) -> Figure | None:
    data = series.bars(comparison)
    if not data.series or not any(data.series.values()):
        return None
    places = range(min(len(data.categories), MOST_GROUPS))
    figure, axes = _figure(comparison)
    width = 0.8 / len(data.series)
    order = series.labels(comparison)
    for index, (label, values) in enumerate(data.series.items()):
        xs = [place - 0.4 + width * (index + 0.5) for place in places if values[place] is not None]
        heights = [value for place in places if (value := values[place]) is not None]
        colour = series.colour(order.index(label))
        drawn = axes.bar(xs, heights, width * 0.92, label=_cut(label), color=colour)
        if len(places) * len(data.series) <= 15:
            axes.bar_label(drawn, fmt="{:,.0f}", fontsize=8, padding=2)
    axes.set_xticks(list(places), [_cut(data.categories[place]) for place in places])
    if len(places) > 4:
        axes.tick_params(axis="x", rotation=30)
    axes.grid(axis="x", visible=False)
    axes.set_ylabel(TITLES[HEADLINE])
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.margins(y=0.12)
    _titled(axes, f"Device time by {comparison.across}", comparison)
    _legend(figure, axes)
    return figure


def _lines(comparison: Comparison) -> Figure | None:
    data = series.lines(comparison)
    if data is None or all(len(points) < 2 for points in data.series.values()):
        return None
    figure, axes = _figure(comparison)
    order = list(dict.fromkeys([*series.labels(comparison), *data.series]))
    for label, points in data.series.items():
        xs, ys = zip(*points, strict=True)
        index = order.index(label)
        # Marks and dashes of their own, so that equal lines show through each other.
        axes.plot(
            xs, ys, "osD^vP*X"[index % 8], label=_cut(label), color=series.colour(index),
            ls=("-", "--", "-.", ":")[index % 4], ms=max(4, 10 - 2 * index), alpha=0.85,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted({x for points in data.series.values() for x, _ in points})
    if len(sizes) <= MOST_TICKS:
        axes.set_xticks(sizes, [f"{size:,.0f}" for size in sizes])
        axes.xaxis.minorticks_off()
    axes.set_xlabel(f"{data.dimension} (log scale)")
    axes.set_ylabel(TITLES[HEADLINE] + ", log scale")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_minor_formatter("{x:,.0f}")
    axes.tick_params(axis="y", which="both", labelsize=8)
    _titled(axes, f"Device time over {data.dimension}", comparison)
    _legend(figure, axes)
    return figure


def _operators(comparison: Comparison) -> Figure | None:
    groups = [(g, s) for g in comparison.groups if (s := series.stack(list(g.rows))) is not None]
    if not groups:
        return None
    group, data = groups[-1]  # inputs are sorted by size: the largest says most
    figure, axes = _figure(comparison, max(1.0, len(data.runs) / 8))
    left = [0.0] * len(data.runs)
    places = list(range(len(data.runs)))
    for index, (name, values) in enumerate(data.parts.items()):
        rest = name == REST
        colour = series.REST_COLOUR if rest else series.colour(index)
        axes.barh(places, values, left=left, label=_cut(name), color=colour, height=0.6,
                  edgecolor="white", linewidth=0.8)  # fmt: skip
        left = [start + value for start, value in zip(left, values, strict=True)]
    for place, total in zip(places, left, strict=True):
        axes.text(total, place, f" {total:,.0f}", va="center", fontsize=9)
    axes.set_yticks(places, [_cut(name) for name in data.runs])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.margins(x=0.1)
    axes.set_xlabel(TITLES[HEADLINE])
    axes.xaxis.set_major_formatter("{x:,.0f}")
    _titled(axes, f"Operators: {_cut(group.title, 60)}", comparison)
    _legend(figure, axes)
    return figure


def _legend(figure: Figure, axes: Axes) -> None:
    """Below the plot area, where it hides no data."""
    found: Any = axes.get_legend_handles_labels()
    if len(found[1]) <= 12:
        figure.legend(*found, loc="outside lower center", ncols=min(len(found[1]), 4), fontsize=8,
                      frameon=False)  # fmt: skip


def _cut(label: str, longest: int = LONGEST_LABEL) -> str:
    """Short enough for a picture, and with nothing that matplotlib would read as mathematics."""
    label = " ".join(label.split()).replace("$", r"\$")
    return label if len(label) <= longest else label[: longest - 3] + "..."

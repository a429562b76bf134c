"""A comparison as one HTML file: interactive, self-contained, opens offline and in MLflow's viewer.

Called by compare.py and track/summary_run.py. plotly.js is embedded (4.7 MB); the figures are
written in its JSON form, so that its Python side is imported for the script alone.
"""

from __future__ import annotations

import html
import json
from typing import Any

from . import comparison_text, series
from .aligning import REST
from .comparison import Comparison, Group, grid, operators
from .measured import CALLS, HEADLINE, HOST

METRICS = {
    HEADLINE: "Self NEURON (us per step)",
    HOST: "Self CPU (us per step)",
    CALLS: "Operator calls per step",
}
MOST_STACKS = 12
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1b1b1b; background: #fff; max-width: 1100px;
       margin: 1.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #ddd; text-align: right; }
td { white-space: nowrap; } td:first-child { white-space: normal; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
th { border-bottom: 2px solid #888; } th:first-child, td:first-child, .left { text-align: left; }
.simulated { background: #fff3cd; border: 1px solid #e0c36a; padding: .6rem .8rem; }
.plot { height: 420px; } ul { margin: .3rem 0; padding-left: 1.2rem; color: #444; }
summary { cursor: pointer; font-weight: 600; margin-top: .8rem; }
"""


def page(comparison: Comparison, title: str) -> str:
    """Return the whole file as text."""
    from plotly.offline import get_plotlyjs

    figures = _figures(comparison)
    word = f"{series.WATERMARK}: " if comparison.simulated else ""
    parts = [f"<h1>{_text(word + title)}</h1>"]
    if comparison.simulated:
        parts.append(f'<p class="simulated">{_text(comparison_text.SIMULATED_LINE)}</p>')
    if not comparison.groups:
        parts.append("<p>There is no run to compare.</p>")
    laid = grid(comparison)
    if laid:
        parts.append(_table(comparison_text.grid_table(laid)))
    plots = [f'<div class="plot" id="plot{n}"></div>' for n in range(len(figures))]
    parts += plots[:1]  # the answer first, then its grounds
    parts += [_table(comparison_text.group_table(group)) for group in comparison.groups]
    parts += plots[1:]
    parts += _folded(comparison)
    script = _script(figures)
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(word + title)}</title><style>{STYLE}</style>"
    )
    return "\n".join(
        [
            f"{head}<script>{get_plotlyjs()}</script></head><body>",
            *parts,
            script,
            "</body></html>\n",
        ]
    )


def _folded(comparison: Comparison) -> list[str]:
    compared = [row for row in comparison.rows if operators(row)]
    parts = [_details(comparison_text.operator_table(row)) for row in compared]
    differing = comparison_text.difference_table(comparison)
    return [*parts, _details(differing)] if differing else parts


def _details(table: comparison_text.Table) -> str:
    return f"<details><summary>{_text(table.title)}</summary>{_table(table, title=False)}</details>"


def _table(table: comparison_text.Table, title: bool = True) -> str:
    head = "".join(f"<th>{_text(cell)}</th>" for cell in table.header)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    notes = "".join(f"<li>{_text(note)}</li>" for note in table.notes)
    heading = f"<h2>{_text(table.title)}</h2>" if title else ""
    listed = f"<ul>{notes}</ul>" if notes else ""
    grid = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'{heading}<div class="wide">{grid}</div>{listed}'


def _figures(comparison: Comparison) -> list[dict[str, Any]]:
    found = [_bars(comparison, key) for key in METRICS]
    found.append(_lines(comparison))
    found += [_stack(comparison, group) for group in comparison.groups[:MOST_STACKS]]
    return [figure for figure in found if figure is not None]


def _bars(comparison: Comparison, metric: str) -> dict[str, Any] | None:
    data = series.bars(comparison, metric)
    if not data.series or not data.categories:
        return None
    order = series.labels(comparison)
    traces = [
        {
            "type": "bar",
            "name": label,
            "x": list(data.categories),
            "y": list(values),
            "marker": {"color": series.colour(order.index(label))},
        }
        for label, values in data.series.items()
    ]
    title = f"{METRICS[metric]} by {comparison.across}"
    layout = {"barmode": "group", "yaxis": {"title": {"text": METRICS[metric]}}}
    return _figure(comparison, title, traces, layout)


def _lines(comparison: Comparison) -> dict[str, Any] | None:
    data = series.lines(comparison)
    if data is None or all(len(points) < 2 for points in data.series.values()):
        return None
    order = list(dict.fromkeys([*series.labels(comparison), *data.series]))
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": label,
            "x": [x for x, _ in points],
            "y": [y for _, y in points],
            "marker": {"color": series.colour(order.index(label))},
        }
        for label, points in data.series.items()
    ]
    layout = {
        "xaxis": {"type": "log", "title": {"text": data.dimension}},
        "yaxis": {"type": "log", "title": {"text": METRICS[HEADLINE]}},
    }
    return _figure(comparison, f"{METRICS[HEADLINE]} over {data.dimension}", traces, layout)


def _stack(comparison: Comparison, group: Group) -> dict[str, Any] | None:
    data = series.stack(list(group.rows))
    if data is None:
        return None
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": list(data.runs),
            "x": list(values),
            "marker": {"color": series.REST_COLOUR if name == REST else series.colour(index)},
        }
        for index, (name, values) in enumerate(data.parts.items())
    ]
    layout = {
        "barmode": "stack",
        "yaxis": {"autorange": "reversed", "automargin": True},
        "xaxis": {"title": {"text": METRICS[HEADLINE]}},
    }
    return _figure(comparison, f"Operators: {group.title}", traces, layout)


def _figure(
    comparison: Comparison, title: str, traces: list[dict[str, Any]], layout: dict[str, Any]
) -> dict[str, Any]:
    base: dict[str, Any] = {
        "title": {"text": html.escape(title)},
        "template": {"layout": {"paper_bgcolor": "#fff", "plot_bgcolor": "#fff"}},
        "margin": {"t": 60, "r": 20},
        "legend": {"orientation": "h", "y": -0.25},
        "showlegend": True,
    }
    for axis in ("xaxis", "yaxis"):
        layout = {**layout, axis: {"gridcolor": "#e5e5e5", **layout.get(axis, {})}}
    if comparison.simulated:
        base["annotations"] = [
            {
                "text": series.WATERMARK,
                "xref": "paper",
                "yref": "paper",
                "x": 0.5,
                "y": 0.5,
                "showarrow": False,
                "textangle": -20,
                "font": {"size": 56, "color": "rgba(176,0,32,0.16)"},
            }
        ]
    for trace in traces:
        trace["name"] = html.escape(str(trace["name"]))  # plotly reads a few tags in text
    return {"data": traces, "layout": {**base, **layout}}


def _script(figures: list[dict[str, Any]]) -> str:
    data = json.dumps(figures, allow_nan=False).replace("<", "\\u003c")
    return (
        f"<script>const figures = {data};\n"
        "figures.forEach((f, n) => Plotly.newPlot('plot' + n, f.data, f.layout, "
        "{responsive: true, displaylogo: false}));</script>"
    )


def _text(foreign: str) -> str:
    return html.escape(" ".join(foreign.split()))

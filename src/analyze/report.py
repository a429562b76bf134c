"""What a person reads about one run: report.md, and the table like the published one.

Called by run.py and ingest.py. Times are microseconds; what is missing is shown as a dash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import workload_rules
from ..schema import Spec
from .health import Health
from .markup import NONE, bullets, cell, count, grid, number, quoted, text
from .operators import StepRow, Summary

SIMULATED_NOTE = (
    "These numbers are simulated. Device time comes from a cost model that was fitted to one "
    "published table; host times are those of this computer's Python. Neither is a measurement "
    "of Neuron hardware."
)
HEADLINES = {
    "self_neuron_us": "Self NEURON (us)",
    "self_neuron_us_max_core": "Self NEURON of the busiest core (us)",
    "self_cpu_us": "Self CPU of the operators that ran on the device (us)",
    "self_cpu_total_us": "Self CPU of everything that was recorded (us)",
    "operator_calls": "Operator calls on the device",
    "executions": "Device executions (NEFF runs)",
    "fallback_operators": "Operators that fell back to the CPU",
}


@dataclass(frozen=True)
class Table:
    """Cells as text; every row is as long as the header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    totals: tuple[str, ...]
    """Of the operators that ran on the device, as in the headline metrics."""
    note: str
    """What the rows leave out; empty when nothing."""


def table(summary: Summary, most: int | None = None) -> Table:
    """Lay out the rows, at most `most` of them, hottest first.

    Operators that ran in fewer than half of the windows have zero calls in the median and are
    only counted in the note.
    """
    ran = [row for row in summary.rows if row.calls > 0]
    shown = ran if most is None else ran[:most]
    notes = []
    if len(ran) > len(shown):
        notes.append(f"{len(ran) - len(shown)} more in summary.json")
    if len(summary.rows) > len(ran):
        seldom = len(summary.rows) - len(ran)
        notes.append(f"{seldom} that ran in fewer than half of the windows")
    metrics = summary.metrics
    has_percent = any(row.neuron_percent is not None for row in summary.rows)
    return Table(
        header=("Operator", "Calls", "Self CPU (us)", "Self NEURON (us)", "% NEURON"),
        rows=tuple(_cells(row) for row in shown),
        totals=(
            "Total on the device",
            count(metrics.get("operator_calls")),
            number(metrics.get("self_cpu_us")),
            number(metrics.get("self_neuron_us")),
            "100.0" if has_percent else NONE,
        ),
        note=f"Not listed: {'; '.join(notes)}." if notes else "",
    )


def markdown(
    spec: Spec,
    summary: Summary | None,
    health: Health | None,
    environment: Mapping[str, Any] | None,
    error: str | None,
    sections: Sequence[str] = (),
) -> str:
    """Write the report of one run, finished or not; parts that do not exist are left out.

    `sections` are more parts in Markdown, from deeper.py.
    """
    simulated = _is_simulated(spec, summary, environment)
    parts = [f"# {_title(spec, simulated, error)}"]
    if simulated:
        parts.append(SIMULATED_NOTE)
    if error:
        parts.append(f"**FAILED**, so there is no result to compare:\n\n{quoted(error)}")
    if health:
        parts.append(f"**{text(health.line)}**")
    parts.append(f"## What was run\n\n{_asked(spec)}")
    if summary:
        parts += _results(summary, simulated)
    parts += sections
    if health:
        parts.append(f"## Health: {health.status}\n\n{_checks(health)}")
    if environment:
        parts.append(f"## Environment\n\n{_environment(environment)}")
    return "\n\n".join(parts) + "\n"


def _title(spec: Spec, simulated: bool, error: str | None) -> str:
    config = spec.config
    title = f"{workload_rules.title(config)}, {config.variant.name}"
    title += "" if spec.captured_elsewhere else f", {_shape(spec)}"
    if error:
        reason = " ".join(error.split())
        title = f"FAILED: {reason[:120]}{'...' if len(reason) > 120 else ''} ({title})"
    if simulated:
        title = f"SIMULATED (simulated device, no hardware): {title}"
    return text(title)


def _is_simulated(
    spec: Spec, summary: Summary | None, environment: Mapping[str, Any] | None
) -> bool:
    return (
        bool(summary and summary.simulated)
        or spec.config.device.name == "simulated"
        or (environment or {}).get("device") == "simulated"
    )


def _asked(spec: Spec) -> str:
    config, profiler = spec.config, spec.config.profiler
    variant = config.variant
    if spec.captured_elsewhere:
        return bullets(
            {
                "workload": config.workload.name,
                "variant": variant.name,
                "captured": "by another script; its settings are not known",
                "profiler": f"files of {', '.join(profiler.modes) or 'no Neuron stream'}",
                "windows": f"{profiler.repeats} of {profiler.steps} step(s)",
                "how it was read": spec.description,
            }
        )
    compiled = (
        f", torch.compile(backend={variant.compile.backend})" if variant.compile else ", eager"
    )
    lines = {
        "workload": config.workload.target or workload_rules.title(config),
        "variant": f"{variant.name} (implementation {variant.implementation}{compiled})",
        "input": f"{_shape(spec)}, seed {config.input.seed}",
        "device": f"{config.device.name}, cores {config.cores}, execution {config.execution}",
        "profiler": f"{profiler.name}: {', '.join(profiler.modes)}",
        "windows": f"{profiler.repeats} of {profiler.steps} step(s), "
        f"after {profiler.warmup} calls of warm-up",
    }
    if spec.overrides:
        lines["typed"] = " ".join(spec.overrides)
    if spec.description:
        lines["description"] = spec.description
    return bullets(lines)


def _results(summary: Summary, simulated: bool) -> list[str]:
    metrics = summary.metrics
    word = ", simulated" if simulated else ""
    headlines = [
        (title, count(metrics[key]) if "(us)" not in title else number(metrics[key]))
        for key, title in HEADLINES.items()
        if key in metrics
    ]
    source = summary.device_time_source or "none, so there is no Self NEURON"
    spread = ""
    if len(summary.window_self_neuron_us) > 1:
        low, high = min(summary.window_self_neuron_us), max(summary.window_self_neuron_us)
        spread = f" Self NEURON ranged from {number(low)} to {number(high)} us over the windows."
    laid = table(summary)
    rows = [(f"`{cell(row[0])}`", *row[1:]) for row in laid.rows]
    headline_part = (
        f"## Result per step{word}\n\n{grid(('Metric', 'Value'), headlines)}\n\n"
        f"Median over {summary.windows} window(s). Source of device time: {text(source)}.{spread} "
        "Self CPU is host dispatch time and is not to be added to Self NEURON: the host and the "
        "device work side by side."
    )
    operator_part = (
        f"## Operators per step{word}\n\n{grid(laid.header, [*rows, laid.totals])}\n\n"
        f"{laid.note + ' ' if laid.note else ''}{NONE} means no device time. Totals are medians "
        "of the windows' totals and count the operators that have device time."
    )
    return [headline_part, operator_part]


def _checks(health: Health) -> str:
    rows = [(check.name, check.status, text(check.message)) for check in health.checks]
    return grid(("Check", "Status", "Found"), rows, align="---")


def _environment(environment: Mapping[str, Any]) -> str:
    lines: dict[str, Any] = {}
    for key, value in environment.items():
        if isinstance(value, Mapping) and key == "versions":
            lines.update(value)
        elif isinstance(value, (str, int, float)):
            lines[key] = value
    return bullets({key: value for key, value in lines.items() if value not in (None, "")})


def _cells(row: StepRow) -> tuple[str, ...]:
    return (
        row.name,
        count(row.calls),
        number(row.self_cpu_us),
        number(row.self_neuron_us),
        number(row.neuron_percent),
    )


def _shape(spec: Spec) -> str:
    return " ".join([*workload_rules.input_words(spec.config.input), spec.config.input.dtype])

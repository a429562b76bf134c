"""Operator rows to metrics: what the run's windows say per profiled step.

Called by run.py and ingest.py after the child is done. Never reads a trace or a profile file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from ..rundir import OperatorRow, Operators, Window

TOP_OPERATORS = 10  # more metric keys than this make the MLflow page slow
# MLflow's compare page lists metrics by name. This one comes after self_neuron_us, so that what
# only one variant has (NaN there) does not stand between the headline metrics.
HOST_BY_OPERATOR = "self_op_cpu_us"
COMPILED_REGION = "Torch-Compiled Region"
COMPILED_REGION_NAME = re.compile(rf"{COMPILED_REGION}(: .*)?")
# What torch.profiler's with_stack adds to its averages: `threading.py(1002): run`,
# `<built-in method mul of ...>`, `nn.Module: Linear_0`.
PYTHON_FRAME_NAME = re.compile(r"<built-in .*|nn\.Module: .*|\S.*\(\d+\): .+")


@dataclass(frozen=True)
class StepRow:
    """One operator per profiled step: the median over the windows, in microseconds.

    A window in which the operator did not run counts as zero calls and zero time.
    """

    name: str
    calls: float
    self_cpu_us: float | None
    self_neuron_us: float | None
    """None: no device time in any window, or no lawful source of it."""
    neuron_percent: float | None
    """Share of the rows' device time."""
    label: str
    """The name with compiled regions renumbered, so that runs line up."""


@dataclass(frozen=True)
class Summary:
    """What a run is compared by. Totals are medians of the windows' totals, not sums of the rows'
    medians; with one window the two are equal.
    """

    metrics: dict[str, float]
    rows: tuple[StepRow, ...]
    simulated: bool
    device_time_source: str | None
    windows: int
    window_self_neuron_us: tuple[float, ...] = ()
    """Self NEURON per step of each window that has it: the spread, for judging noise."""
    window_self_cpu_us: tuple[float, ...] = ()
    """The same for the Self CPU of the operators that ran on the device."""


@dataclass(frozen=True)
class _Totals:
    """One window per profiled step; None = not known."""

    rows: dict[str, OperatorRow]
    steps: int
    self_neuron_us: float | None
    self_neuron_max_core_us: float | None
    self_cpu_us: float | None
    self_cpu_total_us: float | None
    operator_calls: float | None
    executions: float | None


def summarize(operators: Operators) -> Summary:
    """Reduce the windows to metrics and rows per profiled step; what is not known is absent."""
    lawful = operators.device_time_source is not None
    windows = [_totals(window, lawful) for window in operators.windows if window.steps > 0]
    rows = _rows(windows)
    metrics = {
        "self_neuron_us": _median(window.self_neuron_us for window in windows),
        "self_neuron_us_max_core": _median(window.self_neuron_max_core_us for window in windows),
        "self_cpu_us": _median(window.self_cpu_us for window in windows),
        "self_cpu_total_us": _median(window.self_cpu_total_us for window in windows),
        "operator_calls": _median(window.operator_calls for window in windows),
        "executions": _median(window.executions for window in windows),
    }
    if operators.fallback_operators is not None:
        metrics["fallback_operators"] = float(len(operators.fallback_operators))
    for row in rows[:TOP_OPERATORS]:
        if row.self_neuron_us:  # none, or seldom: zero in the median
            metrics[f"self_neuron_us/{row.label}"] = row.self_neuron_us
            metrics[f"{HOST_BY_OPERATOR}/{row.label}"] = row.self_cpu_us
    return Summary(
        metrics={key: value for key, value in metrics.items() if value is not None},
        rows=rows,
        simulated=operators.device_time_source == "simulated",
        device_time_source=operators.device_time_source,
        windows=len(windows),
        window_self_neuron_us=_known(window.self_neuron_us for window in windows),
        window_self_cpu_us=_known(window.self_cpu_us for window in windows),
    )


def is_operator(row: OperatorRow) -> bool:
    """Whether the row is an operator: no user annotation, and no Python frame of with_stack.

    Their time contains the operators' time, so it must not be added to it.
    """
    return not row.annotation and not PYTHON_FRAME_NAME.fullmatch(row.name)


def ran_on_device(row: OperatorRow) -> bool:
    """Whether the row has device time of its own."""
    time_us = row.self_neuron_us
    return time_us is not None and math.isfinite(time_us) and time_us > 0


def labels(names: Sequence[str]) -> dict[str, str]:
    """Name each compiled region by its place in `names`: no number when it is the only one.

    Dynamo's own numbers (0/0, 0/1, 1/0_1) depend on what was compiled before.
    """
    regions = [name for name in dict.fromkeys(names) if COMPILED_REGION_NAME.fullmatch(name)]
    if len(regions) == 1:
        return {name: COMPILED_REGION if name in regions else name for name in names}
    numbers = {name: f"{COMPILED_REGION} {place}" for place, name in enumerate(regions, start=1)}
    return {name: numbers.get(name, name) for name in names}


def _totals(window: Window, lawful: bool) -> _Totals:
    rows = _merged(row for row in window.operators if is_operator(row))
    on_device = [row for row in rows.values() if lawful and ran_on_device(row)]
    by_core = [time_us for time_us in window.self_neuron_by_core_us.values() if lawful]
    neuron_us: float | None = None
    if on_device:
        neuron_us = math.fsum(row.self_neuron_us or 0.0 for row in on_device)
    elif by_core and all(map(math.isfinite, by_core)) and sum(by_core) > 0:
        neuron_us = math.fsum(by_core)  # a source that knows totals only
    steps = window.steps
    return _Totals(
        rows=rows if lawful else {k: _without_device_time(row) for k, row in rows.items()},
        steps=window.steps,
        self_neuron_us=_per_step(neuron_us, steps),
        self_neuron_max_core_us=_per_step(max(by_core), steps) if len(by_core) > 1 else None,
        self_cpu_us=_per_step(sum(r.self_cpu_us for r in on_device), steps) if on_device else None,
        self_cpu_total_us=_per_step(window.self_cpu_total_us, steps),
        operator_calls=_per_step(sum(r.calls for r in on_device), steps) if on_device else None,
        executions=_per_step(window.executions, steps),
    )


def _rows(windows: Sequence[_Totals]) -> tuple[StepRow, ...]:
    names = list(dict.fromkeys(name for window in windows for name in window.rows))
    label_of = labels(names)
    # A window without any device time was not recorded; elsewhere, none means that none was run.
    recorded = [w for w in windows if any(ran_on_device(row) for row in w.rows.values())]
    device_us = {name: _device_us(name, recorded) for name in names}
    total = math.fsum(time_us or 0.0 for time_us in device_us.values())
    rows = [
        StepRow(
            name=name,
            calls=_median(_of(w, name, "calls") for w in windows) or 0.0,
            self_cpu_us=_median(_of(w, name, "self_cpu_us") for w in windows),
            self_neuron_us=time_us,
            neuron_percent=None if time_us is None or total == 0 else 100 * time_us / total,
            label=label_of[name],
        )
        for name, time_us in device_us.items()
    ]
    # Rows with device time first; sorting is stable, so equals keep the order of appearance.
    rows.sort(key=lambda row: (_descending(row.self_neuron_us), _descending(row.self_cpu_us)))
    return tuple(rows)


def _device_us(name: str, recorded: Sequence[_Totals]) -> float | None:
    with_it = [name in w.rows and ran_on_device(w.rows[name]) for w in recorded]
    if not any(with_it):
        return None
    pairs = zip(recorded, with_it, strict=True)
    return _median(_of(w, name, "self_neuron_us") if there else 0.0 for w, there in pairs)


def _of(window: _Totals, name: str, field: str) -> float | None:
    row = window.rows.get(name)
    return 0.0 if row is None else _per_step(getattr(row, field), window.steps)


def _merged(rows: Iterable[OperatorRow]) -> dict[str, OperatorRow]:
    """One row a name: a table grouped by input shape has several."""
    merged: dict[str, OperatorRow] = {}
    for row in rows:
        other = merged.get(row.name)
        merged[row.name] = row if other is None else _added(other, row)
    return merged


def _added(a: OperatorRow, b: OperatorRow) -> OperatorRow:
    times = [row.self_neuron_us or 0.0 for row in (a, b) if ran_on_device(row)]
    return OperatorRow(
        name=a.name,
        calls=a.calls + b.calls,
        self_cpu_us=a.self_cpu_us + b.self_cpu_us,
        cpu_total_us=a.cpu_total_us + b.cpu_total_us,
        self_neuron_us=sum(times) if times else None,
    )


def _without_device_time(row: OperatorRow) -> OperatorRow:
    return OperatorRow(row.name, row.calls, row.self_cpu_us, row.cpu_total_us)


def _per_step(value: float | None, steps: int) -> float | None:
    return value / steps if value is not None and math.isfinite(value) else None


def _known(values: Iterable[float | None]) -> tuple[float, ...]:
    return tuple(value for value in values if value is not None)


def _median(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return float(median(known)) if known else None


def _descending(value: float | None) -> float:
    return math.inf if value is None else -value

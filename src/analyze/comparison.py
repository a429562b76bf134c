"""Runs side by side: lined up across one axis, each with its baseline, speed-up and verdict.

Called by compare.py and track/summary_run.py. Knows runs by their parameters, tags and metrics
only; comparison_text.py, page.py and plots.py show what is made here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from . import aligning, conditions, verdict
from .measured import CALLS, HEADLINE, HOST, Measured
from .verdict import Verdict

IsBaseline = Callable[[Measured], bool]


@dataclass(frozen=True)
class Row:
    """One run in its group."""

    run: Measured
    label: str
    """Its place on the axis: a variant, an input, cores, versions."""
    baseline: Measured | None
    verdict: Verdict
    speedup: float | None
    """The baseline's time over this run's; None where the two must not be compared."""

    @property
    def is_baseline(self) -> bool:
        return self.baseline is not None and self.baseline.run_id == self.run.run_id

    @property
    def headline(self) -> tuple[float | None, float | None, float | None]:
        """Self NEURON, Self CPU and operator calls of one step."""
        return self.run.metric(HEADLINE), self.run.metric(HOST), self.run.metric(CALLS)


@dataclass(frozen=True)
class Group:
    """Runs that are alike in all but the axis."""

    title: str
    rows: tuple[Row, ...]

    def fastest(self) -> Row | None:
        """The row that is worth a look operator by operator: with the largest speed-up."""
        others = [row for row in self.rows if not row.is_baseline and row.speedup is not None]
        return max(others, key=lambda row: row.speedup or 0.0, default=None)


@dataclass(frozen=True)
class Grid:
    """Times over input (down) and variant (across); of several runs in a cell the newest."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Row | None, ...]], ...]


@dataclass(frozen=True)
class Comparison:
    """All of it."""

    across: str
    groups: tuple[Group, ...]

    @property
    def rows(self) -> list[Row]:
        return [row for group in self.groups for row in group.rows]

    @property
    def simulated(self) -> bool:
        """Does any of it come from the simulator?"""
        return any(row.run.simulated for row in self.rows)


def compare(
    runs: Sequence[Measured],
    *,
    across: str = "variant",
    baselines: Sequence[Measured] | None = None,
    allow_simulated: bool = False,
) -> Comparison:
    """Line the runs up and judge each one.

    `baselines`: what the user named; None takes the naive variant of a group, or else its first
    run.
    """
    named = {run.run_id: run for run in baselines or ()}
    shown = {**named, **{run.run_id: run for run in runs}}
    repeats = _repeats(list(shown.values()), [shown[run_id] for run_id in named])
    groups = []
    ordered = sorted(shown.values(), key=lambda run: (_key(run, across), run.started_ms))
    for _, members_ in groupby(ordered, key=lambda run: _key(run, across)):
        members = sorted(members_, key=lambda run: (_place(run, across), run.started_ms))
        candidates = [run for run in members if run.run_id in named] if named else members
        rows = [
            _row(run, members, candidates, bool(named), repeats, across, allow_simulated)
            for run in members
        ]
        groups.append(Group(_title(members[0], across), tuple(rows)))
    return Comparison(across, tuple(groups))


def _row(
    run: Measured,
    members: Sequence[Measured],
    candidates: Sequence[Measured],
    named: bool,
    repeats: dict[tuple[str, bool], list[Measured]],
    across: str,
    allow_simulated: bool,
) -> Row:
    label = _label(run, members, across)
    baseline = choose_baseline(run, candidates, named, across)
    if baseline is None:
        reason = f"no baseline run for {_title(run, across)}"
        return Row(run, label, None, Verdict(verdict.NOT_COMPARABLE, reason), None)
    found = verdict.judge(
        baseline,
        run,
        across=across,
        repeats=repeats.get(_same(run, candidates if named else ()), ()),
        baseline_repeats=repeats.get(_same(baseline, candidates if named else ()), ()),
        allow_simulated=allow_simulated,
    )
    before, after = baseline.device_us, run.device_us
    speedup = None
    if found.word != verdict.NOT_COMPARABLE and before and after:
        speedup = before / after
        if found.change is not None and run.run_id != baseline.run_id:
            speedup = 1 / (1 + found.change)
    return Row(run, label, baseline, found, speedup)


def axis_of(runs: Sequence[Measured]) -> str:
    """The axis that runs vary along, where nobody named one."""
    for axis, values in (
        ("variant", {run.variant for run in runs}),
        ("cores", {run.cores for run in runs}),
        ("input", {run.input for run in runs}),
    ):
        if len(values) > 1:
            return axis
    return "variant"


def choose_baseline(
    run: Measured, candidates: Sequence[Measured], named: bool, across: str
) -> Measured | None:
    """The baseline of one run among several: the one that can be compared best, then the newest.

    Unnamed: a naive variant when variants are compared, else the first run on the axis.
    """
    if not candidates:
        return None
    if named:
        if any(run.run_id == candidate.run_id for candidate in candidates):
            return run
        same = [c for c in candidates if _place(c, across) == _place(run, across)]
        return min(same or candidates, key=lambda c: (*_distance(run, c, across), -c.started_ms))
    good = [c for c in candidates if c.finished] or list(candidates)
    naive = [c for c in good if c.variant == "naive"] if across == "variant" else []
    start = min(_place(c, across) for c in naive or good)
    first = sorted(
        (c for c in naive or good if _place(c, across) == start), key=lambda c: c.started_ms
    )
    if run is first[0]:
        return run
    return min((c for c in first if c is not run), key=lambda c: _distance(run, c, across))


def _distance(run: Measured, candidate: Measured, across: str) -> tuple[bool, int, bool]:
    differs = len(conditions.differences(candidate, run, across))
    other_sweep = across != "sdk" and candidate.sweep != run.sweep
    return not candidate.finished, differs, other_sweep


def operators(row: Row) -> tuple[aligning.OperatorChange, ...]:
    """The row's run against its baseline, operator by operator; empty when it is its own."""
    if row.baseline is None or row.is_baseline or row.speedup is None:
        return ()
    return aligning.changes(row.baseline, row.run)


def grid(comparison: Comparison) -> Grid | None:
    """Times over inputs and variants; None when there is only one input or one variant."""
    rows = comparison.rows
    columns = tuple(dict.fromkeys(row.run.variant for row in sorted(rows, key=_by_variant)))
    inputs = tuple(dict.fromkeys(row.run.input for row in sorted(rows, key=_by_size)))
    if len(columns) < 2 or len(inputs) < 2:
        return None
    cells = {
        (row.run.input, row.run.variant): row
        for row in sorted(rows, key=lambda r: r.run.started_ms)
    }
    return Grid(columns, tuple((i, tuple(cells.get((i, c)) for c in columns)) for i in inputs))


def _by_variant(row: Row) -> tuple[Any, ...]:
    return _variant_place(row.run)


def _by_size(row: Row) -> tuple[Any, ...]:
    return _input_place(row.run)


def _variant_place(run: Measured) -> tuple[Any, ...]:
    usual = ("naive", "fused", "compiled")
    known = run.variant in usual
    return (not known, usual.index(run.variant) if known else 0, run.variant)


def _input_place(run: Measured) -> tuple[Any, ...]:
    size = 1
    for dim in run.dims:
        size *= dim
    return (size if run.dims else 0, run.input)


def _place(run: Measured, across: str) -> tuple[Any, ...]:
    """Where the run stands on the axis; equal places are the same value of it."""
    if across == "variant":
        return _variant_place(run)
    if across == "input":
        return _input_place(run)
    if across == "cores":
        return (len(run.cores), run.cores)
    return ()  # versions have no order of their own: by time


def _key(run: Measured, across: str) -> tuple[str, ...]:
    """What all runs of one group share, as text; the rest is judged pair by pair."""
    parts = {
        "workload": run.workload,
        "variant": run.variant,
        "input": run.input,
        "cores": run.cores,
    }
    parts.pop(across, None)
    size = _input_place(run)[0] if "input" in parts else 0
    return (parts.pop("workload"), f"{size:>24}", *parts.values())


def _title(run: Measured, across: str) -> str:
    parts = {
        "workload": run.workload,
        "variant": run.variant,
        "input": run.input,
        "cores": f"cores {run.cores}",
    }
    parts.pop(across, None)
    return " ".join(parts.values())


def _label(run: Measured, members: Sequence[Measured], across: str) -> str:
    if across == "variant":
        return run.variant
    if across == "input":
        return run.input
    if across == "cores":
        return f"cores {run.cores}"
    differing = [
        name
        for name in sorted({name for member in members for name in member.versions})
        if len({member.versions.get(name) for member in members}) > 1
    ]
    said = ", ".join(f"{name} {run.versions.get(name, 'none')}" for name in differing)
    return said or f"run {run.short_id}"


def _same(run: Measured, named: Sequence[Measured]) -> tuple[str, bool]:
    """What repeats share: the measurement, and whether the user named them as baselines."""
    return run.measurement_id or "", any(run is other for other in named)


def _repeats(
    runs: Sequence[Measured], named: Sequence[Measured]
) -> dict[tuple[str, bool], list[Measured]]:
    found: dict[tuple[str, bool], list[Measured]] = {}
    for run in runs:
        if run.measurement_id and run.finished:
            found.setdefault(_same(run, named), []).append(run)
    return found

"""The gate for CI: does any run lose more against its baseline than is allowed?

Called by compare.py. Never passes what it cannot judge.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import verdict
from .comparison import Comparison, Row

PASSED, SLOWER, CANNOT_SAY = 0, 1, 3


@dataclass(frozen=True)
class Gate:
    """The exit code and a line for each run that decided it."""

    code: int
    lines: tuple[str, ...]


def check(comparison: Comparison, limit: float, baseline_ids: frozenset[str]) -> Gate:
    """Judge every run that is no baseline; `limit` is the largest loss, 0.05 for 5 %.

    Runs that are themselves named as baselines are judged only when nothing else is there.
    """
    rows = [row for row in comparison.rows if row.run.run_id not in baseline_ids]
    rows = rows or [row for row in comparison.rows if row.is_baseline]
    if not rows:
        return Gate(CANNOT_SAY, ("cannot say: there is no run to compare with the baseline",))
    slower = [row for row in rows if _is_slower(row, limit)]
    unknown = [row for row in rows if not _is_slower(row, limit) and not _passes(row, limit)]
    if slower:
        return Gate(SLOWER, tuple(f"regression: {_said(row)}" for row in slower))
    if unknown:
        return Gate(CANNOT_SAY, tuple(f"cannot say: {_said(row)}" for row in unknown))
    return Gate(PASSED, (f"passed: {len(rows)} run(s), none more than {limit:.4g} slower",))


def _is_slower(row: Row, limit: float) -> bool:
    return row.verdict.word == verdict.WORSE and (row.verdict.change or 0.0) > limit


def _passes(row: Row, limit: float) -> bool:
    """Within the limit, by a verdict that rests on something.

    A loss above the limit that the noise could explain is no pass: measure again, with more
    windows.
    """
    judged = (verdict.IDENTICAL, verdict.BETTER, verdict.WORSE, verdict.SAME)
    return row.verdict.word in judged and (row.verdict.change or 0.0) <= limit


def _said(row: Row) -> str:
    against = f" against {row.baseline.short_id}" if row.baseline else ""
    return f"{row.run.name} ({row.run.short_id}{against}): {row.verdict.word}: {row.verdict.reason}"

"""Writes what a comparison found onto the runs: verdict tags, and the table in the description.

Called by summary_run.py. Never touches metrics, parameters or a run's status.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..analyze import comparison_text
from ..analyze.comparison import Comparison, Group, Row
from . import facts
from .connect import patiently
from .store import Store

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

NOTE = "mlflow.note.content"
SIDE_BY_SIDE = "### Side by side"
"""Starts the part of a description that is written here, and replaced by the next comparison."""


def write(
    client: MlflowClient,
    store: Store,
    comparison: Comparison,
    only: Sequence[str] | None = None,
) -> None:
    """Tag each run of the comparison, or those whose ids are in `only`."""
    from mlflow.entities import RunTag

    for group in comparison.groups:
        for row in group.rows:
            if only is not None and row.run.run_id not in only:
                continue
            tags = [RunTag(name, value) for name, value in _tags(group, row).items()]
            send = functools.partial(client.log_batch, row.run.run_id, tags=tags, synchronous=True)
            patiently(store, send)


def _tags(group: Group, row: Row) -> dict[str, str]:
    baseline = row.baseline
    return facts.as_tags(
        {
            "verdict": comparison_text.word(row),
            "verdict_reason": row.verdict.reason,
            "verdict_baseline": baseline.run_id if baseline else None,
            NOTE: _note(row.run.tags.get(NOTE, ""), group),
        }
    )


def _note(current: str, group: Group) -> str:
    own = current.partition(SIDE_BY_SIDE)[0].rstrip()
    table = comparison_text.markdown_of(group)
    if len(own) + len(table) + len(SIDE_BY_SIDE) + 4 > facts.LONGEST_TAG:
        return own
    return f"{own}\n\n{SIDE_BY_SIDE}\n\n{table}".strip()

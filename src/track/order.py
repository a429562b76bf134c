"""The order of a sweep's jobs: as typed, or so that slow drift of a machine favours no variant.

Called by sweep.py before the first job. Hydra takes sweepers from its own plugin packages only, so
its own sweeper stays, and the function that expands its jobs is given another order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

VARIED = "variant"
"""The key whose values are to be compared."""


def interleaved(jobs: Sequence[Sequence[str]]) -> list[list[str]]:
    """Bring jobs that differ in the variant only together, every second group backwards.

    a1 a2 b1 b2 becomes a1 b1 b2 a2: each variant comes early as often as late.
    """
    groups: dict[tuple[str, ...], list[list[str]]] = {}
    for job in jobs:
        rest = tuple(word for word in job if word.partition("=")[0] != VARIED)
        groups.setdefault(rest, []).append(list(job))
    ordered: list[list[str]] = []
    for number, group in enumerate(groups.values()):
        ordered += reversed(group) if number % 2 else group
    return ordered


def interleave_hydra(sweeper: Any) -> None:
    """Let Hydra's BasicSweeper expand its jobs in this order, in this process."""
    original: Callable[..., list[list[list[str]]]] = sweeper.split_arguments

    def split_arguments(overrides: Any, max_batch_size: int | None) -> list[list[list[str]]]:
        batches = original(overrides, None)
        jobs = interleaved([job for batch in batches for job in batch])
        size = max_batch_size or len(jobs) or 1
        return [jobs[start : start + size] for start in range(0, len(jobs), size)]

    sweeper.split_arguments = staticmethod(split_arguments)

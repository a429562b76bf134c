"""How long a step takes on the host's clock without the profiler: one by one, and in a row.

Called by job.py before the windows. Host time: it holds Python, dispatch and waiting for the
device, and must not be called device time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

BUDGET_S = 1.0
"""Each of the two loops ends after the call in which this is over."""


@dataclass(frozen=True)
class Latency:
    """latency.json. Microseconds of this computer's clock."""

    synchronized_us: tuple[float, ...]
    """Each call with a synchronize after it."""
    pipelined_us_per_step: float
    """`steps` calls in a row with one synchronize after the last, divided by their number."""
    steps: int


def measure(
    step: Callable[[], Any],
    synchronize: Callable[[], Any],
    calls: int,
    budget_s: float = BUDGET_S,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Latency | None:
    """Time a warm step; None for no calls. A slow step is called once: both times are the same."""
    if calls < 1:
        return None
    synchronize()
    single: list[float] = []
    begun = clock()
    while len(single) < calls and (not single or clock() - begun < budget_s * 1e9):
        start = clock()
        step()
        synchronize()
        single.append((clock() - start) / 1000)
    steps = len(single)
    if steps == 1:
        return Latency(tuple(single), single[0], 1)
    start = clock()
    for _ in range(steps):
        step()
    synchronize()
    return Latency(tuple(single), (clock() - start) / 1000 / steps, steps)

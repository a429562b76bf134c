"""How much a number moves from window to window: smallest, largest, and a confidence interval.

Called by deeper.py. Says nothing about better or worse; one window has no spread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

# Student's t, two-sided 95 %, by degrees of freedom (any statistics table; qt(0.975, df) in R).
T_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
METHOD = "Student's t interval of the windows' mean, 95 %"


@dataclass(frozen=True)
class Spread:
    """The windows' extremes and the t interval of their mean."""

    smallest: float
    largest: float
    low: float
    high: float
    windows: int


def over_windows(values: Sequence[float]) -> Spread | None:
    """Return the spread; None with fewer than two windows."""
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return None
    # Beyond the table its last value, a little too wide.
    quantile = T_95[min(len(values) - 1, len(T_95)) - 1]
    middle, half = fmean(values), quantile * stdev(values) / math.sqrt(len(values))
    return Spread(min(values), max(values), middle - half, middle + half, len(values))

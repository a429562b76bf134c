"""How far two equal measurements lie apart by chance: from windows, or from repeated runs.

Called by verdict.py. Welch's unequal-variances t interval on the difference, as in any textbook.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, median, stdev

from .measured import Measured

FEWEST = 3  # values below which a spread says nothing
CONFIDENCE = 0.95  # one equal pair in twenty looks different; at 99 % five runs would hide 10 %
CONFIDENCE_OF_REPEATS = 0.99  # of the same measurement, and many at once, the same is expected
# The standard error of a median is sqrt(pi/2) times that of a mean for normal values.
MEDIAN_FACTOR = math.sqrt(math.pi / 2)
# Windows of one process share its clocks, its placement in memory and its caches, so that they
# spread less than processes do; 2 % is the floor that nsys-ai uses for single captures.
WINDOWS_FLOOR = 0.02
RUNS_FLOOR = 0.005


@dataclass(frozen=True)
class Sample:
    """Equal measurements of one thing, in microseconds."""

    values_us: tuple[float, ...]
    kind: str
    """windows or runs."""

    @property
    def middle_us(self) -> float:
        return float(median(self.values_us))


@dataclass(frozen=True)
class Noise:
    """The largest relative change that chance explains, and what says so."""

    fraction: float
    source: str
    """For a sentence: `5 and 5 windows`, `4 other runs of the same measurement`."""
    n: int
    """The smaller number of values of the two sides."""


def sample(run: Measured, repeats: Sequence[Measured]) -> Sample | None:
    """The values that show the run's spread; None when there are fewer than three.

    `repeats`: all runs with the same measurement_id, this one included.
    """
    times = [time for run_ in repeats if (time := run_.device_us) is not None]
    if len(times) >= FEWEST:
        return Sample(tuple(times), "runs")
    if len(run.windows_us) >= FEWEST:
        return Sample(run.windows_us, "windows")
    return None


def between(before: Sample, after: Sample) -> Noise:
    """The noise of a change from the middle of one sample to the middle of the other."""
    errors = [MEDIAN_FACTOR * _relative_error(side) for side in (before, after)]
    n = [len(side.values_us) for side in (before, after)]
    if before.kind != after.kind:
        # One run beside several: it may lie as far off as any one of those.
        several = 0 if before.kind == "runs" else 1
        one_run = errors[several] / MEDIAN_FACTOR * math.sqrt(n[several])
        errors[1 - several] = max(errors[1 - several], one_run)
    total = math.hypot(*errors)
    floor = RUNS_FLOOR if before.kind == after.kind == "runs" else WINDOWS_FLOOR
    if total == 0:
        return Noise(floor, _source(before, after), min(n))
    # Welch-Satterthwaite: how many degrees of freedom the two errors have together.
    freedom = total**4 / sum(e**4 / (count - 1) for e, count in zip(errors, n, strict=True))
    fraction = max(floor, student_t(CONFIDENCE, freedom) * total)
    return Noise(fraction, _source(before, after), min(n))


def of_one(equals: Sample, run: Measured) -> Noise:
    """The noise of one more run beside its repeats; its own windows may say that it is larger."""
    n = len(equals.values_us)
    spread = _relative_error(equals) * math.sqrt(n)
    if len(run.windows_us) >= FEWEST:
        windows = Sample(run.windows_us, "windows")
        spread = max(spread, MEDIAN_FACTOR * _relative_error(windows))
    fraction = student_t(CONFIDENCE_OF_REPEATS, n - 1) * spread * math.sqrt(1 + 1 / n)
    return Noise(max(RUNS_FLOOR, fraction), f"{n} other runs of the same measurement", n)


def student_t(confidence: float, freedom: float) -> float:
    """The two-sided quantile of Student's t; within 2 % from three degrees of freedom on.

    Expansion in 1/freedom by Abramowitz and Stegun, 26.7.5.
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    v = max(freedom, 1.0)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / v**power for power, term in enumerate(terms))


def _relative_error(side: Sample) -> float:
    middle = side.middle_us
    return stdev(side.values_us) / math.sqrt(len(side.values_us)) / middle if middle else 0.0


def _source(before: Sample, after: Sample) -> str:
    counts = [len(before.values_us), len(after.values_us)]
    if before.kind == after.kind:
        return f"{counts[1]} and {counts[0]} {before.kind}"
    return f"{counts[1]} {after.kind} and {counts[0]} {before.kind}"

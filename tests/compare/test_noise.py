"""The noise of a change: Student's t, and how often it cries wolf."""

from __future__ import annotations

import random

import pytest

from src.analyze import noise
from src.analyze.noise import Sample


@pytest.mark.parametrize(
    ("freedom", "exact"),
    [(3, 5.841), (4, 4.604), (5, 4.032), (8, 3.355), (20, 2.845), (1e6, 2.576)],
)  # fmt: skip
def test_students_t_is_within_two_percent_of_the_tables(freedom: float, exact: float) -> None:
    assert noise.student_t(0.99, freedom) == pytest.approx(exact, rel=0.02)


def test_at_most_two_percent_of_equal_pairs_with_3_percent_noise_look_different() -> None:
    draw = random.Random(1)

    def windows() -> Sample:
        return Sample(tuple(1000 * draw.gauss(1, 0.03) for _ in range(5)), "windows")

    alarms = 0
    for _ in range(1000):
        before, after = windows(), windows()
        change = after.middle_us / before.middle_us - 1
        alarms += abs(change) > noise.between(before, after).fraction
    assert alarms < 20  # ten are expected at 99 %


def test_most_changes_of_a_tenth_are_found_through_3_percent_noise() -> None:
    draw = random.Random(2)
    found = 0
    for _ in range(1000):
        before = Sample(tuple(1000 * draw.gauss(1, 0.03) for _ in range(10)), "windows")
        after = Sample(tuple(1100 * draw.gauss(1, 0.03) for _ in range(10)), "windows")
        change = after.middle_us / before.middle_us - 1
        found += change > noise.between(before, after).fraction
    assert found > 900

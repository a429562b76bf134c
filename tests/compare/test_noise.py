"""The noise of a change: Student's t, and how often it cries wolf."""

from __future__ import annotations

import random

import pytest

from src.analyze import noise
from src.analyze.noise import Sample


@pytest.mark.parametrize(
    ("freedom", "exact"),
    [(3, 3.182), (4, 2.776), (5, 2.571), (8, 2.306), (20, 2.086), (1e6, 1.96)],
)  # fmt: skip
def test_students_t_is_within_two_percent_of_the_tables(freedom: float, exact: float) -> None:
    assert noise.student_t(0.95, freedom) == pytest.approx(exact, rel=0.02)


def test_at_most_one_in_twenty_of_equal_pairs_with_3_percent_noise_look_different() -> None:
    draw = random.Random(1)

    def windows() -> Sample:
        return Sample(tuple(1000 * draw.gauss(1, 0.03) for _ in range(5)), "windows")

    alarms = 0
    for _ in range(1000):
        before, after = windows(), windows()
        change = after.middle_us / before.middle_us - 1
        alarms += abs(change) > noise.between(before, after).fraction
    assert alarms <= 50


def test_most_changes_of_a_tenth_are_found_through_3_percent_noise() -> None:
    draw = random.Random(2)
    found = 0
    for _ in range(1000):
        before = Sample(tuple(1000 * draw.gauss(1, 0.03) for _ in range(10)), "windows")
        after = Sample(tuple(1100 * draw.gauss(1, 0.03) for _ in range(10)), "windows")
        change = after.middle_us / before.middle_us - 1
        found += change > noise.between(before, after).fraction
    assert found > 950

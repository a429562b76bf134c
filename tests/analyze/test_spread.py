"""Tests of analyze/spread.py: the t interval against values worked out on paper."""

from __future__ import annotations

import math

import pytest

from src.analyze.spread import over_windows


def test_five_windows_have_the_interval_of_the_t_table() -> None:
    found = over_windows([10.0, 12.0, 11.0, 13.0, 14.0])
    assert found is not None
    # mean 12, deviation sqrt(2.5), t(0.975, 4) = 2.776: 2.776 x sqrt(2.5 / 5) = 1.963
    assert (found.low, found.high) == (
        pytest.approx(10.037, abs=1e-3),
        pytest.approx(13.963, abs=1e-3),
    )
    assert (found.smallest, found.largest, found.windows) == (10.0, 14.0, 5)


def test_two_windows_have_a_very_wide_one() -> None:
    found = over_windows([1.0, 2.0])
    assert found is not None
    assert found.high - found.low == pytest.approx(12.706)  # 2 x 12.706 x sqrt(0.5 / 2)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, math.nan], [1.0, math.inf]])
def test_one_window_has_no_spread(values: list[float]) -> None:
    assert over_windows(values) is None


def test_more_windows_than_the_table_has_use_its_last_row() -> None:
    found = over_windows([0.0, 1.0] * 50)
    assert found is not None
    half = 2.042 * math.sqrt(100 * 0.25 / 99) / 10
    assert found.high == pytest.approx(0.5 + half)

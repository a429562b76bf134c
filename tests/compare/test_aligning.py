"""Operators side by side: a fused one stands beside those that it replaces."""

from __future__ import annotations

import pytest

from src.analyze.aligning import REST, changes

from .making import measured

NAIVE = ("aten::mul", "aten::mean", "aten::add", "aten::rsqrt")


def run(total: float | None = None, **operators: float):  # type: ignore[no-untyped-def]
    found = measured("custom", sum(operators.values()) if total is None else total)
    named = {f"self_neuron_us/aten::{name}": us for name, us in operators.items()}
    return type(found)(**{**vars(found), "metrics": {**found.metrics, **named}})


@pytest.mark.parametrize("variant", ["fused", "compiled"])
def test_what_replaces_all_operators_stands_beside_them_all(variant: str) -> None:
    (only,) = changes(measured(us=1000.0), measured(variant, 250.0))
    assert set(only.before) == set(NAIVE)
    assert len(only.after) == 1
    assert only.saved_us == pytest.approx(750.0)


def test_the_other_way_round_it_is_a_loss() -> None:
    (only,) = changes(measured("fused", 250.0), measured(us=1000.0))
    assert only.before == ("aten::_fused_rms_norm",)
    assert only.saved_us == pytest.approx(-750.0)


def test_the_largest_saving_comes_first_and_the_largest_loss_last() -> None:
    found = changes(run(mul=10, mm=90, exp=30), run(mul=40, mm=20, exp=29))
    assert [change.before for change in found] == [("aten::mm",), ("aten::exp",), ("aten::mul",)]
    assert [change.saved_us for change in found] == [70, 1, -30]


def test_two_fused_operators_each_take_their_own_parts_once() -> None:
    before = run(rsqrt=1, mean=2, sigmoid=4, mm=8)
    after = run(rms_norm=1, silu=2, mm=8)
    found = {change.after: change.before for change in changes(before, after)}
    assert set(found["aten::rms_norm",]) == {"aten::rsqrt", "aten::mean"}
    assert found["aten::silu",] == ("aten::sigmoid",)
    assert found["aten::mm",] == ("aten::mm",)
    assert sum(change.before_us for change in changes(before, after)) == 15


def test_operators_that_nothing_replaces_are_saved_whole() -> None:
    found = changes(run(mm=10, copy_=5, clone=4), run(mm=10))
    assert [(c.before, c.after) for c in found if not c.after] == [
        (("aten::copy_",), ()),
        (("aten::clone",), ()),
    ]


def test_what_the_ten_hottest_leave_of_the_total_is_a_line_of_its_own() -> None:
    found = changes(run(120.0, mm=100), run(150.0, mm=100))
    assert found[-1].before == (REST,)
    assert found[-1].saved_us == pytest.approx(-30)


def test_runs_without_operator_metrics_have_no_lines() -> None:
    bare = measured("custom", 10.0)
    assert changes(bare, bare) == ()

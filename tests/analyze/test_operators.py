"""Tests of analyze/operators.py: metrics and rows per step, worked out on paper."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.analyze.operators import summarize
from src.rundir import OperatorRow, Operators, Window, read_operators, write_operators

REGION = "Torch-Compiled Region"
# The published tables (microseconds): name, calls, Self CPU, Self NEURON.
NAIVE = (
    ("aten::mul", 3, 60.9, 1164.5),
    ("aten::add", 1, 26.6, 434.6),
    ("aten::rsqrt", 1, 15.6, 415.0),
    ("aten::mean", 1, 21.1, 340.8),
)


def row(
    name: str,
    calls: int = 1,
    cpu: float = 1.0,
    neuron: float | None = None,
    annotation: bool = False,
) -> OperatorRow:
    return OperatorRow(name, calls, cpu, cpu, neuron, annotation)


def window(*rows: OperatorRow, steps: int = 1, **fields: object) -> Window:
    fields = {"self_cpu_total_us": sum(r.self_cpu_us for r in rows), **fields}
    return Window(steps=steps, operators=rows, **fields)  # type: ignore[arg-type]


def operators(*windows: Window, source: str | None = "key_averages", **fields: object) -> Operators:
    return Operators(device_time_source=source, windows=windows, **fields)  # type: ignore[arg-type]


def naive_window(**fields: object) -> Window:
    rows = [row(*published) for published in NAIVE]
    extras = [row("aten::to", 2, 5.0), row("ProfilerStep*", 1, 300.0, annotation=True)]
    return window(*rows, *extras, **fields)


def test_the_published_naive_table_gives_its_published_totals() -> None:
    summary = summarize(operators(naive_window()))
    # 1164.5 + 434.6 + 415.0 + 340.8 = 2354.9, published as 2355.0 from unrounded rows
    assert summary.metrics["self_neuron_us"] == pytest.approx(2354.9)
    # 60.9 + 26.6 + 15.6 + 21.1 = 124.2; aten::to has no device time and stays out
    assert summary.metrics["self_cpu_us"] == pytest.approx(124.2)
    assert summary.metrics["operator_calls"] == 6
    # all rows, the annotation's 300 included: it is the profiler's own total
    assert summary.metrics["self_cpu_total_us"] == pytest.approx(124.2 + 5.0 + 300.0)
    assert [(r.name, r.calls) for r in summary.rows] == [
        *(("aten::mul", 3), ("aten::add", 1), ("aten::rsqrt", 1), ("aten::mean", 1)),
        ("aten::to", 2),
    ]
    # 1164.5 / 2354.9 = 49.45 %, published as 49.5
    assert summary.rows[0].neuron_percent == pytest.approx(49.5, abs=0.06)
    assert summary.rows[4].self_neuron_us is None
    assert summary.rows[4].neuron_percent is None
    assert summary.metrics["self_neuron_us/aten::mul"] == 1164.5
    assert summary.metrics["self_op_cpu_us/aten::mul"] == 60.9
    assert "self_op_cpu_us/aten::to" not in summary.metrics
    assert not summary.simulated


def test_values_are_per_step() -> None:
    # three steps: 9 calls, 30 us, 90 us, 6 executions in the window
    one = window(row("aten::mul", 9, 30.0, 90.0), steps=3, executions=6)
    summary = summarize(operators(one))
    assert summary.metrics == {
        "self_neuron_us": 30.0,
        "self_cpu_us": 10.0,
        "self_cpu_total_us": 10.0,
        "operator_calls": 3.0,
        "executions": 2.0,
        "self_neuron_us/aten::mul": 30.0,
        "self_op_cpu_us/aten::mul": 10.0,
    }


def test_windows_are_divided_by_their_own_steps_before_the_median() -> None:
    # per step 10, 20, 30; dividing the median window (60 by 3) would happen to work, 90/3 not
    windows = (
        window(row("a", 1, 1.0, 10.0), steps=1),
        window(row("a", 2, 2.0, 40.0), steps=2),
        window(row("a", 3, 3.0, 90.0), steps=3),
    )
    summary = summarize(operators(*windows))
    assert summary.metrics["self_neuron_us"] == 20.0
    assert summary.window_self_neuron_us == (10.0, 20.0, 30.0)
    assert summary.window_self_cpu_us == (1.0, 1.0, 1.0)


def test_totals_are_medians_of_totals_not_sums_of_the_rows_medians() -> None:
    windows = (
        window(row("a", neuron=1.0), row("b", neuron=10.0)),  # 11
        window(row("a", neuron=2.0), row("b", neuron=1.0)),  # 3
        window(row("a", neuron=9.0), row("b", neuron=2.0)),  # 11
    )
    summary = summarize(operators(*windows))
    assert summary.metrics["self_neuron_us"] == 11.0  # 3, 11, 11
    assert [r.self_neuron_us for r in summary.rows] == [2.0, 2.0]  # sum 4


def test_an_operator_missing_in_a_window_did_not_run_there() -> None:
    always = row("a", neuron=10.0)
    windows = (window(always, row("b", 2, 4.0, 6.0)), window(always), window(always))
    summary = summarize(operators(*windows))
    by_name = {r.name: r for r in summary.rows}
    assert (by_name["b"].calls, by_name["b"].self_cpu_us, by_name["b"].self_neuron_us) == (0, 0, 0)
    assert "self_neuron_us/b" not in summary.metrics
    windows = (window(always, row("b", 2, 4.0, 6.0)), window(always))
    # of 6 and 0
    assert {r.name: r.self_neuron_us for r in summarize(operators(*windows)).rows}["b"] == 3.0


def test_a_window_without_any_device_time_does_not_pull_the_median_down() -> None:
    windows = (window(row("a", neuron=10.0)), window(row("a", neuron=None)))
    summary = summarize(operators(*windows))
    assert summary.metrics["self_neuron_us"] == 10.0
    assert summary.metrics["self_neuron_us/a"] == 10.0
    assert summary.window_self_neuron_us == (10.0,)
    assert summary.windows == 2


def test_without_a_lawful_source_nothing_that_needs_device_time_is_given() -> None:
    summary = summarize(
        operators(naive_window(executions=6, self_neuron_by_core_us={"0": 9.0}), source=None)
    )
    assert set(summary.metrics) == {"self_cpu_total_us", "executions"}
    assert all(r.self_neuron_us is None and r.neuron_percent is None for r in summary.rows)
    assert summary.window_self_neuron_us == ()
    assert summary.window_self_cpu_us == ()
    assert len(summary.rows) == 5


@pytest.mark.parametrize("time_us", [None, 0.0, -1.0, math.nan, math.inf])
def test_device_time_that_is_none_zero_or_no_number_is_missing_never_zero(
    time_us: float | None,
) -> None:
    summary = summarize(operators(window(row("a", neuron=time_us))))
    assert set(summary.metrics) == {"self_cpu_total_us"}
    assert summary.rows[0].self_neuron_us is None


def test_every_metric_can_be_written_as_json_even_when_a_value_is_not_finite() -> None:
    bad = window(row("a", 1, math.nan, 5.0), row("b", 1, 2.0, math.inf))
    summary = summarize(operators(bad))
    json.dumps(summary.metrics, allow_nan=False)
    assert "self_cpu_us" not in summary.metrics  # a's is unknown, so the sum is
    assert "self_op_cpu_us/a" not in summary.metrics
    assert summary.metrics["self_neuron_us"] == 5.0
    assert {r.name: r.self_cpu_us for r in summary.rows} == {"a": None, "b": 2.0}


def test_executions_and_fallbacks_are_absent_when_unknown_and_given_when_known() -> None:
    unknown = summarize(operators(naive_window())).metrics
    assert "executions" not in unknown
    assert "fallback_operators" not in unknown
    known = summarize(operators(naive_window(executions=0), fallback_operators=())).metrics
    assert known["executions"] == 0
    assert known["fallback_operators"] == 0
    two = summarize(operators(naive_window(), fallback_operators=("aten::sort", "aten::acos")))
    assert two.metrics["fallback_operators"] == 2


def test_the_busiest_core_stands_beside_the_sum_when_there_are_several() -> None:
    one = window(row("a", neuron=30.0), steps=2, self_neuron_by_core_us={"0": 10.0, "1": 20.0})
    metrics = summarize(operators(one)).metrics
    assert metrics["self_neuron_us"] == 15.0
    assert metrics["self_neuron_us_max_core"] == 10.0
    alone = window(row("a", neuron=30.0), self_neuron_by_core_us={"0": 30.0})
    assert "self_neuron_us_max_core" not in summarize(operators(alone)).metrics


def test_a_source_of_totals_only_gives_the_total_and_no_operator() -> None:
    one = window(row("a", cpu=4.0), self_neuron_by_core_us={"0": 30.0}, executions=1)
    summary = summarize(operators(one, source="neuron_explorer"))
    assert summary.metrics == {"self_neuron_us": 30.0, "self_cpu_total_us": 4.0, "executions": 1.0}
    assert summary.rows[0].self_neuron_us is None


@pytest.mark.parametrize(
    "name",
    [
        "threading.py(1002): _bootstrap",
        "<built-in method rsqrt of type object at 0x7fd7676cea40>",
        "<eval_with_key>.1(4): forward",
        "<frozen os>(674): __getitem__",
        "nn.Module: Linear_0",
    ],
)
def test_python_frames_are_no_operators(name: str) -> None:
    summary = summarize(operators(window(row(name, neuron=7.0), row("aten::mul", neuron=5.0))))
    assert [r.name for r in summary.rows] == ["aten::mul"]
    assert summary.metrics["self_neuron_us"] == 5.0


@pytest.mark.parametrize(
    "name",
    [
        "aten::_fused_rms_norm",
        f"{REGION}: 0/0",
        "my_lib::op",
        "build_guards (dynamo_timed)",
        "Op(1)",
    ],
)
def test_operators_of_any_library_are_kept(name: str) -> None:
    assert [r.name for r in summarize(operators(window(row(name)))).rows] == [name]


def test_an_annotation_never_counts_device_time_twice() -> None:
    one = window(row("mine", 1, 9.0, 5.0, annotation=True), row("aten::mul", 1, 1.0, 5.0))
    summary = summarize(operators(one))
    assert summary.metrics["self_neuron_us"] == 5.0
    assert summary.metrics["operator_calls"] == 1


def test_rows_of_one_name_are_added_up() -> None:
    one = window(
        row("aten::mm", 2, 3.0, 10.0), row("aten::mm", 1, 1.0), row("aten::mm", 1, 1.0, 5.0)
    )
    (only,) = summarize(operators(one)).rows
    assert (only.calls, only.self_cpu_us, only.self_neuron_us) == (4, 5.0, 15.0)


def test_only_the_ten_hottest_operators_become_metrics() -> None:
    rows = [row(f"op{n}", neuron=float(n)) for n in range(1, 31)]
    metrics = summarize(operators(window(*rows))).metrics
    keys = {key for key in metrics if key.startswith("self_neuron_us/")}
    assert keys == {f"self_neuron_us/op{n}" for n in range(21, 31)}
    assert {key.replace("self_neuron_us/", "self_op_cpu_us/") for key in keys} <= set(metrics)


def test_no_windows_and_windows_without_steps_give_no_metrics() -> None:
    for empty in (operators(), operators(window(row("a", neuron=1.0), steps=0))):
        summary = summarize(empty)
        assert summary.metrics == {}
        assert summary.rows == ()
        assert summary.windows == 0


def test_a_simulated_source_makes_a_simulated_summary() -> None:
    assert summarize(operators(naive_window(), source="simulated")).simulated


def test_operators_json_read_back_gives_the_same_summary(tmp_path: Path) -> None:
    asked = operators(naive_window(executions=6), naive_window(), fallback_operators=("aten::x",))
    write_operators(tmp_path, asked)
    again = read_operators(tmp_path)
    assert again is not None
    assert summarize(again) == summarize(asked)


times = st.floats(min_value=0.001, max_value=1e6)
table_rows = st.lists(
    st.builds(
        row, st.sampled_from("abcdef"), st.integers(1, 50), times, st.one_of(st.none(), times)
    ),
    max_size=8,
)


@given(table_rows, st.integers(1, 7))
def test_in_one_window_the_rows_add_up_to_the_totals(rows: list[OperatorRow], steps: int) -> None:
    summary = summarize(operators(window(*rows, steps=steps)))
    on_device = [r for r in summary.rows if r.self_neuron_us is not None]
    assert len(on_device) == len({r.name for r in rows if r.self_neuron_us is not None})
    if on_device:
        sums = {
            "self_neuron_us": sum(r.self_neuron_us or 0.0 for r in on_device),
            "self_cpu_us": sum(r.self_cpu_us or 0.0 for r in on_device),
            "operator_calls": sum(r.calls for r in on_device),
        }
        assert {key: summary.metrics[key] for key in sums} == pytest.approx(sums)
        assert sum(r.neuron_percent or 0.0 for r in on_device) == pytest.approx(100)
    else:
        assert "self_neuron_us" not in summary.metrics
    everything = sum(r.self_cpu_us or 0.0 for r in summary.rows)
    assert summary.metrics["self_cpu_total_us"] == pytest.approx(everything)


@given(st.lists(table_rows, min_size=1, max_size=6))
def test_the_order_of_windows_does_not_change_a_number(tables: list[list[OperatorRow]]) -> None:
    windows = [window(*rows) for rows in tables]
    there, back = summarize(operators(*windows)), summarize(operators(*windows[::-1]))
    top = {key for key in there.metrics if "/" not in key}
    assert {key: there.metrics[key] for key in top} == pytest.approx(
        {key: back.metrics[key] for key in top}
    )
    assert sorted(there.window_self_neuron_us) == sorted(back.window_self_neuron_us)

"""Tests of analyze/grouped.py: tables by operator and shape, and by module."""

from __future__ import annotations

from typing import Any

import pytest

from src.analyze.grouped import NO_MODULE, ModuleRow, by_module, by_shape, host_lane

from .traces import event, kernel, mark, trace


def shaped(sizes: list[list[int]], dtype: str = "float", number: int = 0) -> dict[str, Any]:
    found = {"Input Dims": sizes, "Input type": [dtype] * len(sizes)}
    return {**found, "External id": number}


def test_one_operator_with_two_shapes_is_two_rows() -> None:
    found = trace(
        mark(0, 0, 100),
        mark(1, 100, 100),
        event("aten::mm", 0, 10, **shaped([[2, 3], [3, 4]], number=1)),
        event("aten::mm", 20, 30, **shaped([[8, 3], [3, 4]], number=2)),
        event("aten::mm", 120, 10, **shaped([[2, 3], [3, 4]], number=3)),
        event("aten::mm", 150, 10, **shaped([[2, 3], [3, 4]], "c10::Half", number=4)),
        kernel("neff", 500, 40, **{"External id": 2}),
        kernel("neff", 600, 7, **{"External id": 1}),
        kernel("neff", 700, 5, **{"External id": 3}),
    )
    rows = by_shape(found)
    # per step of two: hottest first by device time
    assert [(r.shapes, r.types, r.calls, r.self_cpu_us, r.self_neuron_us) for r in rows] == [
        ("8x3, 3x4", "float, float", 0.5, 15.0, 20.0),
        ("2x3, 3x4", "float, float", 1.0, 10.0, 6.0),
        ("2x3, 3x4", "Half, Half", 0.5, 5.0, None),
    ]
    assert [r.executions for r in rows] == [0.5, 1.0, None]


def test_without_recorded_shapes_an_operator_is_one_row() -> None:
    (row,) = by_shape(trace(event("a", 0, 1), event("a", 5, 1)))
    assert (row.calls, row.shapes, row.self_cpu_us, row.self_neuron_us) == (2, None, 2.0, None)


def test_time_outside_the_steps_is_in_no_table() -> None:
    found = trace(
        mark(0, 0, 10),
        event("a", 0, 5, **{"External id": 1}),
        event("a", 50, 5, **{"External id": 2}),
        kernel("k", 60, 3, **{"External id": 2}),
    )
    (row,) = by_shape(found)
    assert (row.calls, row.self_neuron_us) == (1, None)


@pytest.mark.parametrize(
    ("first", "second", "category"),
    [
        ("module: layers.0", "module: layers.0.attn", "user_annotation"),
        ("nn.Module: layers.0", "nn.Module: layers.0.attn", "python_function"),
    ],
)
def test_time_goes_to_the_innermost_module_once(first: str, second: str, category: str) -> None:
    found = trace(
        mark(0, 0, 100),
        event("aten::embedding", 0, 5, **{"External id": 1}),
        event(first, 10, 60, category),
        event("aten::mul", 10, 10, **{"External id": 2}),
        event(second, 30, 30, category),
        event("aten::linear", 30, 20, **{"External id": 3}),
        event("aten::mm", 35, 10, **{"External id": 4}),
        kernel("k1", 1, 1, **{"External id": 1}),
        kernel("k2", 2, 2, **{"External id": 2}),
        kernel("k4", 4, 4, **{"External id": 4}),
    )
    assert by_module(found) == (
        # module, calls, operators, self cpu, cpu total, self neuron, neuron total
        ModuleRow("layers.0", 1, 1, 10.0, 60.0, 2.0, 6.0),
        ModuleRow("layers.0.attn", 1, 1, 20.0, 30.0, 4.0, 4.0),
        ModuleRow(NO_MODULE, 0, 1, 5.0, 0.0, 1.0, 1.0),
    )


def test_a_module_inside_itself_is_counted_once_in_the_total() -> None:
    found = trace(
        event("module: block", 0, 100, "user_annotation"),
        event("module: block", 10, 50, "user_annotation"),
        event("aten::mul", 20, 5, **{"External id": 1}),
        kernel("k", 0, 8, **{"External id": 1}),
    )
    (row,) = by_module(found)
    assert (row.calls, row.cpu_total_us, row.self_neuron_us, row.neuron_total_us) == (2, 100, 8, 8)


def test_without_links_a_module_has_no_device_time_rather_than_zero() -> None:
    found = trace(
        event("module: block", 0, 100, "user_annotation"),
        event("aten::mul", 20, 5),
        kernel("k", 0, 8),
    )
    (row,) = by_module(found)
    assert (row.self_neuron_us, row.neuron_total_us) == (None, None)


def test_an_operator_may_be_called_module_without_being_a_mark() -> None:
    assert by_module(trace(event("module: x", 0, 1), event("aten::mul", 2, 1))) == ()


def test_the_host_lane_has_outermost_operators_inside_the_steps() -> None:
    found = trace(
        mark(0, 0, 100),
        event("note", 0, 50, "user_annotation"),
        event("late", 40, 5),
        event("outer", 5, 20),
        event("inner", 6, 5),
        event("after", 150, 5),
    )
    assert [span.name for span in host_lane(found)] == ["outer", "late"]

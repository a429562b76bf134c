"""Tests of analyze/chips.py, roofline.py and operator_work.py: limits worked out on paper."""

from __future__ import annotations

import pytest

from src.analyze.chips import peaks
from src.analyze.grouped import ShapeRow
from src.analyze.operator_work import estimate
from src.analyze.roofline import (
    COMPUTE,
    DISPATCH,
    DISPATCH_US,
    ENGINES,
    MEMORY,
    MODEL,
    OWN,
    Dispatch,
    Floor,
    Work,
    bound,
    dispatch,
    floor,
    work_from,
)

# The published RMSNorm example's sizes: 8,388,608 bfloat16 elements read and written, one weight.
RMS_NORM = Work(33_562_624, 33_560_576, "bfloat16")


@pytest.mark.parametrize(
    ("chip", "lnc", "dtype", "gb_per_s", "tflops"),
    [
        # AWS pages, one physical core: 95, 79, 79 TFLOPS in BF16; 23.75, 20, 20 in FP32
        ("trn1", None, "bfloat16", 440.2, 95),
        ("trn1n", None, "float32", 440.2, 23.75),
        ("inf2", None, "bfloat16", 440.2, 95),
        ("trn2", 1, "bfloat16", 362.5, 79),
        ("trn2", 2, "bfloat16", 725.0, 158),
        ("trn2u", None, "float32", 725.0, 40),
        ("trn3", 1, "float16", 612.5, 79),
        ("trn3", None, "bfloat16", 1225.0, 158),
    ],
)
def test_peaks_of_one_logical_core(
    chip: str, lnc: int | None, dtype: str, gb_per_s: float, tflops: float
) -> None:
    found = peaks(chip, lnc, dtype)
    assert found.hbm_bytes_per_s / 1e9 == pytest.approx(gb_per_s, rel=1e-3)
    assert found.flops_per_s == tflops * 1e12
    assert not found.assumed


@pytest.mark.parametrize("chip", [None, "", "m7i", "neuron:0"])
def test_an_unknown_chip_is_an_assumed_trn2(chip: str | None) -> None:
    found = peaks(chip, None, "bfloat16")
    assert (found.chip, found.lnc, found.assumed) == ("trn2", 2, True)
    assert "assumed" in str(found)
    assert "assumed" not in str(peaks("trn2", None, "bfloat16"))


def test_a_dtype_without_a_published_peak_has_none() -> None:
    found = floor(Work(100, 100, "int8"), peaks("trn2", 2, "int8"))
    assert found.compute_us is None
    assert found.us == found.memory_us


def test_rms_norm_is_bounded_by_memory() -> None:
    found = floor(RMS_NORM, peaks("trn2", 2, "bfloat16"))
    assert found.memory_us == pytest.approx(46.29, abs=0.01)  # 33,562,624 / 725e9
    assert found.compute_us == pytest.approx(0.2124, abs=1e-4)  # 33,560,576 / 158e12
    assert found.us == found.memory_us
    assert found.side == MEMORY
    assert RMS_NORM.intensity == pytest.approx(1.0, abs=1e-3)


def test_a_large_product_is_bounded_by_arithmetic() -> None:
    # 4096^3: 2 x 4096^3 flop and three matrices of 32 MiB
    work = Work(3 * 2 * 4096**2, 2 * 4096**3, "bfloat16")
    found = floor(work, peaks("trn2", 2, "bfloat16"))
    assert found.us == pytest.approx(869.9, abs=0.1)  # 137.4e9 / 158e12
    assert found.memory_us == pytest.approx(138.8, abs=0.1)
    assert found.side == COMPUTE


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"bytes_moved": None, "flops": None},
        {"bytes_moved": 0},
        {"flops": float("nan")},
    ],
)
def test_nobody_says_what_the_work_is(data: object) -> None:
    assert work_from(data) is None


def test_half_of_the_work_is_enough_for_a_floor() -> None:
    work = work_from({"bytes_moved": 725e9, "flops": None, "dtype": "bfloat16"})
    assert work is not None
    assert work.intensity is None
    assert floor(work, peaks("trn2", 2, "bfloat16")).us == pytest.approx(1e6)


def test_the_fixed_cost_is_never_more_than_the_runs_own_cheapest_execution() -> None:
    assert dispatch(6, None, 119.0) == Dispatch(6, True, 119.0, OWN)
    published = dispatch(6, 9, 5000.0)
    assert published is not None
    assert (published.each_us, published.us, published.counted) == (DISPATCH_US, 2040.0, True)


def test_operator_calls_stand_for_executions_that_nobody_counted() -> None:
    found = dispatch(None, 6, None)
    assert found is not None
    assert (found.executions, found.counted) == (6, False)
    assert dispatch(None, None, 3.0) is None


NO_FLOOR = Floor(None, None)


@pytest.mark.parametrize(
    ("total", "found", "fixed", "label"),
    [
        (2355.0, Floor(46.3, 0.2), Dispatch(6, True, 340.0, ""), DISPATCH),  # 87 %
        (680.0, Floor(46.3, 0.2), Dispatch(1, True, 340.0, ""), DISPATCH),  # just half
        (700.0, Floor(400.0, 0.2), Dispatch(1, True, 340.0, ""), MEMORY),
        (1000.0, Floor(139.0, 870.0), Dispatch(1, True, 340.0, ""), COMPUTE),
        (9000.0, Floor(139.0, 870.0), Dispatch(1, True, 340.0, ""), None),
        (9000.0, NO_FLOOR, None, None),
    ],
)
def test_the_bound_takes_half_of_the_time(
    total: float, found: Floor, fixed: Dispatch | None, label: str | None
) -> None:
    got = bound(total, found, fixed)
    assert (got.label, got.source) == (label, MODEL)


@pytest.mark.parametrize(
    ("engines", "label"),
    [
        ({"engine/tensor_active_fraction": 0.8, "engine/dma_active_fraction": 0.3}, COMPUTE),
        ({"engine/tensor_active_fraction": 0.1, "engine/mbu": 0.7}, MEMORY),
        ({"engine/tensor_active_fraction": 0.1, "engine/dma_active_fraction": 0.2}, None),
    ],
)
def test_engine_metrics_go_before_the_model(engines: dict[str, float], label: str | None) -> None:
    got = bound(2355.0, Floor(46.3, 0.2), Dispatch(6, True, 340.0, ""), engines)
    assert (got.label, got.source) == (label, ENGINES)


def test_engine_metrics_that_say_nothing_leave_the_model() -> None:
    got = bound(2355.0, NO_FLOOR, Dispatch(6, True, 340.0, ""), {"engine/hbm_bytes": 5.0})
    assert (got.label, got.source) == (DISPATCH, MODEL)


def shape_row(operator: str, shapes: str | None, types: str | None) -> ShapeRow:
    return ShapeRow(operator, shapes, types, 1, 1.0, None, None)


@pytest.mark.parametrize(
    ("operator", "shapes", "read_bytes", "flops"),
    [
        ("aten::mm", "4x8, 8x16", 4 * (32 + 128), 2 * 4 * 8 * 16),
        ("aten::bmm", "3x4x8, 3x8x16", 4 * 3 * (32 + 128), 2 * 3 * 4 * 8 * 16),
        ("aten::addmm", "16, 4x8, 8x16", 4 * (16 + 32 + 128), 2 * 4 * 8 * 16),
        ("aten::linear", "2x4x8, 16x8", 4 * (64 + 128), 2 * 8 * 8 * 16),
        ("aten::mul", "4x8, 8", 4 * 40, None),
    ],
)
def test_a_calls_work_follows_from_its_shapes(
    operator: str, shapes: str, read_bytes: int, flops: int | None
) -> None:
    types = ", ".join(["float"] * len(shapes.split(", ")))
    found = estimate(shape_row(operator, shapes, types))
    assert found is not None
    assert (found.bytes_read, found.flops, found.dtype) == (read_bytes, flops, "float32")


@pytest.mark.parametrize(
    ("shapes", "types"), [(None, None), ("", ""), ("2x2", "Strange"), ("2x2, 2x2", "float")]
)
def test_without_shapes_or_sizes_nothing_is_estimated(
    shapes: str | None, types: str | None
) -> None:
    assert estimate(shape_row("aten::mm", shapes, types)) is None

"""Tests of analyze/check_table.py: each check with a table that passes and one that fails."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from src.analyze.check_table import (
    compile_in_window,
    compiled_region_present,
    device_time,
    fallback,
    keywords_dropped,
    steps_marked,
)
from src.rundir import OperatorRow, Operators, Window
from src.schema import CompileConfig, Config, ProfilerConfig, VariantConfig

RUNTIME = ProfilerConfig("runtime")
REGION = OperatorRow("Torch-Compiled Region: 0/0", 1, 98.4, 98.4, 375.5)
MARK = OperatorRow("ProfilerStep*", 1, 10.0, 200.0, None, annotation=True)


def window(*rows: OperatorRow, **fields: Any) -> Window:
    asked = {"steps": 1, "self_cpu_total_us": 108.4, "executions": 1, **fields}
    return Window(operators=rows or (REGION, MARK), **asked)


def operators(*windows: Window, **fields: Any) -> Operators:
    source = fields.pop("device_time_source", "key_averages")
    return Operators(source, windows or (window(), window()), **fields)


def test_a_good_table_passes() -> None:
    assert device_time(operators(), RUNTIME).status == "ok"
    assert compile_in_window(operators(), RUNTIME).status == "ok"
    assert steps_marked(operators()).status == "ok"


def test_a_table_without_windows_fails() -> None:
    found = device_time(Operators("key_averages", ()), RUNTIME)
    assert found.status == "failed"
    assert "No window" in found.message


def test_nothing_executed_names_the_operators_that_fell_back() -> None:
    quiet = window(OperatorRow("aten::sort", 1, 5.0, 5.0), MARK, executions=0)
    asked = operators(quiet, quiet, fallback_operators=("aten::sort",))
    found = device_time(asked, RUNTIME)
    assert found.status == "failed"
    assert "0 executions" in found.message
    assert "aten::sort" in found.message


@pytest.mark.parametrize(
    ("profiler", "dropped", "cure"),
    [
        ({"correlate_device_time": False}, (), "Type profiler.correlate_device_time=true"),
        ({}, ("correlate_device_time",), "newer torch-neuronx"),
        ({"modes": ["DEVICE"]}, (), "Type profiler=combined"),
        ({}, (), "neuron-explorer"),
    ],
)
def test_no_lawful_source_says_what_to_try(
    profiler: dict[str, Any], dropped: tuple[str, ...], cure: str
) -> None:
    asked = operators(device_time_source=None, dropped_keywords=dropped)
    found = device_time(asked, ProfilerConfig(**profiler))
    assert found.status == "failed"
    assert cure in found.message


def test_a_source_that_gave_no_time_fails() -> None:
    bare = window(OperatorRow("aten::mul", 1, 5.0, 5.0), MARK, executions=None)
    found = device_time(operators(bare, bare), RUNTIME)
    assert found.status == "failed"
    assert "no device time in any window" in found.message


def test_totals_by_core_are_device_time() -> None:
    bare = window(OperatorRow("aten::mul", 1, 5.0, 5.0), MARK, self_neuron_by_core_us={"0": 12.0})
    asked = operators(bare, bare, device_time_source="neuron_explorer")
    assert device_time(asked, RUNTIME).status == "ok"


def test_a_window_without_device_time_is_suspicious() -> None:
    bare = window(OperatorRow(REGION.name, 1, 5.0, 5.0), MARK, executions=0)
    found = device_time(operators(window(), bare), RUNTIME)
    assert found.status == "warning"
    assert "Only 1 of 2 windows" in found.message


def test_an_operator_with_device_time_in_some_windows_only_is_suspicious() -> None:
    add = OperatorRow("aten::add", 1, 5.0, 5.0)
    timed = dataclasses.replace(add, self_neuron_us=3.0)
    asked = operators(window(REGION, MARK, add), window(REGION, MARK, timed))
    found = device_time(asked, RUNTIME)
    assert found.status == "warning"
    assert "aten::add" in found.message


@pytest.mark.parametrize(
    "compiling",
    [
        window(compiles=1),
        window(REGION, MARK, OperatorRow("build_guards (dynamo_timed)", 1, 9.0, 9.0)),
    ],
)
def test_a_compile_in_the_window_fails_unless_it_is_allowed(compiling: Window) -> None:
    asked = operators(window(), compiling)
    found = compile_in_window(asked, RUNTIME)
    assert found.status == "failed"
    assert "profiler.warmup" in found.message
    assert "profiler.allow_compile_in_window=true" in found.message
    allowed = compile_in_window(asked, ProfilerConfig(allow_compile_in_window=True))
    assert allowed.status == "ok"
    assert "accepted by profiler.allow_compile_in_window=true" in allowed.message


def test_steps_are_counted_in_both_spellings_of_the_mark() -> None:
    two = [dataclasses.replace(MARK, name=f"ProfilerStep#{n}") for n in range(2)]
    asked = operators(
        window(REGION, *two, steps=2), window(REGION, dataclasses.replace(MARK, calls=2), steps=2)
    )
    assert steps_marked(asked).status == "ok"


@pytest.mark.parametrize("rows", [(REGION,), (REGION, dataclasses.replace(MARK, calls=3))])
def test_missing_and_surplus_step_marks_fail(rows: tuple[OperatorRow, ...]) -> None:
    found = steps_marked(operators(window(*rows), window()))
    assert found.status == "failed"
    assert "window 0:" in found.message
    assert "for 1 steps" in found.message


def test_a_compiled_variant_without_a_region_ran_eager() -> None:
    eager = window(OperatorRow("aten::mul", 3, 60.9, 60.9, 1164.5), MARK)
    compiled = Config(variant=VariantConfig("compiled", "naive", CompileConfig()))
    found = compiled_region_present(operators(window(), eager), compiled)
    assert found.status == "failed"
    assert "variant=compiled" in found.message
    assert "window 1" in found.message
    assert compiled_region_present(operators(), compiled).status == "ok"
    naive = Config(variant=VariantConfig("naive", "naive"))
    assert compiled_region_present(operators(eager), naive).status == "ok"


def test_dropped_keywords_are_a_warning() -> None:
    found = keywords_dropped(operators(dropped_keywords=("precache_node_info",)))
    assert found.status == "warning"
    assert "precache_node_info" in found.message
    assert keywords_dropped(operators()).status == "ok"


@pytest.mark.parametrize(
    ("names", "status"), [(None, "ok"), ((), "ok"), (("aten::sort", "aten::acos"), "warning")]
)
def test_fallbacks_are_a_warning(names: tuple[str, ...] | None, status: str) -> None:
    found = fallback(operators(fallback_operators=names))
    assert found.status == status
    assert ("aten::acos, aten::sort fell back" in found.message) == bool(names)

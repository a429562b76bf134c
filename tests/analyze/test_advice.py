"""Tests of analyze/advice.py: the arithmetic and the words, from the published RMSNorm tables."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from src.analyze.advice import SIMULATED, Facts, advise, hot_operators
from src.analyze.books import DeviceBook
from src.analyze.deeper import facts_of
from src.analyze.grouped import ShapeRow
from src.analyze.operators import summarize
from src.analyze.roofline import COMPUTE, DISPATCH, MEMORY, Work
from src.rundir import OperatorRow, Operators, Window
from src.schema import CompileConfig, Config, InputConfig, Spec, VariantConfig, WorkloadConfig

NAIVE = (
    OperatorRow("aten::mul", 3, 60.9, 60.9, 1164.5),
    OperatorRow("aten::add", 1, 26.6, 26.6, 434.6),
    OperatorRow("aten::rsqrt", 1, 15.6, 15.6, 415.0),
    OperatorRow("aten::mean", 1, 21.1, 21.1, 340.9),
)
REGION = (OperatorRow("Torch-Compiled Region: 0/0", 1, 98.4, 98.4, 375.5),)
WORK = Work(33_562_624, 33_560_576, "bfloat16")
COMPILED = VariantConfig("compiled", "naive", CompileConfig())


def facts(
    *rows: OperatorRow,
    executions: int | None = 6,
    variant: VariantConfig | None = None,
    work: Work | None = WORK,
    source: str = "key_averages",
    dtype: str = "bfloat16",
    compiles: int = 0,
    **changes: Any,
) -> Facts:
    config = Config(
        workload=WorkloadConfig("rms_norm", ["naive", "fused"]),
        variant=variant or VariantConfig("naive", "naive"),
        input=InputConfig("medium", [1, 2048, 4096], dtype=dtype),
    )
    window = Window(1, rows or NAIVE, 129.2, executions=executions, compiles=compiles)
    operators = Operators(source, (window,))
    summary = summarize(operators)
    summary = dataclasses.replace(summary, simulated=source == "simulated")
    found = facts_of(Spec(config), operators, summary, None, {"chip": "trn2"}, work)
    return dataclasses.replace(found, **changes)


def test_the_published_naive_run_is_told_what_one_execution_would_take() -> None:
    (said,) = advise(facts())
    # 6 x 340 = 2040 of 2355.0 (86.6 %); 340 + 33,562,624 / 725e9 = 340 + 46.3; 2355 / 386.3 = 6.1
    assert said == (
        "6 device executions at about 340 us of fixed cost each (the smallest execution of the "
        "published RMSNorm study) are 2,040 of 2,355 us, 87% of Self NEURON. Fewer executions "
        "would help: variant=fused (a fused operator) or variant=compiled (torch.compile). One "
        "execution that does only the unavoidable work (33.6 MB, 3.36e+07 flop in bfloat16) would "
        "take at best about 1 x 340 + 46 = 386 us, 6.1 times less."
    )


def test_the_hot_operators_are_named_with_share_bound_and_what_to_try() -> None:
    found = hot_operators(facts())
    assert [(one.name, round(one.percent)) for one in found] == [
        ("aten::mul", 49),
        ("aten::add", 18),
        ("aten::rsqrt", 18),
        ("aten::mean", 14),
    ]
    assert {one.bound for one in found} == {DISPATCH}
    assert found[0].reason.startswith("about 340 of 388 us a call")  # 1164.5 / 3
    assert "variant=fused" in found[0].attempt
    assert "variant=compiled" in found[0].attempt


def test_a_compiled_run_of_one_execution_is_told_to_do_more_in_it() -> None:
    compiled = facts(*REGION, executions=1, variant=COMPILED)
    (said,) = advise(compiled)
    # The rest is 35.5, less than the floor of 46.3: 340 + 8 x 46.3 = 710; 8 x 375.5 / 710 = 4.2
    assert "about 340 of 376 us are its fixed cost" in said
    assert "340 + 8 x 46 = 710 us, 4.2 times the throughput" in said
    assert "variant=" not in said
    (hot,) = hot_operators(compiled)
    assert (hot.name, hot.bound) == ("Torch-Compiled Region", DISPATCH)
    assert "larger batch" in hot.attempt


def test_simulated_time_gives_no_advice_and_no_bound() -> None:
    simulated = facts(source="simulated")
    assert advise(simulated) == (SIMULATED,)
    assert (simulated.bound, simulated.dispatch) == (None, None)


def test_calls_that_stand_for_executions_are_called_so() -> None:
    (said,) = advise(facts(executions=None))
    assert said.startswith("6 operator calls (executions are not counted) at about 340 us")


def test_without_the_work_there_is_no_estimate_of_one_execution() -> None:
    (said,) = advise(facts(work=None))
    assert "87% of Self NEURON" in said
    assert "One execution" not in said


def test_the_runs_own_cheapest_operator_lowers_the_fixed_cost() -> None:
    cheap = (*NAIVE, OperatorRow("aten::neg", 1, 5.0, 5.0, 100.0))
    found = facts(*cheap, executions=7)
    assert found.dispatch is not None
    assert found.dispatch.each_us == 100.0
    assert "this run's cheapest operator" in advise(found)[0]


def shape(operator: str, shapes: str, dtype: str = "BFloat16") -> ShapeRow:
    types = ", ".join([dtype] * len(shapes.split(", ")))
    return ShapeRow(operator, shapes, types, 1, 1.0, None, None)


def test_with_shapes_a_large_product_is_compute_bound_and_a_sum_memory_bound() -> None:
    rows = (
        OperatorRow("aten::mm", 1, 10.0, 10.0, 2000.0),
        OperatorRow("aten::add", 1, 10.0, 10.0, 2000.0),
    )
    shapes = (shape("aten::mm", "4096x4096, 4096x4096"), shape("aten::add", "8x2048x4096"))
    product, total = hot_operators(facts(*rows, executions=2, shapes=shapes))
    assert product.bound == COMPUTE
    # 2 x 4096^3 / 158e12 = 870 us; 67.1 MB / 725e9 = 93 us
    assert "1.37e+11 flop a call need 870 us" in product.reason
    assert "reading its inputs 93 us" in product.reason
    assert total.bound == MEMORY
    assert "134.2 MB a call needs 185 us at 725 GB/s" in total.reason


def test_without_shapes_a_product_asks_for_them_and_others_are_memory_bound() -> None:
    rows = (
        OperatorRow("aten::mm", 1, 10.0, 10.0, 2000.0),
        OperatorRow("aten::add", 1, 10.0, 10.0, 2000.0),
    )
    product, total = hot_operators(facts(*rows, executions=2))
    assert product.bound == "not dispatch-bound"
    assert "profiler.record_shapes=true" in product.reason
    assert total.bound == MEMORY


def test_float32_products_are_told_of_bfloat16() -> None:
    rows = (OperatorRow("aten::mm", 1, 10.0, 10.0, 9000.0),)
    shapes = (shape("aten::mm", "4096x4096, 4096x4096", "float"),)
    work = Work(1e6, 1e6, "float32")
    (hot,) = hot_operators(facts(*rows, executions=1, shapes=shapes, dtype="float32", work=work))
    assert "input.dtype=bfloat16" in hot.attempt


BOOK = DeviceBook("x", 6, 1000.0, 600.0, 600.0, 400.0, 0.0, 600.0, 0.0, 5, 250.0, "aten::add", {})


def test_an_idle_device_is_told_with_its_longest_gap() -> None:
    said = " ".join(advise(facts(book=BOOK)))
    assert "The device waits 400 of 1,000 us a step (40%)" in said
    assert "the longest 250 us before `aten::add`" in said
    busy = dataclasses.replace(BOOK, idle_us=199.0)
    assert "waits" not in " ".join(advise(facts(book=busy)))


def test_graph_breaks_compiles_and_fallbacks_have_a_sentence_each() -> None:
    regions = [OperatorRow(f"Torch-Compiled Region: {n}/0", 1, 9.0, 9.0, 900.0) for n in range(2)]
    said = advise(facts(*regions, executions=2, variant=COMPILED))
    assert any("2 regions that run in a step" in one for one in said)
    assert any("2 graph(s) were compiled inside" in one for one in advise(facts(compiles=2)))
    fallen = advise(facts(fallbacks=("aten::sort",)))
    assert any(one.startswith("aten::sort ran on the CPU") for one in fallen)


def test_what_the_model_does_not_explain_is_admitted() -> None:
    slow = (OperatorRow("Torch-Compiled Region: 0/0", 1, 9.0, 9.0, 9000.0),)
    (said,) = advise(facts(*slow, executions=1, variant=COMPILED))
    # 340 / 9000 = 4 %, 46.3 / 9000 = 1 %
    assert "fixed cost explains 4% and the unavoidable work 1% of 9,000 us" in said
    assert "profiler=combined" in said


@pytest.mark.parametrize("rows", [NAIVE, REGION])
def test_every_sentence_ends(rows: tuple[OperatorRow, ...]) -> None:
    assert all(one.endswith(".") for one in advise(facts(*rows)))

"""Parsing of shapes and core lists, and the rules between fields."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src import rules
from src.errors import UserError
from src.schema import (
    CompileConfig,
    Config,
    DeviceConfig,
    InputConfig,
    ProfilerConfig,
    TrackingConfig,
    VariantConfig,
    WorkloadConfig,
)


def a_config(**changes: object) -> Config:
    config = Config(
        workload=WorkloadConfig("rms_norm", ["naive", "fused"]),
        variant=VariantConfig("naive", "naive"),
        input=InputConfig("small", "1x128x1024"),
        profiler=ProfilerConfig("runtime"),
        device=DeviceConfig("simulated", env={}),
        tracking=TrackingConfig("local"),
    )
    return dataclasses.replace(config, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("typed", "sizes"),
    [
        ("8x2048x4096", [8, 2048, 4096]),
        ([8, 2048, 4096], [8, 2048, 4096]),
        ("64,64", [64, 64]),
        (" 8 x 4 ", [8, 4]),
        (7, [7]),
        (["8", 4], [8, 4]),
    ],
)
def test_each_form_of_a_shape_names_the_same_sizes(typed: object, sizes: list[int]) -> None:
    assert rules.parse_shape(typed) == sizes


@pytest.mark.parametrize(
    "typed",
    ["", "x", "8x", "0x4", [0], [], "-1x4", [-1], "1.5x2", [1.5], "0x10", "8xx4", None, [True], {},
     "8x４", "1e3x2", [[8, 4]], "9" * 30],
)  # fmt: skip
def test_what_is_no_shape_is_refused_with_the_allowed_forms(typed: object) -> None:
    with pytest.raises(UserError, match=r"input\.shape=.*8x2048x4096 or \[8,2048,4096\]"):
        rules.parse_shape(typed)


def test_a_shape_that_no_device_can_hold_is_refused() -> None:
    with pytest.raises(UserError, match="at most 1,099,511,627,776"):
        rules.parse_shape("1000000x1000000x1000000")


@pytest.mark.parametrize(
    ("typed", "cores"),
    [("0", [0]), ("0-3", [0, 1, 2, 3]), ("0,2-5", [0, 2, 3, 4, 5]), (2, [2]), (" 1 , 0 ", [0, 1])],
)
def test_each_form_of_a_core_list_is_read(typed: object, cores: list[int]) -> None:
    assert rules.parse_cores(typed) == cores


@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        ("5-3", "cores=3-5"),
        ("0,0", "cores=0"),
        ("0-2,1", "cores=0-2"),
        ("", "0, 0-3 or 0,2-5"),
        ("a", "0, 0-3 or 0,2-5"),
        ("0-", "0, 0-3 or 0,2-5"),
        ("-1", "0, 0-3 or 0,2-5"),
        ("0;1", "0, 0-3 or 0,2-5"),
        ("[0,1]", "0, 0-3 or 0,2-5"),
        ("0-999999999", "no NeuronCore 999999999"),
        ("1.5", "0, 0-3 or 0,2-5"),
    ],
)
def test_what_is_no_core_list_is_refused_with_what_to_type(typed: str, instead: str) -> None:
    with pytest.raises(UserError) as caught:
        rules.parse_cores(typed)
    assert instead in str(caught.value)


@given(st.sets(st.integers(0, rules.HIGHEST_CORE), min_size=1))
def test_a_core_list_that_is_written_reads_back_the_same(cores: set[int]) -> None:
    assert rules.parse_cores(rules.format_cores(cores)) == sorted(cores)


@given(st.one_of(st.text(), st.integers(), st.lists(st.integers()), st.floats(), st.none()))
def test_no_input_gives_anything_but_sizes_or_one_clear_message(typed: object) -> None:
    for parse, key in ((rules.parse_shape, "input.shape"), (rules.parse_cores, "cores")):
        said, numbers = "", []
        try:
            numbers = parse(typed)
        except UserError as error:
            said = str(error)
        assert said.startswith(key) if said else numbers
        assert all(isinstance(number, int) for number in numbers)


def test_a_checked_config_is_canonical() -> None:
    profiler = ProfilerConfig("runtime", modes=["runtime", "RUNTIME"])
    config = rules.checked(a_config(profiler=profiler, cores=" 0 "))
    assert config.input.shape == [1, 128, 1024]
    assert config.profiler.modes == ["RUNTIME"]
    assert config.cores == "0"


BROKEN = [
    ({"input": InputConfig("small", "8x8", dtype="bf16")}, "input.dtype=bfloat16"),
    ({"execution": "fast"}, "default, async, blocking"),
    ({"variant": VariantConfig("x", "flash")}, "it has: naive, fused"),
    ({"variant": VariantConfig("c", "naive", CompileConfig(dynamic=True))}, "dynamic=false"),
    ({"variant": VariantConfig()}, "variant.name: no value"),
    ({"cores": "0-3"}, "uses 1"),
    ({"profiler": ProfilerConfig("runtime", modes=[])}, "profiler.modes"),
    ({"profiler": ProfilerConfig("runtime", modes=["RUNTME"])}, "Did you mean"),
    ({"profiler": ProfilerConfig("runtime", steps=0)}, "profiler.steps=1"),
    ({"profiler": ProfilerConfig("runtime", repeats=0)}, "profiler.repeats=1"),
    ({"profiler": ProfilerConfig("runtime", warmup=-1)}, "profiler.warmup=0"),
    ({"profiler": ProfilerConfig("runtime", max_events_per_nc=0)}, "max_events_per_nc=1"),
    ({"profiler": ProfilerConfig("runtime", capture_cores="1")}, "capture_cores=0"),
    ({"device": DeviceConfig("simulated", env={"A-B": 1})}, "device.env.A-B"),
    ({"device": DeviceConfig("simulated", env={"A": [1]})}, "device.env.A"),
    ({"workload": WorkloadConfig("rms_norm", ["naive"], numerics="no")}, "fail, warn, off"),
    ({"workload": WorkloadConfig("rms_norm", ["naive"], tolerance=-1.0)}, "tolerance=2e-2"),
    ({"tracking": TrackingConfig("local", uri="mlruns")}, "tracking.root=<folder>"),
    ({"tracking": TrackingConfig("local", uri="file:///tmp/x")}, "sqlite:////abs/mlflow.db"),
]


@pytest.mark.parametrize(("changes", "says"), BROKEN)
def test_a_broken_rule_is_one_message_with_what_to_type(changes: dict, says: str) -> None:
    with pytest.raises(UserError) as caught:
        rules.checked(a_config(**changes))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_hardware_wants_three_warm_up_calls_and_the_simulator_does_not() -> None:
    cold = ProfilerConfig("runtime", warmup=0)
    rules.checked(a_config(profiler=cold))
    with pytest.raises(UserError, match="at least 3 on hardware"):
        rules.checked(a_config(profiler=cold, device=DeviceConfig("neuron", env={})))

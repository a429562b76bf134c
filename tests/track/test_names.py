"""Each name becomes a key that MLflow takes, and no two names share one."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from src.track import names

AWKWARD = [
    "ProfilerStep*",
    "## Call CompiledFxGraph f72p ##",
    "<built-in function f>",
    "model.layers[0], x@y (z) 'q' \"r\" `s`",
    "tab\tline\nnul\0",
    "emoji 🙂 zero\u200bwidth",
    "a//b",
    "/a",
    "a/",
    "../x",
    "a/../b",
    "./a",
    ".",
    "..",
    "",
    "   ",
    "a/ /b",
    "x" * 251,
    "x" * 5000,
    "é" * 300,
    "\ud800",
]


def mlflow_takes(key: str) -> bool:
    from mlflow.exceptions import MlflowException
    from mlflow.utils import validation

    try:
        validation._validate_metric(key, 1.0, 0, 0)
        validation._validate_param(key, "x")
        validation._validate_tag(key, "x")
    except MlflowException:
        return False
    return True


@pytest.mark.parametrize("name", AWKWARD)
def test_an_awkward_name_becomes_a_key_that_mlflow_takes(name: str) -> None:
    assert mlflow_takes(names.key_of(name))
    assert mlflow_takes(names.key_of(name, strict=True))


@pytest.mark.parametrize(
    "name", ["aten::mul", "Torch-Compiled Region: 0/0", "self_neuron_us/aten::mul", "é µ 中", "a.b"]
)
def test_a_name_that_mlflow_takes_stays_as_it_is(name: str) -> None:
    assert names.key_of(name) == name
    assert mlflow_takes(name)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_name_becomes_a_key_that_mlflow_takes(name: str) -> None:
    assert mlflow_takes(names.key_of(name))


@pytest.mark.parametrize(
    ("one", "other"),
    [("f<1>", "f[1]"), ("a<b", "a>b"), ("x" * 260, "x" * 261), ("a<b", "a_b"), ("a//b", "a/_/b")],
)
def test_two_names_never_share_a_key(one: str, other: str) -> None:
    keys = names.keys_of([one, other])
    assert keys[one] != keys[other]


def test_a_key_does_not_depend_on_what_else_is_in_the_run_or_on_its_order() -> None:
    every = [*AWKWARD, "f<1>", "f[1]", "aten::mul"]
    alone = {name: names.key_of(name) for name in every}
    random.Random(0).shuffle(every)
    assert names.keys_of(every) == alone


def test_strict_names_have_no_colon_and_still_differ() -> None:
    keys = names.keys_of(["aten::mul", "aten__mul", "aten:_mul"], strict=True)
    assert keys["aten__mul"] == "aten__mul"
    assert len(set(keys.values())) == 3
    assert not any(":" in key for key in keys.values())
    assert names.key_of("aten::add", strict=True) == "aten__add"


def test_a_long_value_is_cut_with_a_mark() -> None:
    assert names.cut("x" * 7000, 500) == "x" * 496 + " ..."
    assert names.cut("short", 500) == "short"

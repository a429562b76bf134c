"""Packages that carry the name torch_neuronx and cannot profile: each has a message of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import asking
from .conftest import Measure

CASES = {
    "old_xla": ("older product of the same name, built on XLA", "2.13 or newer"),
    "placeholder": ("placeholder", "pip uninstall torch-neuronx"),
    "broken": ("native library does not load", "libnrt.so.1", "aws-neuronx-runtime-lib"),
}


@pytest.mark.parametrize("product", CASES)
def test_it_is_refused_in_its_own_words(measure: Measure, product: str) -> None:
    run = measure(product=asking.HERE / product)
    assert run.status == "REFUSED"
    assert run.message.startswith("device=neuron: ")
    for words in CASES[product]:
        assert words in run.message


def test_auto_does_not_become_the_simulator_beside_one_of_them(measure: Measure) -> None:
    asked = asking.spec()
    asked.config.device.name = "auto"
    run = measure(asked=asked, product=asking.HERE / "placeholder")
    assert run.status == "REFUSED"
    assert "signs of Neuron (Python package torch_neuronx" in run.message


def test_no_package_at_all_is_said_so(measure: Measure, tmp_path: Path) -> None:
    run = measure(product=tmp_path)
    assert run.status == "REFUSED"
    assert "torch_neuronx is not installed" in run.message


@pytest.mark.slow
def test_a_library_that_breaks_the_import_of_torch_is_refused_in_words(tmp_path: Path) -> None:
    environ = asking.environment(tmp_path, product=asking.HERE / "broken_at_torch")
    run = asking.measure(tmp_path, environ=environ)
    assert run.status == "REFUSED"
    assert "native library does not load" in run.message


def test_auto_takes_a_library_that_works(measure: Measure) -> None:
    asked = asking.spec()
    asked.config.device.name = "auto"
    run = measure(asked=asked)
    assert run.ready["device"] == "neuron"
    assert run.tags["device_time_source"] == "key_averages"


@pytest.mark.slow
def test_the_simulator_has_the_device_for_itself_beside_a_library_that_works(
    tmp_path: Path,
) -> None:
    simulated = asking.spec(device="simulated")
    run = asking.measure(tmp_path, asked=simulated)
    assert run.status == "FINISHED", run.message
    assert run.ready["device"] == "simulated"
    assert run.diary == []  # torch was told not to load it

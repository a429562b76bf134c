"""Variables in the way of a profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from src.diagnose.environment import environment
from src.diagnose.finding import NOT_APPLICABLE, OK, PROBLEM, WARNING

from . import planting
from .planting import LAPTOP, WORKING

CASES = [
    ({"NEURON_RT_INSPECT_ENABLE": "1"}, PROBLEM, "unset NEURON_RT_INSPECT_ENABLE"),
    ({"NEURON_RT_VISIBLE_CORES": ""}, PROBLEM, "unset NEURON_RT_VISIBLE_CORES"),
    (
        {"NEURON_RT_VISIBLE_CORES": "0", "NEURON_RT_NUM_CORES": "2"},
        WARNING,
        "unset NEURON_RT_NUM_CORES",
    ),
    ({"NEURON_RT_VISIBLE_CORES": "1"}, WARNING, "unset NEURON_RT_VISIBLE_CORES"),
    (
        {"NEURON_RT_VIRTUAL_CORE_SIZE": "1", "NEURON_LOGICAL_NC_CONFIG": "2"},
        PROBLEM,
        "export NEURON_RT_VIRTUAL_CORE_SIZE=2 NEURON_LOGICAL_NC_CONFIG=2",
    ),
    (
        {"NEURON_RT_VIRTUAL_CORE_SIZE": "2", "NEURON_CC_FLAGS": "--target trn2 --lnc=1"},
        PROBLEM,
        "export NEURON_RT_VIRTUAL_CORE_SIZE=2",
    ),
    ({"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, WARNING, "unset TORCH_DEVICE_BACKEND_AUTOLOAD"),
    ({"NEURON_LAUNCH_BLOCKING": "1"}, WARNING, "unset NEURON_LAUNCH_BLOCKING"),
    ({"NEURON_RT_LOG_LEVEL": "debug"}, WARNING, "unset NEURON_RT_LOG_LEVEL"),
    ({"TORCH_NEURONX_NEFF_DISABLE_CACHE": "1"}, WARNING, "TORCH_NEURONX_NEFF_DISABLE_CACHE"),
]


@pytest.mark.parametrize(("variables", "status", "cure"), CASES)
def test_a_variable_in_the_way_is_named_with_its_cure(
    variables: dict[str, str], status: str, cure: str, tmp_path: Path
) -> None:
    (found,) = environment(planting.trainium(tmp_path, **variables), WORKING)
    assert found.status == status
    assert cure in str(found.cure)


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"NEURON_RT_INSPECT_ENABLE": "0"},
        {"NEURON_LAUNCH_BLOCKING": "0"},
        {"NEURON_RT_VIRTUAL_CORE_SIZE": "2", "NEURON_LOGICAL_NC_CONFIG": "2"},
        {"NEURON_RT_LOG_LEVEL": "WARN"},
    ],
)
def test_harmless_variables_are_not_mentioned(variables: dict[str, str], tmp_path: Path) -> None:
    (found,) = environment(planting.trainium(tmp_path, **variables), WORKING)
    assert found.status == OK


def test_two_troubles_are_two_findings(tmp_path: Path) -> None:
    variables = {"NEURON_RT_INSPECT_ENABLE": "1", "NEURON_LAUNCH_BLOCKING": "1"}
    found = environment(planting.trainium(tmp_path, **variables), WORKING)
    assert [one.status for one in found] == [PROBLEM, WARNING]


def test_a_laptop_is_not_asked(tmp_path: Path) -> None:
    machine = planting.laptop(tmp_path, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert environment(machine, LAPTOP)[0].status == NOT_APPLICABLE

"""Python, packages, torch_neuronx and programs, judged from what was planted."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from src.diagnose import software
from src.diagnose.finding import NOT_APPLICABLE, OK, PROBLEM, WARNING, Stack

from . import planting
from .planting import LAPTOP, SIGNS, WORKING


def test_good_software_has_only_good_findings(tmp_path: Path) -> None:
    machine = planting.trainium(tmp_path)
    checks = (
        software.python,
        software.packages,
        software.torch,
        software.torch_neuronx,
        software.torch_match,
        software.programs,
    )
    found = [one for check in checks for one in check(machine, WORKING)]
    assert {one.status for one in found} == {OK}, found
    assert "2.13.3.0.1" in found[3].found


def test_an_old_python_is_a_problem_everywhere_and_3_11_a_warning_on_trainium(
    tmp_path: Path,
) -> None:
    machine = planting.trainium(tmp_path)
    assert software.python(replace(machine, python=(3, 9)), LAPTOP)[0].status == PROBLEM
    assert software.python(replace(machine, python=(3, 11)), LAPTOP)[0].status == OK
    assert software.python(replace(machine, python=(3, 11)), WORKING)[0].status == WARNING


def test_a_missing_package_and_an_old_one_are_named(tmp_path: Path) -> None:
    machine = planting.trainium(tmp_path)
    (absent,) = software.packages(planting.with_versions(machine, mlflow=None), LAPTOP)
    assert (absent.status, absent.found) == (PROBLEM, "not installed: mlflow")
    (old,) = software.packages(planting.with_versions(machine, mlflow="2.9.0"), LAPTOP)
    assert old.status == PROBLEM
    assert "mlflow 2.9.0 (mlflow>=3.17)" in old.found
    (other,) = software.packages(planting.with_versions(machine, mlflow="3.18.0"), LAPTOP)
    assert other.status == OK
    assert "mlflow 3.18.0 (pinned: 3.17.2)" in other.found


@pytest.mark.parametrize(
    ("versions", "status"),
    [
        ({"torch": "2.13.1+cpu", "torch_neuronx": "2.13.3.0"}, OK),
        ({"torch": "2.14.0", "torch_neuronx": "2.14.3.0"}, OK),
        ({"torch": "2.14.0", "torch_neuronx": "2.13.3.0"}, WARNING),
        ({"torch": "2.13.0", "torch_neuronx": None}, NOT_APPLICABLE),
    ],
)
def test_torch_and_torch_neuronx_go_together_by_two_numbers(
    versions: dict[str, str | None], status: str, tmp_path: Path
) -> None:
    machine = planting.with_versions(planting.trainium(tmp_path), **versions)
    (found,) = software.torch_match(machine, WORKING)
    assert found.status == status
    if status == WARNING:
        assert '"torch-neuronx==2.14.*"' in str(found.cure)


def test_a_torch_that_does_not_import_is_a_problem(tmp_path: Path) -> None:
    broken = Stack(torch_error="ImportError: libtorch.so: no such file")
    (found,) = software.torch(planting.laptop(tmp_path), broken)
    assert found.status == PROBLEM
    assert "libtorch.so" in found.found


def test_a_child_that_died_is_a_problem_with_its_reason(tmp_path: Path) -> None:
    died = Stack(signs=SIGNS, torch="2.13.0", ended="it was killed by SIGSEGV")
    (found,) = software.torch_neuronx(planting.trainium(tmp_path), died)
    assert found.status == PROBLEM
    assert "SIGSEGV" in found.found


def test_a_compiler_beside_this_python_is_put_on_the_path_by_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = planting.trainium(tmp_path)
    (tmp_path / "bin/neuronx-cc").unlink()
    absent = software.programs(machine, WORKING)[0]
    assert (absent.status, absent.cure is not None) == (PROBLEM, True)
    planting.write(tmp_path / "venv/bin/neuronx-cc")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv/bin/python"))
    beside = software.programs(machine, WORKING)[0]
    assert beside.status == PROBLEM
    assert beside.cure == f'export PATH="{tmp_path}/venv/bin:$PATH"'


def test_programs_of_the_tools_package_are_found_off_the_path(tmp_path: Path) -> None:
    machine = planting.trainium(tmp_path)
    for name in ("neuron-explorer", "neuron-ls"):
        (tmp_path / "bin" / name).unlink()
    _, explorer, lister = software.programs(machine, WORKING)
    assert (explorer.status, lister.status) == (WARNING, WARNING)
    assert explorer.cure == "sudo apt-get install aws-neuronx-tools"
    planting.write(machine.path("/opt/aws/neuron/bin/neuron-explorer"))
    assert software.programs(machine, WORKING)[1].found == "/opt/aws/neuron/bin/neuron-explorer"


def test_a_laptop_needs_no_neuron_program(tmp_path: Path) -> None:
    found = software.programs(planting.laptop(tmp_path), LAPTOP)
    assert [one.status for one in found] == [NOT_APPLICABLE] * 3

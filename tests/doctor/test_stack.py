"""The child that is asked about torch: real processes, with a torch_neuronx planted on its path."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from src.diagnose import software, stack
from src.diagnose.finding import OK, PROBLEM, Machine

from . import planting

CHECKS = (software.torch, software.torch_neuronx)


def _with(machine: Machine, site: Path) -> Machine:
    return replace(machine, environ={**machine.environ, "PYTHONPATH": str(site)})


def test_a_laptop_has_torch_and_no_sign(tmp_path: Path) -> None:
    answer = stack.ask(planting.laptop(tmp_path))
    assert answer.signs == ()
    assert not answer.expected
    assert answer.torch is not None
    assert "not installed" in str(answer.missing)
    assert answer.ended is None


def test_a_working_library_is_available_with_its_cores(tmp_path: Path) -> None:
    machine = _with(planting.trainium(tmp_path), planting.library(tmp_path))
    answer = stack.ask(machine)
    assert answer.missing is None, answer
    assert (answer.imports, answer.cores, answer.ended) == (True, 4, None)
    assert "device file /dev/neuron0" in answer.signs
    assert "instance type trn2.3xlarge" in answer.signs
    assert software.torch_neuronx(machine, answer)[0].status == OK


@pytest.mark.parametrize(
    ("init", "profiling", "words", "cure"),
    [
        (None, "class NeuronProfiler: ...\n", "NeuronConfig", "pip uninstall -y torch-neuronx"),
        ("", None, "torch_neuronx.profiling", "pip uninstall -y torch-neuronx"),
        ("", planting.PROFILING, "torch.neuron", "pip uninstall -y torch-neuronx"),
        ("raise ImportError('libnrt.so.1: cannot open shared object file')", None, "libnrt", ""),
        (planting.LIBRARY.format(available=False), planting.PROFILING, "is_available", ""),
        ("import os\nos.abort()", None, "SIGABRT", "faulthandler"),
    ],
    ids=["old names", "placeholder", "xla product", "broken", "unavailable", "abort"],
)
def test_a_library_that_does_not_work_is_a_problem_that_says_why(
    init: str | None, profiling: str | None, words: str, cure: str, tmp_path: Path
) -> None:
    planting.quick_torch(tmp_path)
    site = planting.library(tmp_path, init, profiling)
    machine = _with(planting.trainium(tmp_path), site)
    answer = stack.ask(machine)
    assert "device file /dev/neuron0" in answer.signs  # known even when the import kills the child
    (found,) = software.torch_neuronx(machine, answer)
    assert found.status == PROBLEM
    assert words in found.found
    assert found.cure
    assert cure in found.cure


def test_a_library_that_hangs_is_given_up(tmp_path: Path) -> None:
    planting.quick_torch(tmp_path)
    site = planting.library(tmp_path, "import time\ntime.sleep(600)")
    machine = _with(planting.trainium(tmp_path), site)
    answer = stack.ask(machine, timeout_s=4)
    assert answer.ended == "it gave no answer within 4 s"
    assert PROBLEM in {check(machine, answer)[0].status for check in CHECKS}


def test_a_backend_that_breaks_the_import_of_torch_is_named(tmp_path: Path) -> None:
    said = "Failed to load the backend extension: torch_neuronx"
    init = f"raise RuntimeError({said!r}) from ImportError('libnrt.so.1: undefined symbol: nrt')"
    site = planting.quick_torch(tmp_path, init)
    planting.library(tmp_path)
    machine = _with(planting.trainium(tmp_path), site)
    (found,) = software.torch(machine, stack.ask(machine))
    assert found.status == PROBLEM
    assert "libnrt.so.1" in found.found
    assert found.cure

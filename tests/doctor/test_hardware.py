"""Driver, device files, cores and their holders, on planted machines."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from src.diagnose import hardware
from src.diagnose.finding import NOT_APPLICABLE, OK, PROBLEM, WARNING, Stack

from . import planting
from .planting import LAPTOP, WORKING


def test_a_working_instance_has_only_good_findings(tmp_path: Path) -> None:
    machine = planting.trainium(tmp_path, chips=2)
    checks = (
        hardware.signs,
        hardware.instance_type,
        hardware.driver,
        hardware.device_files,
        hardware.cores,
        hardware.held_cores,
    )
    found = {one.name: one for check in checks for one in check(machine, WORKING)}
    assert {one.status for one in found.values()} == {OK}, found
    assert found["driver"].found == "module neuron 2.31.1.0 is loaded"
    assert "/dev/neuron0 to neuron1 (2 chips)" in found["device files"].found
    assert "16 physical cores, torch.neuron sees 4 (cores=0 to 3)" in found["NeuronCores"].found


def test_a_laptop_needs_none_of_it(tmp_path: Path) -> None:
    machine = planting.laptop(tmp_path)
    for check in (hardware.signs, hardware.driver, hardware.device_files, hardware.held_cores):
        assert [one.status for one in check(machine, LAPTOP)] == [NOT_APPLICABLE]


def test_variables_alone_are_a_problem_that_names_what_to_unset(tmp_path: Path) -> None:
    signs = ("environment variable NEURON_CC_FLAGS", "environment variable NEURON_RT_NUM_CORES")
    (found,) = hardware.signs(planting.laptop(tmp_path), Stack(signs=signs, torch="2.13.0"))
    assert found.status == PROBLEM
    assert found.cure is not None
    assert found.cure.startswith("unset NEURON_CC_FLAGS NEURON_RT_NUM_CORES")


def test_an_older_chip_is_a_warning(tmp_path: Path) -> None:
    machine = planting.trainium(tmp_path)
    planting.write(machine.path(hardware.PRODUCT_NAME), "trn1.32xlarge\n")
    (found,) = hardware.instance_type(machine, WORKING)
    assert (found.status, "trn1.32xlarge" in found.found) == (WARNING, True)


def test_a_driver_that_is_not_loaded_is_one_problem_and_not_two(tmp_path: Path) -> None:
    machine = planting.trainium(tmp_path)
    machine.path("/dev/neuron0").unlink()
    shutil.rmtree(machine.path("/sys/module"))
    planting.write(machine.path("/proc/modules"), "ext4 100 0 - Live 0x0\n")
    (driver,) = hardware.driver(machine, WORKING)
    assert driver.status == PROBLEM
    assert "sudo modprobe neuron" in str(driver.cure)
    (files,) = hardware.device_files(machine, WORKING)
    assert files.status == NOT_APPLICABLE


def test_a_loaded_driver_without_device_files_is_a_container(tmp_path: Path) -> None:
    machine = planting.trainium(tmp_path)
    machine.path("/dev/neuron0").unlink()
    (files,) = hardware.device_files(machine, WORKING)
    assert files.status == PROBLEM
    assert "--device=/dev/neuron0" in str(files.cure)


def test_a_device_file_that_may_not_be_opened_is_named(tmp_path: Path) -> None:
    machine = planting.trainium(tmp_path, chips=2)
    closed = machine.path("/dev/neuron1")
    (found,) = hardware.device_files(replace(machine, may_use=lambda p: p != closed), WORKING)
    assert found.status == PROBLEM
    assert "you may not read and write neuron1" in found.found
    assert str(found.cure).startswith("sudo chmod a+rw /dev/neuron*")


def test_cores_are_counted_without_the_drivers_word(tmp_path: Path) -> None:
    machine = planting.trainium(tmp_path)
    shutil.rmtree(machine.path(hardware.SYSFS))
    (by_type,) = hardware.cores(machine, WORKING)
    assert "1 chip, 8 physical cores" in by_type.found
    planting.write(machine.path(hardware.PRODUCT_NAME), "something else\n")
    (unknown,) = hardware.cores(machine, WORKING)
    assert "unknown number" in unknown.found


def test_no_visible_core_is_a_problem(tmp_path: Path) -> None:
    (found,) = hardware.cores(planting.trainium(tmp_path), replace(WORKING, cores=0))
    assert found.status == PROBLEM


def test_a_process_that_holds_every_core_is_a_problem(tmp_path: Path) -> None:
    machine = planting.trainium(tmp_path)
    planting.process(machine, 4711, "python train.py", "/dev/neuron0", HOME="/root")
    planting.process(machine, 4712, "python idle.py", "/dev/null")
    (found,) = hardware.held_cores(machine, WORKING)
    assert found.status == PROBLEM
    assert found.found == "pid 4711 (python train.py) has neuron0, all cores"
    assert str(found.cure).startswith("kill 4711")


def test_a_process_that_holds_some_cores_is_a_warning(tmp_path: Path) -> None:
    machine = planting.trainium(tmp_path, chips=2)
    planting.process(machine, 4711, "python a.py", "/dev/neuron0", NEURON_RT_VISIBLE_CORES="0-1")
    planting.process(machine, 4712, "python b.py", "/dev/neuron1", NEURON_RT_NUM_CORES="2")
    (found,) = hardware.held_cores(machine, WORKING)
    assert found.status == WARNING
    assert "cores 0-1" in found.found
    assert "cores 2 of its choice" in found.found


def test_another_chip_that_is_wholly_held_leaves_room(tmp_path: Path) -> None:
    machine = planting.trainium(tmp_path, chips=2)
    planting.process(machine, 4711, "python a.py", "/dev/neuron0")
    (found,) = hardware.held_cores(machine, WORKING)
    assert found.status == WARNING

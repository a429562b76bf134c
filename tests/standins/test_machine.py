"""Signs of Neuron and obstacles on a machine, planted under a root of the test's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from src.errors import UserError
from src.measure.devices import obstacles
from src.measure.devices.signs import instance_type, signs_of_neuron
from src.schema import Config, ProfilerConfig

PRODUCT = "sys/devices/virtual/dmi/id/product_name"


def plant(root: Path, *files: str, **contents: str) -> Path:
    for name in (*files, *contents):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(contents.get(name, ""))
    return root


def test_a_machine_without_any_sign_has_none(tmp_path: Path) -> None:
    plant(tmp_path, "dev/null", "usr/lib/libc.so.6", **{PRODUCT: "m5.large\n"})
    assert signs_of_neuron(tmp_path, environ={"HOME": "/root"}) == []


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("dev/neuron0", "device file /dev/neuron0"),
        ("opt/aws/neuron/lib/libnrt.so.1", "runtime library /opt/aws/neuron/lib/libnrt.so.1"),
        ("usr/lib/x86_64-linux-gnu/libnrt.so", "runtime library /usr/lib/x86_64-linux-gnu/libnrt"),
        ("usr/local/lib/libnrt.so.2.33", "runtime library /usr/local/lib/libnrt.so.2.33"),
    ],
)
def test_each_planted_file_is_a_sign(tmp_path: Path, file: str, said: str) -> None:
    (sign,) = signs_of_neuron(plant(tmp_path, file), environ={})
    assert sign.startswith(said)


@pytest.mark.parametrize("name", ["trn1.32xlarge", "trn2.3xlarge", "inf2.xlarge"])
def test_the_product_name_of_a_neuron_instance_is_a_sign(tmp_path: Path, name: str) -> None:
    plant(tmp_path, **{PRODUCT: f"{name}\n"})
    assert signs_of_neuron(tmp_path, environ={}) == [f"instance type {name}"]
    assert instance_type(tmp_path) == name


def test_variables_are_signs_but_not_those_that_this_tool_set(tmp_path: Path) -> None:
    environ = {"NEURON_RT_VISIBLE_CORES": "0", "TORCH_NEURONX_LOG_LEVEL": "3", "NEURONAL": "1"}
    found = signs_of_neuron(tmp_path, environ, ours=frozenset({"NEURON_RT_VISIBLE_CORES"}))
    assert found == ["environment variable TORCH_NEURONX_LOG_LEVEL"]


def test_device_files_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    plant(tmp_path, "dev/neuron10", "dev/neuron2", "dev/neuron0", "dev/neuron")
    found = signs_of_neuron(tmp_path, environ={})
    assert found == [f"device file /dev/neuron{n}" for n in (0, 2, 10)]


def hold(root: Path, pid: int, command: str, *files: str) -> None:
    folder = root / "proc" / str(pid) / "fd"
    folder.mkdir(parents=True)
    for number, file in enumerate(files, start=3):
        os.symlink(file, folder / str(number))
    (folder.parent / "cmdline").write_bytes(command.replace(" ", "\0").encode() + b"\0")


def test_who_holds_a_core_is_named_with_pid_and_command(tmp_path: Path) -> None:
    hold(tmp_path, 41, "python serve.py", "/dev/neuron0", "/dev/null")
    hold(tmp_path, 42, "bash", "/dev/null")
    plant(tmp_path, "proc/cpuinfo")
    (one,) = obstacles.holders(tmp_path)
    assert (one.pid, one.command, one.files) == (41, "python serve.py", ("/dev/neuron0",))
    error = obstacles.cannot_open("0", RuntimeError("nrt_init failed"), tmp_path)
    assert "cores=0" in str(error)
    assert "pid 41 (python serve.py) has /dev/neuron0" in str(error)
    assert "nrt_init failed" in str(error)


def test_this_process_is_not_its_own_obstacle(tmp_path: Path) -> None:
    hold(tmp_path, os.getpid(), "python", "/dev/neuron0")
    assert obstacles.holders(tmp_path) == []


def test_a_holder_that_cannot_be_seen_is_looked_for_with_neuron_ls(tmp_path: Path) -> None:
    said = str(obstacles.cannot_open("0-1", RuntimeError("x"), tmp_path))
    assert "cores=0-1" in said
    assert "neuron-ls" in said


def test_no_device_file_means_no_driver(tmp_path: Path) -> None:
    said = obstacles.unavailable(tmp_path, {})
    assert "no /dev/neuron*" in said
    assert "sudo modprobe neuron" in said


def test_a_device_file_without_permission_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path, "dev/neuron0")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may open everything
    assert "may not open /dev/neuron0" in obstacles.unavailable(tmp_path, {})


def test_an_empty_list_of_visible_cores_is_said_so(tmp_path: Path) -> None:
    plant(tmp_path, "dev/neuron0")
    said = obstacles.unavailable(tmp_path, {"NEURON_RT_VISIBLE_CORES": ""})
    assert "unset NEURON_RT_VISIBLE_CORES" in said


@pytest.mark.parametrize("value", ["", "0", "false", "False", " 0 "])
def test_the_runtimes_own_capture_may_be_off(value: str) -> None:
    obstacles.refuse_conflicts({"NEURON_RT_INSPECT_ENABLE": value})


@pytest.mark.parametrize("value", ["1", "true", "yes"])
def test_the_runtimes_own_capture_is_refused_with_the_cure(value: str) -> None:
    with pytest.raises(UserError, match="unset NEURON_RT_INSPECT_ENABLE"):
        obstacles.refuse_conflicts({"NEURON_RT_INSPECT_ENABLE": value})


@pytest.mark.parametrize(
    ("environ", "lnc"),
    [
        ({}, None),
        ({"NEURON_RT_VIRTUAL_CORE_SIZE": "1"}, 1),
        ({"NEURON_LOGICAL_NC_CONFIG": "2"}, 2),
        ({"NEURON_RT_VIRTUAL_CORE_SIZE": "2", "NEURON_LOGICAL_NC_CONFIG": "2"}, 2),
        ({"NEURON_RT_VIRTUAL_CORE_SIZE": "1", "NEURON_LOGICAL_NC_CONFIG": "2"}, None),
        ({"NEURON_LOGICAL_NC_CONFIG": "two"}, None),
    ],
)
def test_lnc_is_known_only_where_the_environment_agrees(
    environ: dict[str, str], lnc: int | None
) -> None:
    assert obstacles.logical_core_size(environ) == lnc


@pytest.mark.parametrize(
    "words",
    [
        "Neuron: out of memory", "nrt_tensor_allocate failed: NRT_RESOURCE",
        "Failed to allocate 5368709120 bytes", "insufficient device memory", "OOM",
    ],
)  # fmt: skip
def test_words_for_memory_that_ran_out_are_known(words: str) -> None:
    assert obstacles.is_out_of_memory(RuntimeError(words))


@pytest.mark.parametrize("words", ["shapes do not match", "room for one", "zoom failed"])
def test_other_words_are_not_taken_for_it(words: str) -> None:
    assert not obstacles.is_out_of_memory(RuntimeError(words))


def test_out_of_memory_is_cured_by_the_mode_that_costs_it() -> None:
    error = RuntimeError("out of memory")
    device = Config(profiler=ProfilerConfig("combined", ["DEVICE", "RUNTIME"]))
    assert "profiler=runtime" in obstacles.profiler_failed(error, device)
    runtime = Config(profiler=ProfilerConfig("runtime", ["RUNTIME"]))
    assert "smaller input" in obstacles.profiler_failed(error, runtime)
    assert "profiler=runtime" not in obstacles.profiler_failed(error, runtime)

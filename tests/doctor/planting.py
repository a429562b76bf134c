"""Plants machines for the doctor: a Trainium instance that works, and what can be wrong with it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from src.diagnose.finding import Machine, Stack
from src.schema import TrackingConfig

SIGNS = ("device file /dev/neuron0", "instance type trn2.3xlarge")
WORKING = Stack(signs=SIGNS, torch="2.13.0+cpu", imports=True, missing=None, cores=4)
LAPTOP = Stack(torch="2.13.0+cpu", missing="torch_neuronx is not installed.")
VERSIONS = {
    "torch": "2.13.0",
    "torch-neuronx": "2.13.3.0.1",
    "mlflow": "3.17.2",
    "hydra-core": "1.3.8",
    "omegaconf": "2.3.1",
    "filelock": "4.3.1",
    "plotly": "7.1.0",
    "rich": "15.0.0",
}


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def trainium(folder: Path, chips: int = 1, **variables: str) -> Machine:
    """A trn2 instance on which everything is as it should be."""
    root = folder / "machine"
    for number in range(chips):
        write(root / f"dev/neuron{number}")
    write(root / "sys/devices/virtual/dmi/id/product_name", "trn2.3xlarge\n")
    write(root / "sys/module/neuron/version", "2.31.1.0\n")
    write(root / "sys/devices/virtual/neuron_device/neuron0/core_count", "8\n")
    write(root / "proc/modules", "neuron 400000 0 - Live 0x0\n")
    write(root / "tmp/neff_cache/a/graph.neff", "x" * 2000)
    for name in ("neuronx-cc", "neuron-explorer", "neuron-ls"):
        write(folder / "bin" / name, "#!/bin/sh\n").chmod(0o755)
    return Machine(
        root=root,
        environ={"PATH": str(folder / "bin"), **variables},
        tracking=TrackingConfig(name="local", root=str(folder / "store")),
        cwd=folder,
        python=(3, 12),
        version_of=VERSIONS.get,
    )


def laptop(folder: Path, **variables: str) -> Machine:
    """A machine without any sign of Neuron."""
    root = folder / "machine"
    write(root / "sys/devices/virtual/dmi/id/product_name", "20XW\n")
    here = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("NEURON_", "TORCH_NEURONX_"))
    }
    tracking = TrackingConfig(name="local", root=str(folder / "store"))
    return Machine(root=root, environ={**here, **variables}, tracking=tracking, cwd=folder)


def with_versions(machine: Machine, **changed: str | None) -> Machine:
    versions = {**VERSIONS, **{key.replace("_", "-"): value for key, value in changed.items()}}
    return replace(machine, version_of=versions.get)


def process(machine: Machine, pid: int, command: str, opens: str, **variables: str) -> None:
    """A process of the planted machine that has one file open."""
    folder = machine.path(f"/proc/{pid}")
    (folder / "fd").mkdir(parents=True)
    (folder / "fd/0").symlink_to("/dev/null")
    (folder / "fd/7").symlink_to(opens)
    write(folder / "cmdline", command.replace(" ", "\0") + "\0")
    write(folder / "environ", "\0".join(f"{key}={value}" for key, value in variables.items()))


LIBRARY = """
import torch
class _Module:
    @staticmethod
    def is_available(): return {available}
    @staticmethod
    def device_count(): return 4
torch.neuron = _Module
"""
PROFILING = "class NeuronConfig: ...\nclass NeuronProfiler: ...\nclass ProfileMode: ...\n"


def quick_torch(folder: Path, init: str = "__version__ = '2.13.0'\n") -> Path:
    """A package named torch that imports at once; returns the folder for PYTHONPATH."""
    write(folder / "site/torch/__init__.py", init)
    return folder / "site"


def library(folder: Path, init: str | None = None, profiling: str | None = PROFILING) -> Path:
    """A package named torch_neuronx on disk; returns the folder for PYTHONPATH."""
    package = folder / "site/torch_neuronx"
    write(package / "__init__.py", LIBRARY.format(available=True) if init is None else init)
    if profiling is not None:
        write(package / "profiling.py", profiling)
    return folder / "site"

"""AWS Trainium as a Device: the only file that imports torch_neuronx.

Written against the published interface and found by its names, never by a version. Imports happen
inside functions, so that a machine without Neuron can read this file.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
from pathlib import Path

import torch

from ...errors import UserError
from ...schema import Config
from . import Device

PROFILER_NAMES = ("NeuronConfig", "NeuronProfiler", "ProfileMode")
INSTALL = "Install it as https://awsdocs-neuron.readthedocs-hosted.com describes (see README.md)."
DEFAULT_NEFF_CACHE = "/tmp/neff_cache"  # neuron_api: default of TORCH_NEURONX_NEFF_CACHE_DIR
PACKAGES = ("torch", "torch-neuronx", "neuronx-cc", "nki", "libneuronxla")


def what_is_missing() -> str | None:
    """Say in one sentence why Trainium cannot be used here; None when it can."""
    try:
        importlib.import_module("torch_neuronx")
    except ModuleNotFoundError as error:
        if error.name == "torch_neuronx":
            return f"torch_neuronx is not installed. {INSTALL}"
        return f"torch_neuronx does not import ({error})."
    except Exception as error:  # a broken native library raises anything
        return f"torch_neuronx does not import ({type(error).__name__}: {error})."
    try:
        profiling = importlib.import_module("torch_neuronx.profiling")
    except ImportError as error:
        return _old_product(f"torch_neuronx.profiling does not import ({error})")
    missing = [name for name in PROFILER_NAMES if not hasattr(profiling, name)]
    if missing:
        return _old_product(f"torch_neuronx.profiling has no {', '.join(missing)}")
    if not hasattr(torch, "neuron"):
        return _old_product("torch has no torch.neuron")
    if not torch.neuron.is_available():
        return (
            "torch.neuron.is_available() is false: no NeuronCore can be opened. Is the driver "
            "loaded (ls /dev/neuron*), and is NEURON_RT_VISIBLE_CORES unset or not empty?"
        )
    return None


def _old_product(what: str) -> str:
    return (
        f"{what}: this looks like the older XLA product of the same name (torch-neuronx up to 2.9) "
        "or the placeholder on PyPI. torch-neuronx 2.13 or newer is needed. " + INSTALL
    )


def open_device(config: Config) -> Device:
    """Start the runtime on the visible cores; raises UserError when they cannot be had."""
    from torch_neuronx import profiling

    torch_device = torch.device("neuron", 0)
    try:
        torch.empty(1, device=torch_device)
        torch.neuron.synchronize()  # type: ignore[attr-defined]
    except RuntimeError as error:
        raise UserError(
            f"cores={config.cores}: the Neuron runtime could not open these cores ({error}). "
            "Another process may hold them: neuron-ls shows which. Stop it, or take other cores."
        ) from error
    return Device(
        name="neuron",
        torch_device=torch_device,
        synchronize=torch.neuron.synchronize,  # type: ignore[attr-defined]
        profiling=profiling,
        device_time_source="key_averages",
        count_executions=lambda session: None,  # the .pb schemas are not published
        description=str(torch.neuron.get_device_name()),  # type: ignore[attr-defined]
        versions=_versions(),
        neff_cache_dir=_neff_cache(config),
    )


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package.replace("-", "_")] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _neff_cache(config: Config) -> str:
    chosen = config.profiler.neff_cache_dir or os.environ.get("TORCH_NEURONX_NEFF_CACHE_DIR")
    return str(Path(chosen or DEFAULT_NEFF_CACHE).expanduser())

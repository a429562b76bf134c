"""AWS Trainium as a Device: the only file that imports torch_neuronx.

Written against the published interface and found by its names, never by a version. Imports happen
inside functions, so that a machine without Neuron can read this file.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
from pathlib import Path
from typing import Any

import torch

from ... import rules
from ...analyze import executions
from ...schema import Config
from .. import neuron_stack as stack
from . import Device, Executions, Tracking, obstacles, signs

PROFILER_NAMES = ("NeuronConfig", "NeuronProfiler", "ProfileMode")
NEFF_CACHE = "TORCH_NEURONX_NEFF_CACHE_DIR"
DEFAULT_NEFF_CACHE = "/tmp/neff_cache"  # neuron_api 4.3: its default
CACHE_OFF = ("TORCH_NEURONX_NEFF_DISABLE_CACHE", "TORCH_NEURONX_DISABLE_NEFF_CACHE")
PACKAGES = ("torch", "torch-neuronx", "neuronx-cc", "nki", "libneuronxla")
SYSTEM_PROFILE = "system_profile.json"  # neuron_api 6.3: what neuron-explorer writes


def what_is_missing(root: Path = Path("/")) -> str | None:
    """Say in one sentence why Trainium cannot be used here; None when it can."""
    try:
        importlib.import_module("torch_neuronx")
    except ModuleNotFoundError as error:
        return stack.not_installed() if error.name == "torch_neuronx" else stack.broken(error)
    except Exception as error:  # a broken native library raises anything
        return stack.broken(error)
    try:
        profiling = importlib.import_module("torch_neuronx.profiling")
    except ModuleNotFoundError as error:
        return stack.wrong_product(f"torch_neuronx.profiling does not import ({error})")
    except Exception as error:
        return stack.broken(error)
    missing = [name for name in PROFILER_NAMES if not hasattr(profiling, name)]
    if missing:
        return stack.wrong_product(f"torch_neuronx.profiling has no {', '.join(missing)}")
    if not hasattr(torch, "neuron"):
        return stack.wrong_product("torch has no torch.neuron")
    if not _is_available():
        return obstacles.unavailable(root, os.environ)
    return None


def _is_available() -> bool:
    try:
        return bool(torch.neuron.is_available())  # type: ignore[attr-defined]
    except Exception as error:  # what the runtime says when it cannot start is not published
        print(f"torch.neuron.is_available(): {error}", flush=True)  # noqa: T201  # child.log
        return False


def open_device(config: Config, root: Path = Path("/")) -> Device:
    """Start the runtime on the visible cores; raises UserError when they cannot be had."""
    import torch_neuronx
    from torch_neuronx import profiling

    neuron: Any = torch.neuron  # type: ignore[attr-defined]
    asked, visible = len(rules.parse_cores(config.cores)), _visible(neuron)
    if visible is not None and visible < asked:
        raise obstacles.too_few(config.cores, asked, visible)
    torch_device = torch.device("neuron", 0)
    try:
        torch.empty(1, device=torch_device)
        neuron.synchronize()
    except RuntimeError as error:
        raise obstacles.cannot_open(config.cores, error, root) from error
    instance = signs.instance_type(root)
    return Device(
        name="neuron",
        torch_device=torch_device,
        synchronize=neuron.synchronize,
        profiling=profiling,
        device_time_source="key_averages",
        executions=_executions,
        description=_description(neuron),
        chip=instance.partition(".")[0] if instance else None,
        lnc=obstacles.logical_core_size(os.environ),
        versions=_versions(),
        neff_cache_dir=_neff_cache(config),
        tracking=_tracking(torch_neuronx),
    )


def _visible(neuron: Any) -> int | None:
    try:
        return int(neuron.device_count())
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return None


def _description(neuron: Any) -> str:
    try:
        return str(neuron.get_device_name())
    except (AttributeError, RuntimeError):
        return "neuron:0"


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package.replace("-", "_")] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _neff_cache(config: Config) -> str | None:
    if any(os.environ.get(name, "").strip().lower() not in obstacles.OFF for name in CACHE_OFF):
        return None
    chosen = config.profiler.neff_cache_dir or os.environ.get(NEFF_CACHE)
    return str(Path(chosen or DEFAULT_NEFF_CACHE).expanduser())


def _tracking(library: Any) -> Tracking | None:
    clear = getattr(library, "clear_op_tracking", None)
    fallback = getattr(library, "get_fallback_ops", None)
    if clear is None or fallback is None:
        return None
    return Tracking(clear, fallback, getattr(library, "get_executed_ops", None))


def _executions(session: Path) -> Executions | None:
    """What neuron-explorer's JSON beside the trace says; ntrace.pb's own schema is unpublished."""
    try:
        data = json.loads((session / SYSTEM_PROFILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    rows = data.get("trace_event") or data.get("trace_events") if isinstance(data, dict) else None
    merged = executions.merge(rows) if rows else []
    return Executions(len(merged), sum(one.length_us for one in merged)) if merged else None

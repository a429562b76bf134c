"""The simulated NeuronCores as a Device: the only file that imports the simulator."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from pathlib import Path

import torch

from ... import rules
from ...errors import UserError
from ...schema import Config
from .. import simulator
from . import Device, Executions

NEFF_CACHE = "TORCH_NEURONX_NEFF_CACHE_DIR"


def open_device(config: Config) -> Device:
    """Register the simulated device with the configured cost model; once per process."""
    cores = rules.parse_cores(config.cores)
    has = config.device.cores
    if cores[-1] >= has:
        raise UserError(
            f"cores={config.cores}: the simulated device has {has} NeuronCores (0 to {has - 1}). "
            f"Type cores=0, or device.cores={cores[-1] + 1} to simulate more."
        )
    cost = config.device.cost
    if cost is None:
        raise UserError("device.cost: no cost model. Type device=simulated to get the default one.")
    cache = _neff_cache(config)
    simulator.install(
        simulator.CostModel(
            dispatch_us=cost.dispatch_us,
            hbm_bytes_per_s=cost.hbm_bytes_per_s,
            tensor_flops_per_s=cost.tensor_flops_per_s,
            vector_flops_per_s=cost.vector_flops_per_s,
        ),
        cores=cores,
        total_memory_bytes=config.device.memory_bytes,
    )
    from ..simulator import profiling

    return Device(
        name="simulated",
        torch_device=torch.device("neuron", 0),
        synchronize=torch.neuron.synchronize,  # type: ignore[attr-defined]  # made by install
        profiling=profiling,
        device_time_source="simulated",
        executions=_executions,
        description="simulated NeuronCore, device time from a cost model",
        versions={"torch": torch.__version__},
        neff_cache_dir=cache,
    )


def _neff_cache(config: Config) -> str:
    """The chosen NEFF cache, else an empty one of this process: each simulated run starts cold."""
    cache = config.profiler.neff_cache_dir or os.environ.get(NEFF_CACHE)
    if cache is None:
        cache = tempfile.mkdtemp(prefix="simulated-neff-cache-")
        atexit.register(shutil.rmtree, cache, ignore_errors=True)
    os.environ[NEFF_CACHE] = cache  # where the simulated compiler looks, as torch_neuronx does
    return cache


def _executions(session: Path) -> Executions | None:
    path = session / "ntrace.pb.simulated.json"
    if not path.exists():
        return None
    events = json.loads(path.read_text(encoding="utf-8"))["events"]
    runs = [event for event in events if event["name"] == "nc_exec_running"]
    return Executions(len(runs), sum(event["duration_ns"] for event in runs) / 1000)

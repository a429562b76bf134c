"""The simulated NeuronCores as a Device: the only file that imports the simulator."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from ... import rules
from ...errors import UserError
from ...schema import Config
from .. import simulator
from . import Device, Executions


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
    )


def _executions(session: Path) -> Executions | None:
    path = session / "ntrace.pb.simulated.json"
    if not path.exists():
        return None
    events = json.loads(path.read_text(encoding="utf-8"))["events"]
    runs = [event for event in events if event["name"] == "nc_exec_running"]
    return Executions(len(runs), sum(event["duration_ns"] for event in runs) / 1000)

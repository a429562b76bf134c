"""(workload, variant, device) -> Step, a zero-argument callable with its inputs on the device.

Called by job.py. Knows nothing of profiling: what it returns can be called any number of times.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from ..schema import Config

Step = Callable[[], Any]


@dataclass(frozen=True)
class Workload:
    """A workload's module with its inputs made, still on the CPU."""

    module: ModuleType
    inputs: tuple[torch.Tensor, ...]
    dtype: torch.dtype


def load(config: Config) -> Workload:
    """Import the workload and make its seeded inputs, the same for each variant."""
    module = importlib.import_module(f".workloads.{config.workload.name}", __package__)
    dtype = getattr(torch, config.input.dtype)
    inputs = module.make_inputs(config.input.shape, dtype, config.input.seed)
    return Workload(module, inputs, dtype)


def build(workload: Workload, config: Config, device: torch.device) -> Step:
    """Move the inputs to the device and bind them to the chosen implementation."""
    function = getattr(workload.module, config.variant.implementation)
    compile_config = config.variant.compile
    if compile_config:
        function = torch.compile(
            function,
            backend=compile_config.backend,
            fullgraph=compile_config.fullgraph,
            dynamic=compile_config.dynamic,
            mode=compile_config.mode,
            options=compile_config.options or None,
        )
    inputs = tuple(value.to(device) for value in workload.inputs)
    return lambda: function(*inputs)

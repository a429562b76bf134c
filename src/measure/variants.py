"""(workload, variant, device) -> Step, a zero-argument callable with its inputs on the device.

Called by job.py. Knows nothing of profiling: what it returns can be called any number of times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..errors import UserError
from ..schema import CompileConfig, Config
from ..workload_rules import CUSTOM
from . import custom
from .annotate import mark_modules
from .devices import Device
from .workload import Workload, load_builtin

Step = Callable[[], Any]


def load(config: Config, device: Device) -> Workload:
    """Make the workload and its inputs on the CPU; the torch device is told to a custom one."""
    if config.workload.name == CUSTOM:
        return custom.load(config, device.torch_device)
    return load_builtin(config, is_simulated=device.name == "simulated")


def build(workload: Workload, config: Config, device: torch.device) -> Step:
    """Move the inputs to the device and bind them to the chosen implementation, compiled or not."""
    function = workload.implementations[config.variant.implementation]
    if isinstance(function, torch.nn.Module):
        function = function.to(device)
    if config.workload.annotate:
        if not isinstance(function, torch.nn.Module):
            raise UserError(
                f"workload.annotate={config.workload.annotate}: what '{workload.name}' returned is "
                "no nn.Module and has no modules to mark. Leave workload.annotate out."
            )
        mark_modules(function)
    if config.variant.compile:
        function = _compiled(function, config.variant.compile, config.variant.name)
    args, kwargs = pytree.tree_map_only(
        torch.Tensor, lambda value: value.to(device), (workload.args, dict(workload.kwargs))
    )
    reset = workload.reset
    if reset is None:
        return lambda: function(*args, **kwargs)

    def step() -> Any:
        reset()
        return function(*args, **kwargs)

    return step


def _compiled(function: Any, wanted: CompileConfig, variant: str) -> Any:
    settings = asdict(wanted)
    settings["options"] = settings["options"] or None
    if settings.pop("scope") == "whole":
        return torch.compile(function, **settings)
    for layer in _layers(function, variant):
        layer.compile(**settings)  # in place: the model calls its layers by itself
    return function


def _layers(model: Any, variant: str) -> torch.nn.ModuleList:
    """The largest ModuleList of a model, by parameters: its stack of layers."""
    modules = model.modules() if isinstance(model, torch.nn.Module) else ()
    stacks = [one for one in modules if isinstance(one, torch.nn.ModuleList) and len(one)]
    if not stacks:
        raise UserError(
            f"variant={variant}: compiles the layers of a model one by one, and the target's model "
            "has no nn.ModuleList. Type variant=compiled to compile it as a whole."
        )
    return max(stacks, key=lambda stack: sum(p.numel() for p in stack.parameters()))

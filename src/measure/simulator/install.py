"""Put the simulated device in place, once per process. Called by whoever wants `device="neuron"`
without hardware.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from . import autocast, compiler, copies, device_module, fused, memory, operators, record, sessions
from .cost import CostModel

_DEFAULT_MEMORY_BYTES = (
    24 * 1024**3
)  # one LNC2 core's share of a trn2 chip's 96 GiB over 4 HBM stacks
_installed: tuple[CostModel, tuple[int, ...], int] | None = None
_libraries: list[
    torch.library.Library
] = []  # a library that is collected takes its kernels with it


def install(
    cost: CostModel, cores: Sequence[int] = (0,), total_memory_bytes: int = _DEFAULT_MEMORY_BYTES
) -> None:
    """Make `device="neuron"` a simulated device.

    `cores` are the logical NeuronCores behind `neuron:0`, `neuron:1`, ... A second call with the
    same arguments does nothing; with others, or where another PrivateUse1 backend is in place, it
    raises RuntimeError.
    """
    global _installed
    wanted = (cost, tuple(cores), total_memory_bytes)
    if _installed is not None:
        if _installed != wanted:
            raise RuntimeError(
                f"the simulated neuron device is installed already, with {_installed}; "
                f"it cannot become {wanted}"
            )
        return
    if not wanted[1] or len(set(wanted[1])) != len(wanted[1]) or min(wanted[1]) < 0:
        raise ValueError(
            f"cores={list(cores)}: give one or more different core numbers, e.g. (0,) or (0, 1)"
        )
    backend = torch._C._get_privateuse1_backend_name()
    if backend != "privateuseone":
        raise RuntimeError(
            f"PyTorch's PrivateUse1 device is taken by {backend!r}: the simulated neuron device "
            "needs a process without it"
        )
    memory.open_books(len(wanted[1]), total_memory_bytes)
    record.power_on(cost, wanted[1])
    module = device_module.as_module()
    _setup_privateuseone_for_python_backend(
        memory.DEVICE_TYPE, module, device_module.Hooks(), device_module.DeviceGuard()
    )
    sys.modules["torch.neuron"] = module
    _register_kernels()
    _construct_storages()
    compiler.register()
    sessions.hook()
    _installed = wanted


def _register_kernels() -> None:
    aten = torch.library.Library("aten", "IMPL")
    everything = torch.library.Library("_", "IMPL")
    _libraries.extend((aten, everything))
    own = {**copies.KERNELS, **fused.KERNELS}
    operators.register(aten, everything, frozenset(own) | copies.LEFT_TO_PYTORCH)
    for name, kernel in own.items():
        aten.impl(name, kernel, "PrivateUse1")
    for name, kernel in fused.COMPOSITES.items():
        aten.impl(name, kernel, "PrivateUse1")
        aten.impl(name, kernel, "AutogradPrivateUse1")
    autocast.register(aten, everything)


def _construct_storages() -> None:
    # `torch.UntypedStorage(n, device="neuron")`, which copy.deepcopy and torch.load call, would ask
    # for a C++ allocator that a Python device cannot have, and crash.
    original = torch.UntypedStorage.__new__

    def new(cls: type[torch.UntypedStorage], *args: Any, **kwargs: Any) -> torch.UntypedStorage:
        device = kwargs.get("device")
        if device is None or torch.device(device).type != memory.DEVICE_TYPE:
            return original(cls, *args, **kwargs)
        nbytes = args[0] if args else kwargs.get("size", 0)
        if not isinstance(nbytes, int):
            raise NotImplementedError(
                "simulated neuron device: a storage is made from a size, not from a sequence"
            )
        return memory.allocate(nbytes, device_module._index(torch.device(device)))

    torch.UntypedStorage.__new__ = new  # type: ignore[method-assign, assignment]  # see above

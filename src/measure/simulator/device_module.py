"""What `torch.neuron` offers: the published names that mean something on this device.

Streams and events are absent rather than pretended: there is one queue a core, and no clock that an
event could read.
"""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass
from typing import Any

import torch

from . import memory, record


@dataclass(frozen=True)
class DeviceProperties:
    """What `get_device_properties` answers."""

    name: str
    total_memory: int
    logical_core: int


def _index(device: torch.device | str | int | None) -> int:
    if device is None:
        return 0
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if device.type != memory.DEVICE_TYPE:
            raise ValueError(f"expected a neuron device, but got {device}")
        device = device.index or 0
    if not 0 <= device < device_count():
        raise RuntimeError(
            f"neuron:{device}: invalid device ordinal, there are {device_count()} simulated devices"
        )
    return device


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def init() -> None:
    """Nothing is left to do: `install` has done it."""


def device_count() -> int:
    """How many logical cores there are."""
    return len(record.device.cores)


def current_device() -> int:
    return 0


def set_device(device: torch.device | str | int) -> None:
    """Only `neuron:0` can be the current device.

    A device written in Python cannot tell PyTorch's C++ side which one is current, so that
    `x.to("neuron")` would go to `neuron:0` all the same. Name the device instead.
    """
    index = _index(device)
    if index != 0:
        raise NotImplementedError(
            f"simulated neuron device: neuron:{index} cannot be the current device; "
            f'name it where a tensor is made or moved, e.g. x.to("neuron:{index}")'
        )


class device:  # noqa: N801  # the published name
    """Context manager that makes a device the current one; see `set_device`.

    PyTorch's own code (torch.load, say) may enter it with any device, because it names the device
    inside as well.
    """

    def __init__(self, device: torch.device | str | int) -> None:
        self._device = device

    def __enter__(self) -> None:
        if not sys._getframe(1).f_globals.get("__name__", "").startswith("torch."):
            set_device(self._device)

    def __exit__(self, *_: object) -> None:
        pass


def get_device_name(device: torch.device | str | int | None = None) -> str:
    index = _index(device)
    return f"simulated neuron:{index} (logical NeuronCore {record.device.cores[index]})"


def get_device_properties(device: torch.device | str | int | None = None) -> DeviceProperties:
    index = _index(device)
    return DeviceProperties(
        get_device_name(index), memory.books.total_memory_bytes, record.device.cores[index]
    )


def synchronize(device: torch.device | str | int | None = None) -> None:
    """Wait for a device (the current one if none is named): its executions become visible to the
    profiler.
    """
    record.synchronize(_index(device))


def manual_seed(seed: int) -> None:
    """Seed the host's default generator, from which the device draws."""
    torch.default_generator.manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    manual_seed(seed)


def seed() -> int:
    return torch.default_generator.seed()


def seed_all() -> int:
    return seed()


def initial_seed() -> int:
    return torch.default_generator.initial_seed()


def get_rng_state(device: torch.device | str | int | None = None) -> torch.Tensor:
    _index(device)
    return torch.default_generator.get_state()


def set_rng_state(new_state: torch.Tensor, device: torch.device | str | int | None = None) -> None:
    _index(device)
    torch.default_generator.set_state(new_state)


def is_bf16_supported() -> bool:
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float32, torch.float16, torch.bfloat16]


def memory_allocated(device: torch.device | str | int | None = None) -> int:
    return memory.books.allocated_bytes[_index(device)]


def max_memory_allocated(device: torch.device | str | int | None = None) -> int:
    return memory.books.peak_bytes[_index(device)]


def memory_reserved(device: torch.device | str | int | None = None) -> int:
    """The same as allocated: nothing is cached."""
    return memory_allocated(device)


def max_memory_reserved(device: torch.device | str | int | None = None) -> int:
    return max_memory_allocated(device)


def reset_peak_memory_stats(device: torch.device | str | int | None = None) -> None:
    index = _index(device)
    memory.books.peak_bytes[index] = memory.books.allocated_bytes[index]


def memory_stats(device: torch.device | str | int | None = None) -> dict[str, int]:
    """Flat keys in the form CUDA uses."""
    index, books = _index(device), memory.books
    stats = {"num_ooms": books.out_of_memory[index], "num_alloc_retries": 0}
    for kind in ("allocated_bytes", "reserved_bytes", "active_bytes"):
        stats[f"{kind}.all.current"] = books.allocated_bytes[index]
        stats[f"{kind}.all.peak"] = books.peak_bytes[index]
        stats[f"{kind}.all.allocated"] = books.cumulative_bytes[index]
        stats[f"{kind}.all.freed"] = books.freed_bytes[index]
    return stats


def empty_cache() -> None:
    """Nothing is cached."""


def _is_in_bad_fork() -> bool:
    return False


def as_module() -> types.ModuleType:
    """The module object that becomes `torch.neuron`."""
    made = types.ModuleType("torch.neuron", __doc__)
    for name, value in globals().items():
        if (
            callable(value)
            and getattr(value, "__module__", None) == __name__
            and name != "as_module"
        ):
            setattr(made, name, value)
    return made


class DeviceGuard(torch._C._acc.DeviceGuard):
    """Tells PyTorch's C++ side which device type this is."""

    def type_(self) -> Any:
        return torch._C._autograd.DeviceType.PrivateUse1


class Hooks(torch._C._acc.PrivateUse1Hooks):
    """Tells PyTorch's C++ side that the device is there."""

    def is_available(self) -> bool:
        return True

    def has_primary_context(self, device_index: int) -> bool:
        return True

    def is_built(self) -> bool:
        return True

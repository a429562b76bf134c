"""Operators that move or make memory: allocation, resizing, copies, reads of a single value,
pinning.

A copy between host and device, or between two devices, is entered as a copy; one within a device is
an execution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import memory, record
from .cost import region
from .memory import CPU_KEYS, DEVICE_TYPE, host_view, on_device
from .operators import Call, finish, unseen
from .schemas import plan_of

aten = torch.ops.aten


def _index_of(device: torch.device | None) -> int:
    return 0 if device is None or device.index is None else device.index


def _check_options(name: str, layout: torch.layout | None, pin_memory: bool | None) -> None:
    if layout not in (None, torch.strided):
        raise NotImplementedError(
            f"simulated neuron device: {name} makes dense (strided) tensors only, not {layout}"
        )
    if pin_memory:
        raise RuntimeError("Cannot pin 'neuron' memory: only dense CPU tensors can be pinned")


def _empty(
    size: Sequence[int],
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    _check_options("empty", layout, pin_memory)
    if memory_format is torch.preserve_format:
        memory_format = None
    like = torch.empty(
        size, device="meta", dtype=dtype, memory_format=memory_format or torch.contiguous_format
    )
    return memory.empty(like.shape, like.stride(), like.dtype, _index_of(device))


def _empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> torch.Tensor:
    _check_options("empty_strided", layout, pin_memory)
    return memory.empty(size, stride, dtype or torch.get_default_dtype(), _index_of(device))


def copy_(self: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """`self.copy_(src)` between any of host and devices, converting the dtype where they differ."""
    op = aten.copy_.default
    if on_device(self) and on_device(src) and self.device == src.device:
        call = Call(op, plan_of(op), (self, src), {})
        finish(call, op(*call.host_args))
        return self
    ends = []
    for tensor in (self, src):
        if not on_device(tensor) and (
            tensor.device.type != "cpu" or tensor.layout is not torch.strided
        ):
            raise NotImplementedError(
                f"simulated neuron device: aten.copy_ with a {tensor.layout} tensor on "
                f"{tensor.device}"
            )
        ends.append(host_view(tensor) if on_device(tensor) else tensor)
    op(*ends)
    if self.numel():
        nbytes = min(
            region(src).bytes, region(self).bytes * src.element_size() // self.element_size()
        )
        if not on_device(src):
            record.copy("host_to_device", nbytes, self.device.index)
        else:
            record.copy(
                "device_to_device" if on_device(self) else "device_to_host",
                nbytes,
                src.device.index,
            )
    return self


def _copy_from(self: torch.Tensor, dst: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    return copy_(dst, self)


def _copy_from_and_resize(self: torch.Tensor, dst: torch.Tensor) -> torch.Tensor:
    dst.resize_(self.shape)
    return copy_(dst, self)


def _local_scalar_dense(self: torch.Tensor) -> Any:
    value = aten._local_scalar_dense.default(host_view(self))
    record.copy("device_to_host", self.element_size(), self.device.index)
    return value


def _resize_(
    self: torch.Tensor, size: Sequence[int], memory_format: torch.memory_format | None = None
) -> torch.Tensor:
    like = torch.empty(
        size,
        device="meta",
        dtype=self.dtype,
        memory_format=memory_format or torch.contiguous_format,
    )
    if memory_format is None and tuple(self.shape) == tuple(size):
        return self
    storage, offset = self.untyped_storage(), int(self.storage_offset())
    needed = (offset + like.numel()) * self.element_size() if like.numel() else 0
    if needed > storage.nbytes():
        grown: Any = memory.grow(self, needed)
        storage = grown
    memory.set_geometry(self, storage, offset, like.shape, like.stride())
    return self


def _set(op: torch._ops.OpOverload) -> Callable[..., torch.Tensor]:
    def kernel(self: torch.Tensor, *args: Any) -> torch.Tensor:
        source = args[0] if args else None
        if source is None or source.device != self.device:
            raise NotImplementedError(
                f"simulated neuron device: {op} needs a source on {self.device}"
            )
        redispatched: torch.Tensor = op.redispatch(CPU_KEYS, self, *args)
        return redispatched

    return kernel


def _is_pinned(self: torch.Tensor, device: torch.device | None = None) -> bool:
    return False


def _pin_memory(self: torch.Tensor, device: torch.device | None = None) -> torch.Tensor:
    raise RuntimeError(f"cannot pin '{DEVICE_TYPE}' memory: only dense CPU tensors can be pinned")


KERNELS: dict[str, Callable[..., Any]] = {
    "empty.memory_format": unseen(_empty),
    "empty_strided": _empty_strided,
    "copy_": unseen(copy_),
    "_copy_from": unseen(_copy_from),
    "_copy_from_and_resize": unseen(_copy_from_and_resize),
    "_local_scalar_dense": unseen(_local_scalar_dense),
    "resize_": unseen(_resize_),
    "set_": _set(aten.set_.default),
    "set_.source_Storage": _set(aten.set_.source_Storage),
    "set_.source_Storage_storage_offset": _set(aten.set_.source_Storage_storage_offset),
    "set_.source_Tensor": _set(aten.set_.source_Tensor),
    "is_pinned": _is_pinned,
    "_pin_memory": _pin_memory,
}
# PyTorch's own kernels of these call the ones above, and are right as they are. Of a packed
# sequence, lengths and batch sizes stay on the host.
LEFT_TO_PYTORCH = frozenset(
    {"_to_copy", "resize_as_", "lift", "lift_fresh", "_pack_padded_sequence"}
)

"""Device memory: a `neuron` tensor is a plain `torch.Tensor` whose storage stands over host memory
that we own.

`adopt` gives a host tensor its place on the device, `host_view` lets the host compute on a device
tensor; both share memory, so views alias and writes through views are real writes. Also keeps the
allocator's books. Computes nothing.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

import torch

DEVICE_TYPE = "neuron"
CPU_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_set_storage = torch.ops.aten.set_.source_Storage_storage_offset
_DL_EXTENSION_DEVICE = 12  # kDLExtDev, which PyTorch maps to PrivateUse1


class Books:
    """Bytes allocated on each device: now, at the peak, and in all."""

    def __init__(self, devices: int, total_memory_bytes: int) -> None:
        self.total_memory_bytes = total_memory_bytes
        self.allocated_bytes = [0] * devices
        self.peak_bytes = [0] * devices
        self.cumulative_bytes = [0] * devices
        self.freed_bytes = [0] * devices
        self.out_of_memory = [0] * devices

    def check(self, device: int, nbytes: int) -> None:
        """Raise torch.OutOfMemoryError where an allocation does not fit."""
        if self.allocated_bytes[device] + nbytes > self.total_memory_bytes:
            self.out_of_memory[device] += 1
            raise torch.OutOfMemoryError(
                f"simulated neuron:{device} out of memory: tried to allocate {nbytes} bytes, "
                f"{self.allocated_bytes[device]} of {self.total_memory_bytes} are in use"
            )

    def allocate(self, device: int, nbytes: int) -> None:
        """Enter an allocation."""
        self.check(device, nbytes)
        self.allocated_bytes[device] += nbytes
        self.cumulative_bytes[device] += nbytes
        self.peak_bytes[device] = max(self.peak_bytes[device], self.allocated_bytes[device])

    def release(self, device: int, nbytes: int) -> None:
        """Enter the end of an allocation."""
        self.allocated_bytes[device] -= nbytes
        self.freed_bytes[device] += nbytes


books = Books(1, 0)  # replaced by `open_books` when the device is installed
# Host address of the first byte -> the device storage over it: what a host computation returns
# without copying is recognized by it as the device tensor's own memory.
_storages: weakref.WeakValueDictionary[int, torch.UntypedStorage] = weakref.WeakValueDictionary()
_templates: dict[tuple[int, torch.dtype], torch.Tensor] = {}


def open_books(devices: int, total_memory_bytes: int) -> None:
    """Start the book-keeping for that many devices of that much memory each."""
    global books
    books = Books(devices, total_memory_bytes)


def allocate(nbytes: int, device: int) -> torch.UntypedStorage:
    """A new device storage with uninitialized contents."""
    books.check(device, nbytes)
    return _device_storage(torch.UntypedStorage(nbytes), device)


def _device_storage(owner: torch.UntypedStorage, device: int) -> torch.UntypedStorage:
    nbytes = owner.nbytes()
    books.allocate(device, nbytes)
    make: Any = torch._C._construct_storage_from_data_pointer
    # The host computes through a storage that cannot be resized: a CPU kernel that wants to grow
    # its `out=` gets an error instead of moving the memory away from under the device tensor.
    host = make(owner.data_ptr(), torch.device("cpu"), nbytes)
    host._owner = owner
    storage: torch.UntypedStorage = make(
        owner.data_ptr(), torch.device(DEVICE_TYPE, device), nbytes
    )
    storage._host = host  # type: ignore[attr-defined]  # keeps the memory alive
    weakref.finalize(storage, books.release, device, nbytes).atexit = False
    if nbytes:
        _storages[owner.data_ptr()] = storage
    return storage


def _template(device: int, dtype: torch.dtype) -> torch.Tensor:
    """An empty tensor of the device, made through DLPack: the only constructor in Python that
    takes a device index.
    """
    found = _templates.get((device, dtype))
    if found is None:
        raw = _templates.get((device, torch.uint8))
        if raw is None:
            raw = _templates[device, torch.uint8] = _empty_bytes(device)
        found = torch.ops.aten.view.dtype.redispatch(CPU_KEYS, raw, dtype)
        _templates[device, dtype] = found
    return found


def tensor_over(
    storage: torch.UntypedStorage,
    device: int,
    dtype: torch.dtype,
    offset: int,
    size: Sequence[int],
    stride: Sequence[int],
) -> torch.Tensor:
    """A plain tensor on the device with exactly this storage and geometry."""
    fresh = torch.ops.aten.alias.default.redispatch(CPU_KEYS, _template(device, dtype))
    made: torch.Tensor = _set_storage.redispatch(CPU_KEYS, fresh, storage, offset, size, stride)
    return made


def empty(
    size: Sequence[int], stride: Sequence[int], dtype: torch.dtype, device: int
) -> torch.Tensor:
    """An uninitialized tensor of this geometry in memory of its own."""
    elements = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    storage = allocate(elements * dtype.itemsize, device)
    return tensor_over(storage, device, dtype, 0, size, stride)


def adopt(host: torch.Tensor, device: int) -> torch.Tensor:
    """The device tensor over a host tensor's memory; where that memory is a device storage's
    already, a view of it.
    """
    if host.layout is not torch.strided or host.is_quantized or host.is_nested:
        raise NotImplementedError("the simulated neuron device holds dense (strided) tensors only")
    if torch._is_zerotensor(host):  # autograd's stand-in for zeros has no memory
        host = torch.zeros(host.shape, dtype=host.dtype, device="cpu")
    if host.is_conj() or host.is_neg():
        host = host.resolve_conj().resolve_neg()
    owner = host.untyped_storage()
    storage = _storages.get(owner.data_ptr()) if owner.nbytes() else None
    if storage is None:
        storage = _device_storage(owner, device)
    return tensor_over(
        storage, device, host.dtype, int(host.storage_offset()), host.shape, host.stride()
    )


def host_view(tensor: torch.Tensor) -> torch.Tensor:
    """The CPU tensor over a device tensor's memory, of the same geometry."""
    view = torch.empty(0, dtype=tensor.dtype, device="cpu")
    storage: Any = tensor.untyped_storage()
    if not hasattr(storage, "_host"):  # PyTorch's own view of the same memory: pickle makes one
        storage = _storages.get(storage.data_ptr(), storage)
    _set_storage(view, storage._host, tensor.storage_offset(), tensor.shape, tensor.stride())
    if tensor.is_conj():
        view = torch._conj(view)
    if tensor.is_neg():
        view = torch._neg_view(view)
    return view


def set_geometry(
    tensor: torch.Tensor,
    storage: torch.UntypedStorage,
    offset: int,
    size: Sequence[int],
    stride: Sequence[int],
) -> None:
    """Let the tensor stand on this storage with this geometry, in place."""
    _set_storage.redispatch(CPU_KEYS, tensor, storage, offset, size, stride)


def _is_shared(tensor: torch.Tensor) -> bool:
    # The tensor and the Python object of its storage hold one reference each.
    storage = tensor.untyped_storage()
    return bool(torch._C._storage_Use_Count(storage._cdata) > 2)


def take_result(tensor: torch.Tensor, result: torch.Tensor) -> None:
    """Give a tensor a host result of another shape, as a CPU kernel resizes its `out=`.

    In place where its storage has room, else by taking over the result's memory.
    """
    if tensor.shape == result.shape:
        host_view(tensor).copy_(result)
        return
    size, stride, offset = result.shape, result.stride(), int(tensor.storage_offset())
    span = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if result.numel() else 0
    storage = tensor.untyped_storage()
    if not span or (offset + span) * tensor.element_size() <= storage.nbytes():
        set_geometry(tensor, storage, offset, size, stride)
        host_view(tensor).copy_(result)
        return
    if storage.nbytes() and _is_shared(tensor):
        raise NotImplementedError(
            "cannot resize an out= tensor while another tensor shares its storage"
        )
    other = adopt(result, tensor.device.index)
    set_geometry(tensor, other.untyped_storage(), int(other.storage_offset()), size, stride)


def grow(tensor: torch.Tensor, nbytes: int) -> torch.UntypedStorage:
    """A larger storage with the contents of the tensor's, for a resize in place."""
    old: Any = tensor.untyped_storage()
    if old.nbytes() and _is_shared(tensor):
        raise NotImplementedError(
            f"simulated neuron device: cannot grow a storage to {nbytes} bytes while another "
            "tensor shares it"
        )
    new: Any = allocate(nbytes, tensor.device.index)
    source, target = (torch.empty(0, dtype=torch.uint8, device="cpu") for _ in range(2))
    _set_storage(source, old._host, 0, (old.nbytes(),), (1,))
    _set_storage(target, new._host, 0, (old.nbytes(),), (1,))
    target.copy_(source)
    grown: torch.UntypedStorage = new
    return grown


def on_device(value: object) -> bool:
    """Whether it is a tensor of the simulated device."""
    return isinstance(value, torch.Tensor) and value.device.type == DEVICE_TYPE


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype_code", ctypes.c_uint8),
        ("dtype_bits", ctypes.c_uint8),
        ("dtype_lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


_dlpack_alive: list[
    object
] = []  # PyTorch keeps pointers into these for as long as the templates live: for ever


def _empty_bytes(device: int) -> torch.Tensor:
    shape, strides = (ctypes.c_int64 * 1)(0), (ctypes.c_int64 * 1)(1)
    managed = _DLTensor(
        None, _DL_EXTENSION_DEVICE, device, 1, 1, 8, 1, shape, strides, 0, None, None
    )
    _dlpack_alive.append((shape, strides, managed))
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype = ctypes.py_object
    new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = new_capsule(ctypes.addressof(managed), b"dltensor", None)
    made: torch.Tensor = torch.utils.dlpack.from_dlpack(capsule)
    return made

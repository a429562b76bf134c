"""What the device did: executions and copies, on the model's own clock. Written by the operators
and the compiler.

An execution is pending until the caller's own `torch.neuron.synchronize()`; a profiling session
(`sessions.py`) takes only what is synchronized. Knows nothing of files or of torch.profiler.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from .cost import CostModel, Work

MARKER = "[simulated neuron execution]"


@dataclass
class Model:
    """One compiled program (a NEFF on the real device): an operator with its shapes, or a whole
    graph.
    """

    model_id: int
    key: str
    name: str
    kind: str  # "operator" or "graph"
    operators: tuple[str, ...]

    @property
    def hash(self) -> str:
        """A stable name for the program: the same text gives the same hash in every process."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:16]


@dataclass
class Event:
    """One entry of a core's runtime trace; times are ns on the model's clock, and a copy has no
    modelled duration.
    """

    name: str  # nc_exec_running, nrt_tensor_write, nrt_tensor_read or nrt_tensor_copy
    nc_idx: int
    start_ns: int
    duration_ns: int | None = None
    bytes: int = 0
    exec_id: int = 0
    flow_id: int = 0
    model: Model | None = None
    synchronized: bool = False


@dataclass
class Copies:
    """How many copies went which way since the device was installed, and their bytes."""

    count: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)


@dataclass
class Device:
    """The state of the whole device: which core each index is, each core's clock, and what is
    pending.
    """

    cost: CostModel
    cores: tuple[int, ...]
    clock_ns: list[int]
    executions: int = 0
    copies: Copies = field(default_factory=Copies)
    models: dict[str, Model] = field(default_factory=dict)
    pending: list[Event] = field(default_factory=list)
    # The profiling session that is on: takes each event as it is launched, and says whether to mark
    # executions.
    listener: Callable[[Event], bool] | None = None


device = Device(CostModel(0.0, 1.0, {"float32": 1.0}, 1.0), (), [])  # replaced by `power_on`


def power_on(cost: CostModel, cores: Sequence[int]) -> None:
    """Start the clocks at zero."""
    global device
    device = Device(cost, tuple(cores), [0] * len(cores))


def model_for(key: str, name: str, kind: str, operators: tuple[str, ...]) -> tuple[Model, bool]:
    """The program of this key, and whether it is new in this process, which on the real device
    means a compile.
    """
    found = device.models.get(key)
    if found is not None:
        return found, False
    made = device.models[key] = Model(len(device.models) + 1, key, name, kind, operators)
    return made, True


def execute(model: Model, work: Work, index: int) -> None:
    """Enter one execution on device `index`, and mark its place among the profiler's rows if a
    session wants that.
    """
    duration_ns = round(device.cost.device_time_us(work) * 1000)
    device.executions += 1
    event = Event(
        "nc_exec_running",
        device.cores[index],
        device.clock_ns[index],
        duration_ns,
        work.bytes,
        exec_id=device.executions,
        flow_id=device.executions,
        model=model,
    )
    device.clock_ns[index] += duration_ns
    if _launch(event):
        torch._C._autograd._enable_record_function(True)  # kernels run with it off
        with torch._C._profiler._RecordFunctionFast(f"{MARKER} {event.exec_id}"):
            pass
        torch._C._autograd._enable_record_function(False)


def copy(direction: str, nbytes: int, index: int) -> None:
    """Enter one copy: direction is host_to_device, device_to_host or device_to_device."""
    copies = device.copies
    copies.count[direction] = copies.count.get(direction, 0) + 1
    copies.bytes[direction] = copies.bytes.get(direction, 0) + nbytes
    names = {"host_to_device": "nrt_tensor_write", "device_to_host": "nrt_tensor_read"}
    _launch(
        Event(
            names.get(direction, "nrt_tensor_copy"),
            device.cores[index],
            device.clock_ns[index],
            bytes=nbytes,
        )
    )


def _launch(event: Event) -> bool:
    if device.listener is None:
        return False
    device.pending.append(event)
    return device.listener(event)


def synchronize(index: int) -> None:
    """The caller waits for one device: what it launched so far becomes visible."""
    core = device.cores[index]
    left = []
    for event in device.pending:
        if event.nc_idx == core:
            event.synchronized = True
        else:
            left.append(event)
    device.pending = left

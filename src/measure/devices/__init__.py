"""Where a step runs: the same small object for Trainium and for the simulator. Used by job.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch


@dataclass(frozen=True)
class Executions:
    """The device executions (NEFF runs) of one session folder, one entry an execution."""

    count: int
    busy_us: float | None
    """Sum of their lengths, each merged over the physical cores of its logical core."""


@dataclass(frozen=True)
class Tracking:
    """The library's own lists of operator names, kept since the last `clear`."""

    clear: Callable[[], Any]
    fallback: Callable[[], Iterable[Any]]
    executed: Callable[[], Iterable[Any]] | None


@dataclass(frozen=True)
class Device:
    """An opened device, as capture.py drives it."""

    name: str
    """neuron or simulated."""
    torch_device: torch.device
    synchronize: Callable[[], None]
    profiling: ModuleType | Any
    """Offers NeuronConfig, ProfileMode and NeuronProfiler by their published names."""
    device_time_source: str
    """What Self NEURON in the profiler's table would be: key_averages or simulated."""
    executions: Callable[[Path], Executions | None]
    """The executions of one session folder; None when they cannot be read."""
    description: str
    chip: str | None = None
    lnc: int | None = None
    versions: dict[str, str] = field(default_factory=dict)
    neff_cache_dir: str | None = None
    """The effective NEFF cache; None: the device has none, or it is off."""
    tracking: Tracking | None = None
    """None: the library does not say which operators fell back to the CPU."""

"""Where a step runs: the same small object for Trainium and for the simulator. Used by job.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch


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
    count_executions: Callable[[Path], int | None]
    """Executions in one session folder; None when they cannot be counted."""
    description: str
    chip: str | None = None
    lnc: int | None = None
    versions: dict[str, str] = field(default_factory=dict)
    neff_cache_dir: str | None = None

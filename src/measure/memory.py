"""The device's peak memory over one step: what fusion saves by not writing it. Called by job.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .devices import Device


def peak_allocated_bytes(step: Callable[[], Any], device: Device) -> int | None:
    """Run one warm step and return the most that was allocated, inputs included.

    None where the device does not tell; the layout of torch.neuron's numbers is not published.
    """
    library = getattr(torch, device.torch_device.type, None)
    reset = getattr(library, "reset_peak_memory_stats", None)
    peak = getattr(library, "max_memory_allocated", None)
    if reset is None or peak is None:
        return None
    try:
        reset()
        step()
        device.synchronize()
        told = int(peak())
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        print(f"the device's peak memory cannot be asked for: {error}", flush=True)  # noqa: T201  # child.log
        return None
    return told or None

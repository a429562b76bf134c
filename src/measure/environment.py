"""The machine and software under a run: environment.json. Cheap, and never a reason to fail.

Called by job.py in the child, after the device is open. Asks no network.
"""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Mapping
from typing import Any

from .devices import Device

PREFIXES = ("NEURON_", "TORCH_NEURONX_", "XLA_", "NKI_")


def stamp(device: Device, environ: Mapping[str, str]) -> dict[str, Any]:
    """Versions, device and every variable that can change timing.

    `environ` is the environment as it was before the device was opened.
    """
    return {
        "device": device.name,
        "device_description": device.description,
        "chip": device.chip,
        "lnc": device.lnc,
        "versions": {"python": platform.python_version(), **device.versions},
        "platform": platform.platform(),
        "cpu_model": _cpu_model(),
        "cpu_count": os.cpu_count(),
        "load_average": _load_average(),
        "host": socket.gethostname(),
        "variables": {
            key: value for key, value in sorted(environ.items()) if key.startswith(PREFIXES)
        },
    }


def _cpu_model() -> str | None:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or None


def _load_average() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None

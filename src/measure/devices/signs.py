"""Signs of Neuron on this machine, found without importing torch. Used by choose.py and doctor.

A sign alone does not make Trainium usable; a machine with none of them gets the simulator.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path

_LIBRARY = "opt/aws/neuron/lib/libnrt.so.1"
_PREFIXES = ("NEURON_", "TORCH_NEURONX_")


def signs_of_neuron(
    root: Path = Path("/"),
    environ: Mapping[str, str] | None = None,
    ours: frozenset[str] = frozenset(),
) -> list[str]:
    """List what on this machine speaks of Neuron, in words; empty on an ordinary laptop.

    `root` is where /dev, /sys and /opt are looked up; `ours` are variables that this tool set.
    """
    environ = os.environ if environ is None else environ
    found = [
        f"device file /dev/{path.name}" for path in sorted((root / "dev").glob("neuron[0-9]*"))
    ]
    product = root / "sys/devices/virtual/dmi/id/product_name"
    try:
        name = product.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        name = ""
    if name.startswith(("trn", "inf")):
        found.append(f"instance type {name}")
    if (root / _LIBRARY).exists():
        found.append(f"runtime library /{_LIBRARY}")
    if importlib.util.find_spec("torch_neuronx"):
        found.append("Python package torch_neuronx")
    found += [
        f"environment variable {key}"
        for key in sorted(environ)
        if key.startswith(_PREFIXES) and key not in ours
    ]
    return found

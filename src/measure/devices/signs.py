"""Signs of Neuron on this machine, found without importing torch. Used by choose.py and doctor.

A sign alone does not make Trainium usable; a machine with none of them gets the simulator.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path

PACKAGES = ("torch_neuronx", "libneuronxla")
_LIBRARY = "libnrt.so*"
_LIBRARY_FOLDERS = (
    "opt/aws/neuron/lib",
    "usr/lib",
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/local/lib",
)
_PREFIXES = ("NEURON_", "TORCH_NEURONX_")
_PRODUCT = "sys/devices/virtual/dmi/id/product_name"


def signs_of_neuron(
    root: Path = Path("/"),
    environ: Mapping[str, str] | None = None,
    ours: frozenset[str] = frozenset(),
) -> list[str]:
    """List what on this machine speaks of Neuron, in words; empty on an ordinary laptop.

    `root` is where /dev, /sys, /usr and /opt are looked up; `ours` are variables that this tool
    set. Packages are those of this Python, wherever it is installed.
    """
    environ = os.environ if environ is None else environ
    found = [f"device file /dev/{path.name}" for path in device_files(root)]
    if name := instance_type(root):
        found.append(f"instance type {name}")
    if library := runtime_library(root):
        found.append(f"runtime library /{library.relative_to(root)}")
    found += [f"Python package {name}" for name in PACKAGES if importlib.util.find_spec(name)]
    found += [
        f"environment variable {key}"
        for key in sorted(environ)
        if key.startswith(_PREFIXES) and key not in ours
    ]
    return found


def device_files(root: Path = Path("/")) -> list[Path]:
    """The driver's device files, in order; none means that the driver is not loaded."""
    files = (root / "dev").glob("neuron[0-9]*")
    return sorted(files, key=lambda path: (len(path.name), path.name))


def instance_type(root: Path = Path("/")) -> str | None:
    """The EC2 instance type where it is a Neuron one, for example trn2.3xlarge."""
    try:
        name = (root / _PRODUCT).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    return name if name.startswith(("trn", "inf")) else None


def runtime_library(root: Path = Path("/")) -> Path | None:
    """Where libnrt is, the Neuron runtime; None: in none of the usual places."""
    places = (file for folder in _LIBRARY_FOLDERS for file in (root / folder).glob(_LIBRARY))
    return next(iter(sorted(places)), None)

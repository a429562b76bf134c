"""The machine and software under a run: environment.json. Cheap, and never a reason to fail.

Called by job.py in the child, after the device is open. Asks no network: the instance type is what
the firmware says. What cannot be told is null.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ..schema import Config
from .devices import Device, signs

T = TypeVar("T")
PREFIXES = ("NEURON_", "TORCH_NEURONX_", "XLA_", "NKI_")
PROJECT = Path(__file__).resolve().parents[2]
WORKLOADS = Path(__file__).with_name("workloads")
GIT_S = 2.0
_DMI = "sys/devices/virtual/dmi/id"
# Where the driver's version is: the module's own file, else the first number of what it prints.
_DRIVER = ("sys/module/neuron/version", "proc/driver/neuron/version", "proc/driver/neuron")
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_IN_CONTAINER = ("kubepods", "docker", "containerd", "libpod", "lxc")


def stamp(
    device: Device,
    environ: Mapping[str, str],
    config: Config | None = None,
    root: Path = Path("/"),
    project: Path = PROJECT,
) -> dict[str, Any]:
    """Versions, device, machine and every variable that can change timing.

    `environ` is the environment as it was before the device was opened. `root` is where /proc,
    /sys, /opt and /run are looked up.
    """
    below = {
        "neuron_runtime": _guarded(lambda: runtime_version(root)),
        "neuron_driver": _guarded(lambda: driver_version(root)),
    }
    commit, dirty = _guarded(lambda: _project(project)) or (None, None)
    return {
        "device": device.name,
        "device_description": device.description,
        "chip": device.chip,
        "lnc": device.lnc,
        "instance_type": _guarded(lambda: _instance_type(root)),
        "versions": {
            "python": platform.python_version(),
            **device.versions,
            **{name: version for name, version in below.items() if version},
        },
        "project_commit": commit,
        "project_dirty": dirty,
        "workload_sha256": _guarded(lambda: _workload_sha256(config)),
        "platform": _guarded(platform.platform),
        "cpu_model": _guarded(lambda: _cpu_model(root)),
        "cpu_count": os.cpu_count(),
        "cpu_usable": _guarded(lambda: len(os.sched_getaffinity(0))),
        "load_average": _guarded(lambda: round(os.getloadavg()[0], 2)),
        "memory_total_bytes": _guarded(lambda: _memory_total_bytes(root)),
        "container": _guarded(lambda: _container(root, environ)),
        "host": _guarded(socket.gethostname),
        "variables": {
            key: value for key, value in sorted(environ.items()) if key.startswith(PREFIXES)
        },
    }


def runtime_version(root: Path = Path("/")) -> str | None:
    """The version in the file name of the Neuron runtime's library, libnrt.so.<version>."""
    library = signs.runtime_library(root)
    if library is None:
        return None
    names = [library.resolve().name, *(path.name for path in library.parent.glob("libnrt.so.*"))]
    found = [match[0] for name in names if (match := _VERSION.search(name))]
    return max(found, key=len, default=None)


def driver_version(root: Path = Path("/")) -> str | None:
    """The version of the loaded Neuron driver; None where it is not loaded."""
    for name in _DRIVER:
        path = root / name
        if path.is_file() and (match := _VERSION.search(_text(path))):
            return match[0]
    return None


def _instance_type(root: Path) -> str | None:
    name = _text(root / _DMI / "product_name").strip()
    vendor = root / _DMI / "sys_vendor"
    is_ec2 = vendor.is_file() and "Amazon" in _text(vendor)
    return name if name and (is_ec2 or name.startswith(("trn", "inf"))) else None


def _project(project: Path) -> tuple[str | None, bool | None]:
    """This project's commit, and whether tracked files differ from it."""
    done = subprocess.run(
        [
            *("git", "-C", str(project), "--no-optional-locks", "status"),
            *("--porcelain=v2", "--branch", "--untracked-files=no"),
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=GIT_S,
    )
    lines = done.stdout.splitlines()
    commits = [line.rpartition(" ")[2] for line in lines if line.startswith("# branch.oid ")]
    return next(iter(commits), None), any(not line.startswith("#") for line in lines)


def _workload_sha256(config: Config | None) -> str | None:
    """Of the file that holds the workload; a module's is known only when it is loaded."""
    if config is None:
        return None
    path = WORKLOADS / f"{config.workload.name}.py"
    if config.workload.target is not None:
        path = Path(config.workload.target.rpartition(":")[0]).expanduser()
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _cpu_model(root: Path) -> str | None:
    cpuinfo = root / "proc" / "cpuinfo"
    if cpuinfo.is_file():
        with cpuinfo.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    return platform.processor() or None


def _memory_total_bytes(root: Path) -> int | None:
    match = re.search(r"MemTotal:\s+(\d+) kB", _text(root / "proc" / "meminfo"))
    return int(match[1]) * 1024 if match else None


def _container(root: Path, environ: Mapping[str, str]) -> str | None:
    """What kind of container this looks like; None for none that shows."""
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    for name, kind in ((".dockerenv", "docker"), ("run/.containerenv", "podman")):
        if (root / name).exists():
            return kind
    cgroup = root / "proc" / "1" / "cgroup"
    said = _text(cgroup) if cgroup.is_file() else ""
    return next((word for word in _IN_CONTAINER if word in said), None)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _guarded(part: Callable[[], T]) -> T | None:
    """A part that fails is not known; a stamp is no reason to lose a run."""
    try:
        return part()
    except Exception:
        return None

"""Instance type, driver, device files, NeuronCores and who holds them. Reads /dev, /proc and /sys.

Opens no device and asks no network.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .finding import NOT_APPLICABLE, OK, PROBLEM, WARNING, Finding, Machine, Stack, counted

PRODUCT_NAME = "/sys/devices/virtual/dmi/id/product_name"
SYSFS = "/sys/devices/virtual/neuron_device"  # AWS: Neuron Sysfs User Guide
PHYSICAL_CORES = {"trn1": 2, "inf2": 2, "trn2": 8, "trn3": 8}  # per chip; neuron_api 9.1
SUPPORTED = ("trn2", "trn3")  # SDK 2.33 release notes of the native backend
MOST_HOLDERS = 4
NONE_HERE = "no sign of Neuron"


def signs(machine: Machine, stack: Stack) -> list[Finding]:
    """What makes device=auto think that this is a Neuron machine."""
    if not stack.signs:
        return [Finding("signs of Neuron", NOT_APPLICABLE, "none: device=auto is the simulator")]
    if stack.expected:
        return [Finding("signs of Neuron", OK, _short(stack.signs))]
    names = [sign.rpartition(" ")[2] for sign in stack.signs]
    return [
        Finding(
            "signs of Neuron",
            PROBLEM,
            f"only {_short(stack.signs)}: device=auto refuses to simulate while they are set",
            f"unset {' '.join(names)}    (or add device=simulated to each run)",
        )
    ]


def _short(signs: tuple[str, ...]) -> str:
    """The signs by kind, so that sixteen device files do not hide the others."""
    kinds: dict[str, list[str]] = {}
    for sign in signs:
        kind, _, name = sign.rpartition(" ")
        kinds.setdefault(kind, []).append(name)
    return "; ".join(
        f"{kind} {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        for kind, names in kinds.items()
    )


def instance_type(machine: Machine, stack: Stack) -> list[Finding]:
    """The instance type as the firmware names it."""
    name = "instance type"
    product = machine.text(PRODUCT_NAME)
    family = (product or "").partition(".")[0]
    if product and family.startswith(SUPPORTED):
        return [Finding(name, OK, product)]
    if product and family.startswith(("trn", "inf")):
        return [
            Finding(
                name,
                WARNING,
                f"{product}: the native torch_neuronx is released for Trn2 and Trn3",
                "take a trn2 or trn3 instance if runs fail here",
            )
        ]
    if not stack.expected:
        return [Finding(name, NOT_APPLICABLE, product or "unknown (no DMI)")]
    return [Finding(name, OK, f"{product or 'not named by the firmware'}, not an EC2 Neuron name")]


def driver(machine: Machine, stack: Stack) -> list[Finding]:
    """Is the kernel module loaded?"""
    name = "driver"
    if not stack.expected:
        return [Finding(name, NOT_APPLICABLE, NONE_HERE)]
    version = machine.text("/sys/module/neuron/version")
    modules = machine.text("/proc/modules") or ""
    if version or any(line.split()[:1] == ["neuron"] for line in modules.splitlines()):
        return [Finding(name, OK, f"module neuron {version or '(version unknown)'} is loaded")]
    if _device_files(machine):
        return [Finding(name, OK, "device files exist; the module cannot be seen from here")]
    return [Finding(name, PROBLEM, "the kernel module neuron is not loaded", _driver_cure(machine))]


def _driver_cure(machine: Machine) -> str:
    if not (machine.text(PRODUCT_NAME) or "").startswith(("trn", "inf")):
        return "run on a trn2 or trn3 instance, or add device=simulated to each run here"
    return (
        "sudo modprobe neuron    (not found: sudo apt-get install aws-neuronx-dkms; in a "
        "container: start it with --device=/dev/neuron0)"
    )


def _device_files(machine: Machine) -> list[Path]:
    files = machine.path("/dev").glob("neuron[0-9]*")
    return sorted(files, key=lambda path: (len(path.name), path.name))


def has_devices(machine: Machine) -> bool:
    """Is there any device file of the driver?"""
    return bool(_device_files(machine))


def device_files(machine: Machine, stack: Stack) -> list[Finding]:
    """Are there /dev/neuron* files, and may this user open them?"""
    name = "device files"
    files = _device_files(machine)
    if not stack.expected:
        return [Finding(name, NOT_APPLICABLE, NONE_HERE)]
    if not files:
        if driver(machine, stack)[0].status == PROBLEM:
            return [Finding(name, NOT_APPLICABLE, "none, as the driver is not loaded")]
        return [Finding(name, PROBLEM, "there is no /dev/neuron0", _driver_cure(machine))]
    shown = f"/dev/{files[0].name}"
    if len(files) > 1:
        shown += f" to {files[-1].name} ({len(files)} chips)"
    closed = [path for path in files if not machine.may_use(path)]
    if closed:
        return [
            Finding(
                name,
                PROBLEM,
                f"{shown}: you may not read and write {closed[0].name}",
                f"sudo chmod a+rw /dev/neuron*    (now: {_mode(closed[0])})",
            )
        ]
    return [Finding(name, OK, f"{shown}, readable and writable")]


def _mode(path: Path) -> str:
    status = path.stat()
    return f"mode {status.st_mode & 0o777:03o}, owner {status.st_uid}, group {status.st_gid}"


def cores(machine: Machine, stack: Stack) -> list[Finding]:
    """How many NeuronCores there are."""
    name = "NeuronCores"
    chips = len(_device_files(machine))
    if not stack.expected or not chips:
        return [Finding(name, NOT_APPLICABLE, "no device file")]
    physical = _physical_cores(machine)
    per_chip = "an unknown number" if physical is None else str(physical)
    found = f"{counted(chips, 'chip')} with {per_chip} of physical cores each"
    if physical is not None:
        found = f"{counted(chips, 'chip')}, {chips * physical} physical cores"
    if stack.cores is None:
        return [Finding(name, OK, found)]
    if stack.cores == 0:
        return [Finding(name, PROBLEM, f"{found}, torch.neuron sees none", "neuron-ls")]
    last = stack.cores - 1
    return [Finding(name, OK, f"{found}, torch.neuron sees {stack.cores} (cores=0 to {last})")]


def _physical_cores(machine: Machine) -> int | None:
    """Physical cores of the first chip: from the driver, else from the instance type."""
    count = machine.text(f"{SYSFS}/neuron0/core_count")
    if count and count.isdigit() and int(count):
        return int(count)
    listed = len(list(machine.path(f"{SYSFS}/neuron0").glob("neuron_core[0-9]*")))
    return listed or PHYSICAL_CORES.get((machine.text(PRODUCT_NAME) or "")[:4])


@dataclass(frozen=True)
class Holder:
    """A process that has Neuron device files open."""

    pid: int
    command: str
    devices: frozenset[str]
    cores: str | None
    """Its NEURON_RT_VISIBLE_CORES or NUM_CORES; None: it takes all; "unknown": unreadable."""

    def __str__(self) -> str:
        takes = "all cores" if self.cores is None else f"cores {self.cores}"
        return (
            f"pid {self.pid} ({self.command[:60]}) has {', '.join(sorted(self.devices))}, {takes}"
        )


def held_cores(machine: Machine, stack: Stack) -> list[Finding]:
    """Which processes have the devices open, as far as this user may see."""
    name = "held by"
    files = {path.name for path in _device_files(machine)}
    if not stack.expected or not files:
        return [Finding(name, NOT_APPLICABLE, "no device file")]
    holders, hidden = _holders(machine)
    unseen = f" ({hidden} processes of other users could not be looked at)" if hidden else ""
    if not holders:
        return [Finding(name, OK, f"nobody{unseen}")]
    found = "; ".join(map(str, holders[:MOST_HOLDERS]))
    if len(holders) > MOST_HOLDERS:
        found += f"; {len(holders) - MOST_HOLDERS} more"
    stop = f"kill {' '.join(str(holder.pid) for holder in holders[:MOST_HOLDERS])}"
    taken = frozenset[str]().union(*(h.devices for h in holders if h.cores is None))
    if files <= taken:  # without one of the two variables, a process takes every core
        return [Finding(name, PROBLEM, f"{found}{unseen}", f"{stop}    (or wait until it ends)")]
    cure = f"take other cores (cores=...; neuron-ls shows which are free), or {stop}"
    return [Finding(name, WARNING, f"{found}{unseen}", cure)]


def _holders(machine: Machine) -> tuple[list[Holder], int]:
    """Return the holders, and how many processes could not be looked at."""
    found, hidden = [], 0
    for process in machine.path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        try:
            devices = frozenset(_open_devices(process))
        except PermissionError:
            hidden += 1
            continue
        except OSError:  # it ended meanwhile
            continue
        if devices:
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            command = shlex.join(word for word in words if word) or "?"
            found.append(Holder(int(process.name), command, devices, _cores_of(process)))
    return sorted(found, key=lambda holder: holder.pid), hidden


def _open_devices(process: Path) -> Iterator[str]:
    for entry in os.scandir(process / "fd"):
        try:
            target = Path(os.readlink(entry.path))
        except FileNotFoundError:  # closed meanwhile
            continue
        if target.parent == Path("/dev") and target.name.startswith("neuron"):
            yield target.name


def _cores_of(process: Path) -> str | None:
    try:
        pairs = (process / "environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "unknown"
    variables = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    if variables.get("NEURON_RT_VISIBLE_CORES"):
        return variables["NEURON_RT_VISIBLE_CORES"]
    number = variables.get("NEURON_RT_NUM_CORES", "0")
    return f"{number} of its choice" if number not in ("", "0") else None

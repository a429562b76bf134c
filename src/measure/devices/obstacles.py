"""What stands in the way of a measurement on Trainium, in words with the cure. No torch here.

Called by choose.py, neuron.py and capture.py. Messages of the runtime are not published, so they
are told apart by a few words each, and always shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import UserError
from ...schema import Config
from . import signs

INSPECT = "NEURON_RT_INSPECT_ENABLE"
LNC_VARIABLES = ("NEURON_RT_VIRTUAL_CORE_SIZE", "NEURON_LOGICAL_NC_CONFIG")
OFF = ("", "0", "false", "off", "no")
_OUT_OF_MEMORY = re.compile(
    r"out of (?:device )?memory|\boom\b|NRT_RESOURCE|(?:failed|unable|cannot) to allocate|"
    r"memory alloc\w* fail|insufficient (?:device )?memory|ENOMEM",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Holder:
    """A process that has one of the driver's device files open."""

    pid: int
    command: str
    files: tuple[str, ...]


def refuse_conflicts(environ: Mapping[str, str]) -> None:
    """Raise UserError for variables that would spoil the capture; called before device work."""
    value = environ.get(INSPECT, "")
    if value.strip().lower() not in OFF:
        raise UserError(
            f"{INSPECT}={value}: the runtime's own capture conflicts with torch.profiler (a failed "
            f"or a doubled capture). Type: unset {INSPECT}, or add device.env.{INSPECT}=null."
        )
    sizes = {name: environ[name] for name in LNC_VARIABLES if environ.get(name, "").strip()}
    if len(set(sizes.values())) > 1:
        said = " and ".join(f"{name}={size}" for name, size in sizes.items())
        raise UserError(
            f"{said}: both say how many physical cores a logical NeuronCore has, and they must "
            f"agree. Unset one: add device.env.{LNC_VARIABLES[1]}=null."
        )


def logical_core_size(environ: Mapping[str, str]) -> int | None:
    """LNC, as the environment says; None when it does not, because then the release decides."""
    said = {environ.get(name, "").strip() for name in LNC_VARIABLES} - {""}
    return int(next(iter(said))) if said in ({"1"}, {"2"}) else None


def holders(root: Path = Path("/")) -> list[Holder]:
    """The other processes that have a Neuron device open, as far as this user may see them."""
    found = []
    for folder in sorted((root / "proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        if int(folder.name) == os.getpid():
            continue
        try:
            links = {os.readlink(link) for link in (folder / "fd").iterdir()}
            files = tuple(sorted(link for link in links if link.startswith("/dev/neuron")))
            if files:
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                command = words.decode("utf-8", "replace").strip()[:80]
                found.append(Holder(int(folder.name), command, files))
        except OSError:  # ended meanwhile, or another user's
            continue
    return found


def unavailable(root: Path, environ: Mapping[str, str]) -> str:
    """Why torch.neuron.is_available() may be false, most likely reason first."""
    files = signs.device_files(root)
    what = "torch.neuron.is_available() is false"
    if not files:
        return (
            f"{what} and there is no /dev/neuron*: the Neuron driver is not loaded, or this is no "
            "Neuron machine. Install aws-neuronx-dkms and type: sudo modprobe neuron. In a "
            "container, pass the device: --device=/dev/neuron0."
        )
    closed = [file for file in files if not os.access(file, os.R_OK | os.W_OK)]
    if closed:
        return (
            f"{what} and this user may not open /dev/{closed[0].name}. Ask for read and write "
            f"permission on it (ls -l /dev/{closed[0].name})."
        )
    if environ.get("NEURON_RT_VISIBLE_CORES", "0").strip() == "":
        return (
            f"{what} and NEURON_RT_VISIBLE_CORES is empty. Type: unset NEURON_RT_VISIBLE_CORES, so "
            "that cores=<list> decides."
        )
    return f"{what}, though the driver is there. {_held(root)}"


def cannot_open(cores: str, error: Exception, root: Path) -> UserError:
    """The error for cores that the runtime does not give."""
    return UserError(
        f"cores={cores}: the Neuron runtime could not open these cores ({_short(error)}). "
        f"{_held(root)}"
    )


def too_few(cores: str, asked: int, visible: int) -> UserError:
    """The error for more cores than torch.neuron.device_count() shows."""
    first = cores.partition("-")[0].partition(",")[0]
    return UserError(
        f"cores={cores}: asks for {asked} NeuronCores, but torch.neuron shows {visible} "
        "(NEURON_RT_VISIBLE_CORES and the machine decide). Type fewer, for example "
        f"cores={first}; neuron-ls shows what this machine has."
    )


def _held(root: Path) -> str:
    found = holders(root)
    if not found:
        return (
            "Another process may hold them, perhaps another user's or one outside this container: "
            "neuron-ls shows which. Stop it, or take other cores."
        )
    names = "; ".join(f"pid {one.pid} ({one.command}) has {', '.join(one.files)}" for one in found)
    return f"They are held: {names}. Stop it (neuron-ls shows the cores), or take other cores."


def profiler_failed(error: Exception, config: Config) -> str:
    """Why the profiler, or a step under it, broke off."""
    what = f"{type(error).__name__}: {_short(error)}"
    if is_out_of_memory(error):
        if "DEVICE" in config.profiler.modes:
            return (
                f"out of device memory while profiling ({what}). DEVICE mode reserves about 5 GB "
                "of it. Type profiler=runtime, a smaller input, fewer cores, or "
                "profiler.max_events_per_nc=100000."
            )
        return f"out of device memory while profiling ({what}). Type a smaller input."
    return (
        f"the profiler did not start ({what}). child.log has what the runtime said; python -m "
        "src.doctor looks for the usual obstacles."
    )


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error's type or words speak of device memory that ran out."""
    return type(error).__name__ == "OutOfMemoryError" or bool(_OUT_OF_MEMORY.search(str(error)))


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:300]

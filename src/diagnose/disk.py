"""The NEFF cache, and room for profiles."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from .finding import NOT_APPLICABLE, OK, PROBLEM, WARNING, Finding, Machine, Stack, counted, size

# The same as in measure/devices/neuron.py, which the parent cannot import: it imports torch.
CACHE_VARIABLE, DEFAULT_NEFF_CACHE = "TORCH_NEURONX_NEFF_CACHE_DIR", "/tmp/neff_cache"
LONGEST_LOOK_S = 1.0
# Free space that asks for a word. A simulated profile is a few MB; one device capture on Trainium
# may pass 5 GB (neuron_api 2.3).
SIMULATED_BYTES = (0.2e9, 1e9)
NEURON_BYTES = (1e9, 20e9)


def neff_cache(machine: Machine, stack: Stack) -> list[Finding]:
    """Where compiled graphs are kept: there, writable, how large."""
    name = "NEFF cache"
    if not stack.expected:
        return [Finding(name, NOT_APPLICABLE, "no sign of Neuron")]
    shown = str(Path(machine.environ.get(CACHE_VARIABLE) or DEFAULT_NEFF_CACHE).expanduser())
    if "://" in shown:
        return [Finding(name, OK, f"{shown} (not on this machine, not looked at)")]
    folder = machine.path(shown)
    if not folder.exists():
        place = nearest_folder(folder)
        if os.access(place, os.W_OK | os.X_OK):
            return [Finding(name, OK, f"{shown}: made by the first compile")]
        cure = f"export {CACHE_VARIABLE}=$HOME/neff_cache"
        return [Finding(name, PROBLEM, f"{shown} cannot be made: {place} is not writable", cure)]
    cure = f"export {CACHE_VARIABLE}=$HOME/neff_cache    (or sudo chown -R $USER {shown})"
    if not folder.is_dir():
        return [Finding(name, PROBLEM, f"{shown} is not a folder", cure)]
    if not machine.may_use(folder):
        return [Finding(name, PROBLEM, f"{shown}: you may not write there", cure)]
    entries, total, all_seen = _content(folder)
    least = "" if all_seen else "at least "
    return [Finding(name, OK, f"{shown}: {least}{counted(entries, 'NEFF')}, {size(total)}")]


def _content(folder: Path) -> tuple[int, int, bool]:
    """NEFFs, bytes of all files, and whether all of the folder was seen in time."""
    entries = total = 0
    end = time.monotonic() + LONGEST_LOOK_S
    for place, _, files in os.walk(folder):
        for file in files:
            try:
                total += os.lstat(os.path.join(place, file)).st_size
            except OSError:  # a running compile moves its files
                continue
            entries += file.endswith(".neff")
        if time.monotonic() > end:
            return entries, total, False
    return entries, total, True


def nearest_folder(path: Path) -> Path:
    """Return the path itself or its nearest parent that exists."""
    return next(place for place in (path, *path.parents) if place.exists())


def free_space(folder: Path, neuron: bool) -> Finding:
    """Is there room for profiles where run directories are made?"""
    name = "disk"
    place = nearest_folder(folder)
    free = shutil.disk_usage(place).free
    said = f"{size(free)} free at {place}"
    problem, warning = NEURON_BYTES if neuron else SIMULATED_BYTES
    need = "one device capture may pass 5 GB" if neuron else "a simulated profile is a few MB"
    cure = f"du -sh {place}/*    (delete what you can spare, or type tracking.root=<another disk>)"
    if free < problem:
        return Finding(name, PROBLEM, f"{said}; {need}", cure)
    if free < warning:
        return Finding(name, WARNING, f"{said}; {need}", cure)
    return Finding(name, OK, said)

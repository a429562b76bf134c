"""Health checks on files: the profiler's session folders under profile/, and child.log.

Called by health.py. Looks at names and sizes only, never follows a link, never fails on what it
cannot read. File names are published; folder names are not, so folders are found by their files.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from ..rundir import CHILD_LOG, PROFILE, NeffCache
from ..schema import ProfilerConfig
from .check import Check, failed, ok, some, warning

SIMULATED_SUFFIX = ".simulated.json"  # the simulated device never writes a file under a real name
TRACE = "trace.json"
# neuron_api 3.1: which files each mode leaves in a session folder.
MODE_FILES = {
    "RUNTIME": ("ntrace.pb", "trace_info.pb"),
    "CPU_UTIL": ("cpu_util.pb",),
    "HOST_MEMORY": ("host_mem.pb",),
}
DEVICE_FILES = (".neff", ".ntff")  # by ending: their stems hold hashes and core numbers
SESSION_FILES = {TRACE, *(name for names in MODE_FILES.values() for name in names)}
DEFAULT_EVENTS = 1_000_000  # NeuronConfig's default of max_events_per_nc
# The runtime says "N trace events were dropped"; a nonzero N only.
DROPPED = re.compile(rb"(?<![\d,])(0*[1-9][\d,]*) trace events (?:were|was) dropped", re.IGNORECASE)
NOT_STARTED = (
    "The profiler did not start, or nothing ran on the device; child.log has what the runtime "
    "said. device.env.NEURON_RT_INSPECT_ENABLE must not be 1 beside torch.profiler."
)


@dataclass
class Found:
    """The regular files under profile/, by folder, as published name -> size in bytes."""

    folders: dict[str, dict[str, int]] = field(default_factory=dict)
    empty_folders: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    @property
    def sessions(self) -> dict[str, dict[str, int]]:
        """Folders that a profiling session wrote to; NEFFs alone may be a cache."""
        return {
            folder: files
            for folder, files in self.folders.items()
            if any(name in SESSION_FILES or name.endswith(".ntff") for name in files)
        }


def scan(directory: Path) -> Found:
    """List what the run directory's profile/ holds; an absent folder holds nothing."""
    found = Found()
    root = directory / PROFILE

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            found.unreadable.append(_relative(Path(str(error.filename)), root))

    for folder, folders, names in os.walk(root, onerror=note, followlinks=False):
        files = {}
        for name in names:
            try:
                status = os.lstat(os.path.join(folder, name))
            except OSError:
                found.unreadable.append(_relative(Path(folder, name), root))
                continue
            if stat.S_ISREG(status.st_mode):
                files[name.removesuffix(SIMULATED_SUFFIX)] = status.st_size
        if files:
            found.folders[_relative(Path(folder), root)] = files
        elif not folders and Path(folder) != root:
            found.empty_folders.append(_relative(Path(folder), root))
    return found


def session_directory(found: Found, windows: int) -> Check:
    """Each window left a session folder."""
    name, count = "session_directory", len(found.sessions)
    if count >= windows:
        more = f" for {_counted(windows, 'window')}" if count > windows else ""
        return ok(name, f"{_counted(count, 'session folder')}{more}")
    details = ""
    if found.empty_folders:
        details += f" Empty: {some(sorted(found.empty_folders))}."
    if found.unreadable:
        details += f" Not readable: {some(sorted(found.unreadable))}."
    return failed(
        name,
        f"{PROFILE}/ has {_counted(count, 'session folder')} for {_counted(windows, 'window')}."
        f"{details} {NOT_STARTED}",
    )


def mode_files(found: Found, profiler: ProfilerConfig, cache: NeffCache | None = None) -> Check:
    """Each mode that was asked for left its files, and export_trace its trace.json.

    A warm `cache` explains why a session has no .neff: the graph was not loaded anew.
    """
    name, sessions = "mode_files", found.sessions
    if not sessions:
        return failed(name, f"No files of {_modes(profiler)} under {PROFILE}/. {NOT_STARTED}")
    problems = [_mode_problem(mode, sessions) for mode in profiler.modes if mode != "DEVICE"]
    explained = ""
    if "DEVICE" in profiler.modes:
        explained = _warm_cache(found, cache)
        problems.append("" if explained else _device_problem(found))
    traces = sum(TRACE in files for files in sessions.values())
    without_trace = _lacking(sessions, TRACE)
    if without_trace and traces < profiler.repeats:  # a window may have several sessions, one trace
        problems.append(
            f"{TRACE} is missing in {without_trace}: export_trace wrote none. child.log says why; "
            "a full disk is the usual reason."
        )
    if any(problems):
        return failed(name, " ".join(problem for problem in problems if problem))
    if explained:
        return warning(name, explained)
    return ok(name, f"{_modes(profiler)} files present")


def _mode_problem(mode: str, sessions: dict[str, dict[str, int]]) -> str:
    missing = {file: _lacking(sessions, file) for file in MODE_FILES.get(mode, ())}
    parts = [f"{file} is missing in {where}" for file, where in missing.items() if where]
    return f"{mode} was asked for, but {' and '.join(parts)}. {NOT_STARTED}" if parts else ""


def _warm_cache(found: Found, cache: NeffCache | None) -> str:
    neff, ntff = _device_files(found)
    if neff or not ntff or cache is None or cache.state != "warm":
        return ""
    return (
        "There are .ntff files but no .neff: every graph came from the NEFF cache "
        f"({cache.directory}, {_counted(cache.size, 'NEFF')}) and the profiler copied none. Device "
        "time is not affected. To see instructions, copy the .neff from there, or compile anew: "
        "device.env.TORCH_NEURONX_NEFF_CACHE_DIR=<an empty folder>."
    )


def _device_files(found: Found) -> tuple[bool, bool]:
    names = [name for files in found.folders.values() for name in files]
    neff, ntff = (any(name.endswith(ending) for name in names) for ending in DEVICE_FILES)
    return neff, ntff


def _device_problem(found: Found) -> str:
    neff, ntff = _device_files(found)
    if neff and ntff:
        return ""
    if ntff:
        return (
            "DEVICE was asked for and there are .ntff files but no .neff: the compiled graph came "
            "from a cache. Type profiler.neff_cache_dir=<folder of the NEFF cache> "
            "(TORCH_NEURONX_NEFF_CACHE_DIR names it)."
        )
    return (
        f"DEVICE was asked for, but there is no .ntff{'' if neff else ' and no .neff'}. The device "
        "profiler did not start: it reserves about 5 GB of device memory. Type profiler=runtime, "
        "a smaller input or fewer cores; child.log has what the runtime said."
    )


def empty_files(found: Found) -> Check:
    """No file of the profile is empty."""
    name = "empty_files"
    empty = sorted(
        f"{folder}/{file}" if folder != "." else file
        for folder, files in found.folders.items()
        for file, size in files.items()
        if size == 0
    )
    if not empty:
        return ok(name, "no empty file")
    cures = []
    if any(file.endswith(".ntff") for file in empty):
        cures.append(
            "An empty .ntff means that nothing ran on that core in the window, or that more cores "
            "were opened than used: name only the cores that work, cores=<list>, or type "
            "device.env.NEURON_RT_NUM_CORES=<number used>."
        )
    if any(not file.endswith(".ntff") for file in empty):
        cures.append(
            "The profiler was cut short while it wrote: look at child.log and at the free space."
        )
    return failed(name, f"{_counted(len(empty), 'empty file')}: {some(empty)}. {' '.join(cures)}")


def dropped_events(directory: Path, profiler: ProfilerConfig) -> Check:
    """The runtime dropped no trace events, as far as child.log says."""
    name = "dropped_events"
    log = directory / CHILD_LOG
    try:
        if not stat.S_ISREG(os.lstat(log).st_mode):  # a pipe would block for ever
            raise FileNotFoundError
        with log.open("rb") as lines:
            counts = [match[1] for line in lines if (match := DROPPED.search(line))]
    except OSError:
        return warning(
            name, f"There is no readable {CHILD_LOG}, so dropped trace events cannot be ruled out."
        )
    if not counts:
        return ok(name, "nothing dropped")
    events = sum(int(count.replace(b",", b"")) for count in counts)
    larger = 2 * (profiler.max_events_per_nc or DEFAULT_EVENTS)
    return failed(
        name,
        f"{events:,} trace events were dropped: the trace buffer was full, so device time is "
        f"missing. Type profiler.max_events_per_nc={larger} or fewer profiler.steps.",
    )


def _lacking(sessions: dict[str, dict[str, int]], file: str) -> str:
    without = sorted(folder for folder, files in sessions.items() if file not in files)
    if not without:
        return ""
    return f"{len(without)} of {_counted(len(sessions), 'session folder')} ({some(without, 2)})"


def _modes(profiler: ProfilerConfig) -> str:
    return "+".join(profiler.modes)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _relative(path: Path, root: Path) -> str:
    try:
        return str(path.relative_to(root))
    except ValueError:
        return str(path)

"""One session of a profile that another script captured: its files, its device, its windows.

Called by foreign.py. File names are published, folder names are not, so folders are found by their
files. Reads, never writes.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .. import rundir
from ..analyze import spans, trace
from ..errors import UserError

# trace.json, and what torch's tensorboard handler and the Neuron documentation call it
TRACE = re.compile(
    r"(.*\.)?trace\.json(\.gz)?|neuron_framework_trace_rank_\d+\.json", re.IGNORECASE
)
STREAMS = {
    "ntrace.pb": "RUNTIME",
    "trace_info.pb": "RUNTIME",
    "cpu_util.pb": "CPU_UTIL",
    "host_mem.pb": "HOST_MEMORY",
}
SIMULATED = ".simulated.json"
_PROCESS = re.compile(r"_pid_(\d+)")
_NUMBER = re.compile(r"(\d+)")
_MARK = re.compile(rb'"simulated"\s*:\s*true')


@dataclass(frozen=True)
class Session:
    """One folder that a profiling session wrote to."""

    folder: str
    """Relative to the profile; `.` for the profile itself."""
    device: str | None
    """simulated, neuron, or None where no file tells."""
    windows: tuple[rundir.Window, ...]
    source: str | None
    has_table: bool
    environment: Mapping[str, Any] = field(default_factory=dict)
    modes: frozenset[str] = frozenset()
    tables: rundir.Operators | None = None

    @property
    def process(self) -> str | None:
        """The process that wrote it, as its folder or its stamp says."""
        match = _PROCESS.search(self.folder)
        pid = self.environment.get("pid")
        return match[1] if match else None if pid is None else str(pid)

    @property
    def rank(self) -> str | None:
        """Which of several processes of one job it was; None where nothing says so."""
        rank = self.environment.get("rank")
        return None if rank is None else str(rank)


def sessions_in(directory: Path) -> list[Session]:
    """Return the sessions of a directory, or of one trace file, in the order of their names."""
    found = (_session(directory, folder, names) for folder, names in _folders(directory))
    return [session for session in found if session is not None]


def _folders(directory: Path) -> list[tuple[Path, list[str]]]:
    if directory.is_file():
        return [(directory.parent, [directory.name])]
    found = [(Path(folder), sorted(names)) for folder, _, names in os.walk(directory)]
    return sorted(found, key=lambda one: _in_order(str(one[0])))


def _in_order(name: str) -> list[tuple[int, int, str]]:
    """Numbers by value: session folders are named by their time."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in _NUMBER.split(name)]


def _session(root: Path, folder: Path, names: list[str]) -> Session | None:
    published = {name.removesuffix(SIMULATED) for name in names}
    modes = {mode for name, mode in STREAMS.items() if name in published}
    if any(name.endswith(".ntff") for name in published):
        modes.add("DEVICE")
    traces = [name for name in names if TRACE.fullmatch(name)]
    if not (modes or traces or rundir.OPERATORS in names):
        return None
    base = root.parent if root.is_file() else root
    relative = folder.relative_to(base).as_posix()
    stamp = rundir.read_json(folder / rundir.ENVIRONMENT) if rundir.ENVIRONMENT in names else None
    environment: Mapping[str, Any] = stamp if isinstance(stamp, Mapping) else {}
    table = _table(folder) if rundir.OPERATORS in names else None
    device = _device(folder, names, traces, environment, table)
    if table is not None:
        windows = [replace(window, session_dir=relative) for window in table.windows]
    else:
        windows = [_from_trace(folder / name, relative) for name in traces]
        if not traces:  # of the runtime's own files, only neuron-explorer can say more
            windows = [rundir.Window(1, (), None, session_dir=relative)]
    return Session(
        folder=relative,
        device=device,
        windows=tuple(windows),
        source=table.device_time_source if table else None,
        has_table=table is not None,
        environment=environment,
        modes=frozenset(modes),
        tables=table,
    )


def _table(folder: Path) -> rundir.Operators | None:
    try:
        return rundir.read_operators(folder)
    except (KeyError, TypeError) as error:
        raise UserError(
            f"{folder / rundir.OPERATORS}: not a table of operators ({type(error).__name__}: "
            f"{error}). docs/examples/neuron_handler.py writes it."
        ) from None


def _from_trace(path: Path, folder: str) -> rundir.Window:
    rows = trace.read_operators(path)
    return rundir.Window(
        steps=len(trace.read_steps(path)) or 1,
        operators=tuple(rows),
        self_cpu_total_us=sum(row.self_cpu_us for row in rows),
        session_dir=folder,
    )


def _device(
    folder: Path,
    names: Iterable[str],
    traces: Iterable[str],
    environment: Mapping[str, Any],
    table: rundir.Operators | None,
) -> str | None:
    """What the session ran on; any sign of the simulator goes before every other sign."""
    named = [environment.get("device"), table.device_time_source if table else None]
    if (
        "simulated" in named
        or any(SIMULATED in name for name in names)
        or any(_says_simulated(folder / name) for name in traces)
    ):
        return "simulated"
    real = any(name in STREAMS or name.endswith((".ntff", ".neff")) for name in names)
    return "neuron" if real or "neuron" in named else None


def _says_simulated(path: Path) -> bool:
    try:
        if path.suffix != ".gz":
            with (
                path.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text,
            ):
                if not _MARK.search(text):
                    return False
        return spans.read(path).simulated
    except (OSError, ValueError):
        return False  # an empty file
    except UserError:
        return False

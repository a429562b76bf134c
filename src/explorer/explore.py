"""A finished profile through neuron-explorer, within a time limit; the result is explorer.json.

Called by run.py after the child has ended, when the cores are free, and by the door explore.py.
Whatever goes wrong becomes a warning in the result: the run is never lost for it.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from .. import rundir
from ..analyze import engines, explored, neff_pairs
from ..analyze.explored import Explored, Session
from . import binary, sessions
from .binary import ExplorerFailed

log = logging.getLogger(__name__)

OFF, SYSTEM, FULL = "off", "system", "full"
NOT_FOUND = (
    f"{binary.NAME} is neither in /{Path(binary.USUAL).parent} nor on the PATH: install "
    "aws-neuronx-tools, or type python -m src.explore <run> on a machine that has it"
)
SIMULATED = "the profile is simulated: there is nothing in it for neuron-explorer to read"
_RUNTIME = "ntrace.pb"


def explore(
    profile: Path,
    mode: str,
    timeout_s: float,
    *,
    program: Path | None = None,
    on_session: Callable[[str], None] = lambda words: None,
) -> Explored:
    """Let neuron-explorer read each session folder below `profile`; never raises for its faults."""
    started = time.monotonic()
    found, done = _Findings(), []
    version = None
    folders = session_folders(profile)
    program = program or binary.find()
    if neff_pairs.is_simulated(profile):
        found.warn(SIMULATED)
    elif not folders:
        found.warn(f"there is no {_RUNTIME} and no .ntff in the profile")
    elif program is None:
        found.warn(NOT_FOUND)
    else:
        with tempfile.TemporaryDirectory(prefix="explorer-", ignore_cleanup_errors=True) as scratch:
            version = binary.version(program, Path(scratch))
            reader = _Reader(program, Path(scratch), started + timeout_s, found)
            for number, folder in enumerate(folders, start=1):
                on_session(f"neuron-explorer: session {number} of {len(folders)}")
                done.append(reader.session(profile, folder, mode))
    rows = found.engine_rows
    measured = engines.measured(rows) if rows else None
    for said in measured.findings if measured else ():
        found.warn(said)
    return Explored(
        mode=mode,
        version=version,
        seconds=time.monotonic() - started,
        sessions=tuple(done),
        engines=measured.metrics if measured else {},
        device_profiles=measured.profiles if measured else 0,
        warnings=tuple(found.warnings),
    )


def after_run(
    directory: Path, mode: str, timeout_s: float, on_session: Callable[[str], None]
) -> KeyboardInterrupt | None:
    """Explore a run directory as its configuration asks, and write explorer.json.

    Returns the Ctrl-C that came meanwhile: the measurement is whole, so the run is tracked first.
    """
    if mode == OFF:
        return None
    stopped = None
    try:
        found = explore(directory / rundir.PROFILE, mode, timeout_s, on_session=on_session)
    except KeyboardInterrupt as stop:
        stopped, found = stop, Explored(mode, None, 0.0, warnings=("stopped by the user",))
    except Exception as error:
        said = f"unexpected {type(error).__name__}: {error}"
        found = Explored(mode, None, 0.0, warnings=(said,))
    for words in found.warnings:
        log.warning("%s", words)
    try:
        explored.write(directory, found)
    except OSError as error:  # a full disk
        log.warning("%s could not be written (%s)", rundir.EXPLORER, error.strerror or error)
    return stopped


def session_folders(profile: Path) -> list[Path]:
    """Return the folders that neuron-explorer can read, in the order of their names."""
    return sorted(
        Path(folder)
        for folder, _, names in os.walk(profile)
        if _RUNTIME in names or any(name.endswith(".ntff") for name in names)
    )


class _Findings:
    """Warnings, each once, and the rows of device profiles."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.engine_rows: list[dict[str, object]] = []

    def warn(self, words: str) -> None:
        if words not in self.warnings:
            self.warnings.append(words)


class _Reader:
    """Reads sessions until the time is over; a part that failed once is not tried again."""

    def __init__(self, program: Path, scratch: Path, end: float, found: _Findings) -> None:
        self._program, self._scratch, self._end, self._found = program, scratch, end, found
        self._failed: set[str] = set()
        self._count = 0

    def session(self, profile: Path, folder: Path, mode: str) -> Session:
        name, time_, source = folder.relative_to(profile).as_posix(), None, None
        if (folder / _RUNTIME).is_file() and SYSTEM not in self._failed:
            try:
                time_, source = sessions.device_time(
                    self._program, folder, self._folder(), self._left_s
                )
            except ExplorerFailed as error:
                self._fail(SYSTEM, "device time", name, error)
        if mode == FULL and FULL not in self._failed:
            try:
                rows = sessions.engine_rows(self._program, folder, self._folder(), self._left_s)
                self._found.engine_rows += [dict(row) for row in rows]
            except ExplorerFailed as error:
                self._fail(FULL, "engine metrics", name, error)
        return Session(name, time_, source)

    @property
    def _left_s(self) -> float:
        return self._end - time.monotonic()

    def _folder(self) -> Path:
        self._count += 1
        folder = self._scratch / str(self._count)
        folder.mkdir()
        return folder

    def _fail(self, part: str, what: str, name: str, error: ExplorerFailed) -> None:
        self._failed.add(part)
        self._found.warn(f"no {what} from neuron-explorer: {error} (session {name})")

"""The neuron-explorer program: where it is, and one call of it that is sure to end.

Called by explore.py in this room. It may hang, serve a web page for ever or leave processes behind,
so each call has a process group of its own, which is killed as a whole.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

USUAL = "opt/aws/neuron/bin/neuron-explorer"
NAME = "neuron-explorer"
VERSION_S = 20.0
POLL_S = 0.05
GRACE_S = 2.0  # between SIGTERM and SIGKILL
LAST_WORDS = 300


class ExplorerFailed(Exception):
    """One call did not give a result; the message is for a warning."""


@dataclass(frozen=True)
class Said:
    """What one call printed."""

    stdout: str
    stderr: str


def find(root: Path = Path("/"), environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the program: the package's own place, else the PATH; None when it is nowhere."""
    usual = root / USUAL
    if usual.is_file() and os.access(usual, os.X_OK):
        return usual
    path = (os.environ if environ is None else environ).get("PATH")
    found = shutil.which(NAME, path=path)
    return Path(found) if found else None


def version(program: Path, folder: Path) -> str | None:
    """Return what --version says, in one line; None when it says nothing."""
    try:
        said = call(program, ["--version"], folder, VERSION_S)
    except ExplorerFailed:
        return None
    lines = [line.strip() for line in (said.stdout + "\n" + said.stderr).splitlines()]
    numbered = [line for line in lines if re.search(r"\d+\.\d+", line)]
    return next((line for line in numbered or lines if line), None)


def call(program: Path, arguments: Sequence[str], folder: Path, timeout_s: float) -> Said:
    """Run the program in `folder` and return what it printed.

    Raises ExplorerFailed for an exit code other than 0, or when the time is over. Whatever it
    started is gone when this returns, also after Ctrl-C.
    """
    what = f"{NAME} {' '.join(arguments[:1])}"
    if timeout_s <= 0:
        raise ExplorerFailed(f"no time was left for {what}: raise explorer_timeout_s")
    out, err = folder / "stdout.txt", folder / "stderr.txt"
    with out.open("wb") as stdout, err.open("wb") as stderr:  # files: a pipe may be held open
        try:
            process = subprocess.Popen(
                [str(program), *arguments],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            raise ExplorerFailed(f"{program} does not start ({error.strerror or error})") from None
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise ExplorerFailed(
                f"{what} did not end within {timeout_s:.0f} s and was killed: raise "
                "explorer_timeout_s, or shorten the window"
            ) from None
        finally:
            _end_group(process)
    said = Said(_read(out), _read(err))
    if code != 0:
        words = (said.stderr.strip() or said.stdout.strip() or "it said nothing").splitlines()[-1]
        ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        raise ExplorerFailed(f"{what} {ended}: {words[-LAST_WORDS:]}")
    return said


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the whole group: the program when it still runs, and what it left behind."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            break
        until = time.monotonic() + GRACE_S
        while time.monotonic() < until and _group_lives(process):
            time.sleep(POLL_S)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)


def _group_lives(process: subprocess.Popen[bytes]) -> bool:
    process.poll()  # a zombie of ours would count as alive
    try:
        os.killpg(process.pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")

"""Words for the end of a child that did not end well: exit code, signal, memory, last output.

Called by child.py. Reads child.log and the cgroup's counter of out-of-memory kills.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path

from . import redact

MEMORY_EVENTS = (
    Path("/sys/fs/cgroup/memory.events"),
    Path("/sys/fs/cgroup/memory/memory.oom_control"),
)
TAIL_LINES = 12
TAIL_BYTES = 16_384
LONGEST_LINE = 300
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def oom_kills() -> int | None:
    """Count the processes of this cgroup that were killed for want of memory; None: not known."""
    for path in MEMORY_EVENTS:
        try:
            match = re.search(r"^oom_kill (\d+)$", path.read_text(), re.MULTILINE)
        except OSError:
            continue
        if match:
            return int(match[1])
    return None


def ending(returncode: int, oom_kills_before: int | None) -> str:
    """Say how a process ended, from Popen's return code."""
    if returncode == -signal.SIGKILL:
        now = oom_kills()
        if now is not None and oom_kills_before is not None and now > oom_kills_before:
            return "was killed by SIGKILL: out of memory. Try a smaller input.shape"
        return (
            "was killed by SIGKILL (by someone, or by the system when memory ran out: try a "
            "smaller input.shape)"
        )
    if returncode < 0:
        return f"was killed by {signal_name(-returncode)}"
    if returncode > 128 and signal_name(returncode - 128).startswith("SIG"):
        return f"ended with exit code {returncode} (128 + {signal_name(returncode - 128)})"
    if returncode == 0:
        return "ended with exit code 0 without saying done"
    return f"ended with exit code {returncode}"


def signal_name(number: int) -> str:
    """Return for example SIGSEGV."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def message(what: str, last_stage: str | None, log: Path) -> str:
    """One message: what happened, the last stage, and the last lines of the log."""
    where = f"after the stage '{last_stage}'" if last_stage else "before it was ready"
    lines = tail(log)
    if not lines:
        return f"{what}, {where}. It wrote nothing to child.log."
    return f"{what}, {where}. Last lines of child.log:\n" + "\n".join(f"  {x}" for x in lines)


def tail(log: Path, lines: int = TAIL_LINES) -> list[str]:
    """Return the last lines of a log that may be huge, without control characters and secrets."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            text = file.read(TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    clean = _ESCAPES.sub("", redact.text(text.replace("\r", "\n")))
    return [line[:LONGEST_LINE] for line in clean.splitlines() if line.strip()][-lines:]

"""The exceptions of this project and the exit code that each one means.

Raised everywhere, turned into one line on stderr and an exit code at the doors only.

    ToolError
    ├── UserError         2   what was typed cannot be done; nothing was started
    ├── MeasureError      1   the workload or the device failed; the run is FAILED
    └── StoreError        1   the tracking store refused; the run directory is kept
    KeyboardInterrupt   130   Ctrl-C; the run is KILLED
    └── Interrupted  129/143  SIGHUP or SIGTERM; the same
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ToolError(Exception):
    """Anything this project reports in one line instead of a traceback."""

    exit_code = 1


class UserError(ToolError):
    """A slip in what was typed: says what was typed, what is allowed, what to type instead."""

    exit_code = 2


class MeasureError(ToolError):
    """The profiled workload could not be measured; the run ends as FAILED with this reason."""


class StoreError(ToolError):
    """The tracking store could not take the run; the message says where the run directory is."""


class Interrupted(KeyboardInterrupt):
    """The system asked the run to end; passes where Ctrl-C passes, also through Hydra."""

    def __init__(self, signal_number: int) -> None:
        self.exit_code = 128 + signal_number
        super().__init__(f"stopped by signal {signal_number}")


def nearest(typed: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed word closest to what was typed, in any case; None when none is close."""
    words = {word.lower(): word for word in allowed}
    close = difflib.get_close_matches(typed.lower(), words, n=1, cutoff=0.5)
    return words[close[0]] if close else None

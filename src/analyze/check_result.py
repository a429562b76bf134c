"""Whether the step's result was right, as the child found it. Called by health.py."""

from __future__ import annotations

from pathlib import Path

from .. import rundir
from .check import Check, ok, warning

NAME = "numerics"


def numerics(directory: Path) -> list[Check]:
    """The check of the result; none when nobody asked for one.

    A wrong result is a warning here, because numerics=fail has ended the run before.
    """
    found = rundir.read_json(directory / rundir.NUMERICS)
    if not isinstance(found, dict) or "passed" not in found:
        return []
    message = str(found.get("message", ""))
    if found["passed"] is False:
        said = f"the result is not what the reference computes ({message})"
        return [warning(NAME, f"{said}. A variant that computes something else is no faster one.")]
    return [ok(NAME, message)]

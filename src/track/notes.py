"""run.json: what only the parent knows of a run directory, for tracking it later.

`process` that measures it, what the child said when `ready`, how it `ended` (measured, failed or
killed). Written by child.py and outcome.py, read by intake.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .. import rundir

NOTES = "run.json"


def read(directory: Path) -> dict[str, Any]:
    """Return the notes; empty for a directory without any."""
    data = rundir.read_json(directory / NOTES)
    return data if isinstance(data, dict) else {}


def update(directory: Path, **facts: Any) -> None:
    """Add facts to the notes."""
    rundir.write_json(directory / NOTES, {**read(directory), **facts})

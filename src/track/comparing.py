"""Tags that let runs be compared without their artifacts. Called by runs.py when a run is closed.

Reads the run directory; a tag that would be too long is thinned or left out, never cut in half.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .. import rundir
from . import facts

if TYPE_CHECKING:
    from ..analyze.operators import Summary

WINDOWS = "window_self_neuron_us"
VARIABLES = "timing_variables"
# Say where things are or how much is logged, or are said by another tag; they change no time.
NOT_TIMING = ("_DIR", "_PATH", "_FILE", "_ROOT", "_OUTPUT", "_CORES", "_COMM_ID", "_PREFIX")
NOT_TIMING_WORDS = ("LOG", "CACHE_URL", "PROFILE_", "INSPECT_OUTPUT")


def tags(directory: Path, summary: Summary | None) -> dict[str, str]:
    """Return what a comparison needs beside parameters and metrics; what is not known is absent."""
    found = {
        WINDOWS: _windows(summary.window_self_neuron_us if summary else ()),
        VARIABLES: _variables(directory),
    }
    return {name: value for name, value in found.items() if value}


def _windows(values_us: Sequence[float]) -> str | None:
    """The windows' Self NEURON as a JSON list; of very many every second, third, ... one."""
    for step in range(1, len(values_us) + 1):
        text = json.dumps([float(f"{value:.8g}") for value in values_us[::step]])
        if len(text) <= facts.LONGEST_TAG:
            return text
    return None


def _variables(directory: Path) -> str | None:
    environment = rundir.read_json(directory / rundir.ENVIRONMENT)
    variables = environment.get("variables") if isinstance(environment, dict) else None
    if not isinstance(variables, dict):
        return None
    timing = {name: str(value) for name, value in variables.items() if _changes_time(name)}
    text = json.dumps(timing, sort_keys=True)
    if len(text) > facts.LONGEST_TAG:  # two runs can still be told apart
        timing = {"all": hashlib.sha256(text.encode()).hexdigest()}
        text = json.dumps(timing)
    return text


def _changes_time(name: str) -> bool:
    return not name.endswith(NOT_TIMING) and not any(word in name for word in NOT_TIMING_WORDS)

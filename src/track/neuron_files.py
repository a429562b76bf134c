"""The Neuron files of a run, told by their bytes: neff_pairs.json, tags, and parts of the report.

Called by outcome.py for every run, with or without Neuron software on this machine. What fails in
here is a warning in the log.
"""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

from .. import rundir
from ..analyze import explored, explorer_howto, neff_pairs

log = logging.getLogger(__name__)
SHOWN_DIGITS = 16  # of each hash in the tag; neff_pairs.json has them whole
MOST_HASHES = 250  # an eager run may have more NEFFs than a tag can name


def examine(
    directory: Path, operators: rundir.Operators | None
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Write neff_pairs.json where there is something to list; return tags and report sections."""
    tags: dict[str, str] = {}
    sections: list[str | None] = []
    try:
        found = explored.read(directory)
        if found is not None:
            tags |= {"explorer": found.mode, "explorer_version": found.version or ""}
            tags["explorer_warnings"] = "; ".join(found.warnings)
            if operators is not None:
                sections.append(explored.section(operators, found))
        profile = directory / rundir.PROFILE
        listed = neff_pairs.listing(profile)
        if listed["files"]:
            rundir.write_json(directory / rundir.NEFF_PAIRS, listed)
        tags["neff_sha256"] = _joined(neff_pairs.neff_hashes(listed))
        sections.append(explorer_howto.section(listed, _system_folders(profile)))
    except Exception as error:  # not worth a run
        log.warning("NEFFs could not be listed (%s: %s)", type(error).__name__, error)
    return {k: v for k, v in tags.items() if v}, tuple(one for one in sections if one)


def _joined(hashes: list[str]) -> str:
    """The sorted hashes as one tag; of very many the first, and one hash over all of them."""
    said = [digest[:SHOWN_DIGITS] for digest in hashes]
    if len(said) <= MOST_HASHES:
        return ",".join(said)
    whole = hashlib.sha256("".join(hashes).encode()).hexdigest()
    return f"{','.join(said[:MOST_HASHES])} ({len(said)} NEFFs, all of them: {whole})"


def _system_folders(profile: Path) -> list[str]:
    return sorted(
        Path(folder).relative_to(profile).as_posix()
        for folder, _, names in os.walk(profile)
        if "ntrace.pb" in names
    )

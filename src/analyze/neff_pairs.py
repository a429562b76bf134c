"""Compiled graphs and device traces of a profile: which .neff belongs to which .ntff.

Called by track/outcome.py for every run, and by explorer/sessions.py. Needs no Neuron software;
hashes are of the files' bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .. import rundir

SIMULATED = ".simulated.json"
# neff_<hash or id>_vnc_<n>.neff, neff_<hash>.neff, graph_<hash>.neff, <stem>.neff
_NEFF = re.compile(r"(?:neff_|graph_)?(?P<key>.+?)(?:_vnc_(?P<core>\d+))?\.neff")
# <hash>_instid_<i>_vnc_<n>.ntff, <id>_vnc_<n>.ntff, <stem>_exec_<N>.ntff: one graph
_MODEL = re.compile(r"(?P<key>.+?)(?:_instid_\d+)?(?:_vnc_\d+)?(?:_exec_\d+)?\.ntff")
# profile_nc_<n>_session_<k>.ntff: all graphs that ran on a core in a session
_SESSION = re.compile(r"profile_nc_(?P<core>\d+)_session_\d+\.ntff")
BY_NAME, ONLY_ONE, ONLY_IN_FOLDER, SAME_CORE, SAME_FOLDER = (
    "by name",
    "the only NEFF of its core",
    "the only NEFF of its folder",
    "one of several NEFFs of its core",
    "one of several NEFFs of its folder",
)


@dataclass(frozen=True)
class Pair:
    """One NEFF and the NTFFs that can be opened with it; paths relative to where was looked."""

    neff: str
    ntffs: tuple[str, ...]
    how: str


def is_simulated(profile: Path) -> bool:
    """Whether any file below is the simulated device's."""
    return any(SIMULATED in name for _, _, names in os.walk(profile) for name in names)


def pairs_of(folder: Path) -> list[Pair]:
    """Match the NEFFs and NTFFs of one folder; an empty NTFF belongs to nothing."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    neffs = [name for name in names if name.removesuffix(SIMULATED).endswith(".neff")]
    ntffs = [
        name
        for name in names
        if name.removesuffix(SIMULATED).endswith(".ntff") and (folder / name).stat().st_size
    ]
    return _matched(neffs, ntffs)


def listing(profile: Path) -> dict[str, Any]:
    """Return what neff_pairs.json holds: files with size and sha256, pairs, and what has none."""
    pairs: list[Pair] = []
    files: list[str] = []
    for folder, _, names in os.walk(profile):
        here = Path(folder)
        found = [name for name in sorted(names) if _is_device_file(name)]
        relative = here.relative_to(profile)
        files += [(relative / name).as_posix() for name in found]
        pairs += [
            Pair(
                (relative / pair.neff).as_posix(),
                tuple((relative / name).as_posix() for name in pair.ntffs),
                pair.how,
            )
            for pair in (pairs_of(here) if found else [])
        ]
    paired = {pair.neff for pair in pairs} | {ntff for pair in pairs for ntff in pair.ntffs}
    return {
        "format": rundir.FORMAT,
        "device": "simulated" if is_simulated(profile) else "neuron",
        "files": {
            name: {
                "size_bytes": (profile / name).stat().st_size,
                "sha256": rundir.sha256_of(profile / name),
            }
            for name in sorted(files)
        },
        "pairs": [asdict(pair) for pair in sorted(pairs, key=lambda pair: pair.neff)],
        "without_partner": sorted(set(files) - paired),
    }


def neff_hashes(listed: dict[str, Any]) -> list[str]:
    """Return the different sha256 of a listing's NEFFs, sorted; none for simulated ones."""
    if listed.get("device") == "simulated":
        return []
    return sorted({f["sha256"] for name, f in listed["files"].items() if name.endswith(".neff")})


def _is_device_file(name: str) -> bool:
    return name.removesuffix(SIMULATED).endswith((".neff", ".ntff"))


def _matched(neffs: Sequence[str], ntffs: Iterable[str]) -> list[Pair]:
    parts = {name: _NEFF.fullmatch(name.removesuffix(SIMULATED)) for name in neffs}
    keys = {name: match["key"] for name, match in parts.items() if match}
    cores = {name: match["core"] for name, match in parts.items() if match}
    found: dict[tuple[str, str], list[str]] = {}
    for ntff in ntffs:
        published = ntff.removesuffix(SIMULATED)
        session = _SESSION.fullmatch(published)
        if session:
            own = [name for name in neffs if cores.get(name) == session["core"]]
            if own:
                how = ONLY_ONE if len(own) == 1 else SAME_CORE
            else:
                how = ONLY_IN_FOLDER if len(neffs) == 1 else SAME_FOLDER
            own = own or list(neffs)
        else:
            model = _MODEL.fullmatch(published)
            stem = published.removesuffix(".ntff")
            wanted = {stem} | ({model["key"]} if model else set())
            own, how = [name for name in neffs if keys.get(name) in wanted], BY_NAME
        for neff in own:
            found.setdefault((neff, how), []).append(ntff)
    return [Pair(neff, tuple(sorted(names)), how) for (neff, how), names in found.items()]

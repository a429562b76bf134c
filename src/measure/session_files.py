"""The files of profiling sessions: which folder a window filled, and which NEFFs are not its own.

Called by capture.py. Folder names are not published, so sessions are found by their new files.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
from collections import Counter
from pathlib import Path

from ..rundir import sha256_of

# neff_<hash or id>_vnc_<n>.neff, neff_<hash>.neff, graph_<hash>.neff
_NEFF = re.compile(r"(?:neff_|graph_)?(?P<key>.+?)(?:_vnc_\d+)?\.neff")
_NTFF = re.compile(r"(?P<key>.+?)(?:_instid_\d+)?_vnc_\d+(?:_exec_\d+)?\.ntff")  # model mode
_SHORTEST_KEY = 8  # a small number, as an id is, is found in any file by chance
_EXECUTED = ("ntrace.pb",)
_LOADED = ("trace_info.pb",)
_LARGEST_READ = 256 * 1024**2

Stamps = dict[Path, tuple[int, int]]


def stamps(profile_dir: Path) -> Stamps:
    """Each regular file below, with its time and size; a file written again has other ones."""
    found = {}
    for folder, _, names in os.walk(profile_dir):
        for name in names:
            path = Path(folder, name)
            try:
                status = path.lstat()
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                found[path] = (status.st_mtime_ns, status.st_size)
    return found


def filled(before: Stamps, after: Stamps) -> list[Path]:
    """The folders with new files, the one with most of them first; several when a window made
    several sessions."""
    new = Counter(path.parent for path, stamp in after.items() if before.get(path) != stamp)
    return [folder for folder, _ in sorted(new.items(), key=lambda item: (-item[1], item[0]))]


def leave_out_unexecuted(profile_dir: Path, cache_dir: str | None) -> dict[str, str]:
    """Remove copies of NEFFs that did not run in their session; returns path -> reason.

    A session folder may get a copy of the whole cache. A NEFF goes only when the session's own
    files name others and not this one, and when the cache still has the same bytes.
    """
    left_out = {}
    in_cache = _by_size(cache_dir)
    for folder in sorted({path.parent for path in profile_dir.rglob("*.neff") if path.is_file()}):
        neffs = {path: _key(path) for path in sorted(folder.glob("*.neff"))}
        named = _named(folder, {key for key in neffs.values() if key})
        if not named:
            continue  # nothing tells which ran: all of them stay
        for path, key in neffs.items():
            if key is None or key in named:
                continue
            twin = _twin(path, in_cache)
            if twin is not None:
                path.unlink()
                left_out[str(path.relative_to(profile_dir.parent))] = (
                    f"did not run in this window: the session does not name it. Kept in {twin}"
                )
    return left_out


def _key(path: Path) -> str | None:
    match = _NEFF.fullmatch(path.name)
    key = match["key"] if match else None
    return key if key and len(key) >= _SHORTEST_KEY else None


def _named(folder: Path, keys: set[str]) -> set[str]:
    """The keys that the session names: in its traces of executions, else in its model list."""
    pairs = {
        match["key"] for path in folder.glob("*.ntff") if (match := _NTFF.fullmatch(path.name))
    }
    traces = [folder / name for name in _EXECUTED] + sorted(folder.glob("*.ntff"))
    executed = (pairs & keys) | {key for path in traces for key in _mentioned(path, keys)}
    if executed:
        return executed
    return {key for name in _LOADED for key in _mentioned(folder / name, keys)}


def _mentioned(path: Path, keys: set[str]) -> set[str]:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not 0 < size <= _LARGEST_READ:
                return set()
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return {key for key in keys if content.find(key.encode()) >= 0}
    except OSError:
        return set()


def _by_size(cache_dir: str | None) -> dict[int, list[Path]]:
    found: dict[int, list[Path]] = {}
    if cache_dir is not None:
        for path in Path(cache_dir).rglob("*"):
            if path.is_file():
                found.setdefault(path.stat().st_size, []).append(path)
    return found


def _twin(path: Path, in_cache: dict[int, list[Path]]) -> Path | None:
    same_size = in_cache.get(path.stat().st_size, [])
    if not same_size:
        return None
    digest = sha256_of(path)
    return next((other for other in same_size if sha256_of(other) == digest), None)

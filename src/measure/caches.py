"""The NEFF cache, watched from outside: which compiled graphs were added while something ran.

Called by job.py around the first call and by capture.py around each window. How a cache is laid out
is not published, so files are told by their names; never opens or changes one.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..rundir import NeffCache

NEFF = ".neff"
UNFINISHED = (".lock", ".tmp", ".part")


def neffs_in(directory: str | None) -> frozenset[str]:
    """The NEFFs of a cache, by relative path; files of any name where none is called a NEFF.

    Empty when there is no cache, or none yet.
    """
    if directory is None:
        return frozenset()
    files = {
        os.path.relpath(os.path.join(folder, name), directory)
        for folder, _, names in os.walk(directory)
        for name in names
        if not name.endswith(UNFINISHED)
    }
    return frozenset({name for name in files if NEFF in Path(name).name} or files)


def added(directory: str | None, before: frozenset[str]) -> int | None:
    """How many NEFFs came since `before`; None when there is no cache to watch."""
    return None if directory is None else len(neffs_in(directory) - before)


def after_first_call(directory: str | None, before: frozenset[str]) -> NeffCache | None:
    """What the first call found in the cache: a hit adds nothing, a miss compiles and adds."""
    if directory is None:
        return None
    now = neffs_in(directory)
    misses = len(now - before)
    return NeffCache(
        directory=directory,
        state="cold" if misses or not now else "warm",
        misses=misses,
        size=len(now),
    )

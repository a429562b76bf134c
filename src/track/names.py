"""The one way a name becomes an MLflow key: for metrics, parameters and tags alike.

Called by runs.py. MLflow 3.17 takes letters and digits of any script, space and - . / : _ , at most
250 characters, in the form of a clean relative path (measured).
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable

LONGEST = 250
_REFUSED = re.compile(r"[^\w\-. :/]|[\u200b-\u200f\u2028-\u202e]")


def key_of(name: str, strict: bool = False) -> str:
    """Return the key for a name; a name that had to change carries a hash of the original.

    So two names never share a key, and a name has the same key in each run, whatever else the run
    holds. `strict` also replaces `:`, which older servers refuse; that alone adds no hash.
    """
    key = _cleaned(name)
    plain = key == name
    if strict:
        key = key.replace(":", "_")
    if plain and len(key) <= LONGEST:
        return key
    return _hashed(key, name)


def keys_of(names: Iterable[str], strict: bool = False) -> dict[str, str]:
    """Return name -> key without two names on one key, independent of their order."""
    keys = {name: key_of(name, strict) for name in sorted(set(names))}
    by_key: dict[str, list[str]] = {}
    for name, key in keys.items():
        by_key.setdefault(key, []).append(name)
    for key, sharing in by_key.items():
        if len(sharing) > 1:
            keys.update({name: _hashed(key, name) for name in sharing if name != key})
    return keys


def _cleaned(name: str) -> str:
    key = _REFUSED.sub("_", name)
    parts = ["_" * max(1, len(p)) if p.strip() in ("", ".", "..") else p for p in key.split("/")]
    key = "/".join(parts)
    return key if posixpath.normpath(key) == key else key.replace("/", "_")


def _hashed(key: str, name: str) -> str:
    mark = "_" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return key[: LONGEST - len(mark)] + mark


def cut(value: str, longest: int) -> str:
    """Shorten a value to what the store takes, with a mark where text is missing."""
    return value if len(value) <= longest else value[: longest - 4] + " ..."

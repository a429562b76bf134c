"""Hides secrets in what is stored or shown: spec.json, parameters, tags and error text.

Called by run.py, ingest.py and this room. Pure: never reads the environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

HIDDEN = "***"
SECRET_WORDS = (
    "token|tokens|secret|secrets|password|passwords|passwd|passphrase|pwd|key|keys|credential|"
    "credentials|auth|authorization|bearer|cookie|signature"
)
# In prose these stand before a colon without being a secret: "unknown key: modes".
PROSE_WORDS = frozenset({"key", "keys", "token", "tokens", "auth", "signature"})
SAVED_VIEW = "viewStateShareKey"  # in an address of MLflow's UI
SHORTEST = 4  # a shorter secret is not looked for elsewhere: it would hide half of the text
LONGEST_COUNT = 3  # digits: a longer number under the name of a key may be one

_WORD = re.compile(rf"(?:{SECRET_WORDS})", re.IGNORECASE)
_SPLIT = re.compile(r"[^A-Za-z]+|(?<=[a-z])(?=[A-Z])")
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?|true|false", re.IGNORECASE)
# Up to the last @ before a slash, quote or space: a password may itself hold an @.
_USERINFO = re.compile(
    r"(?P<scheme>(?<![A-Za-z0-9+.\-])[A-Za-z][A-Za-z0-9+.\-]{0,30}://)[^\s/?#'\"<>]*@"
)
_ASSIGNED = re.compile(
    r"(?P<name>(?<!\w)(?=[\w.\-]{0,100}(?:key|token|secret|passw|passphrase|pwd|credential|auth|bearer"
    r"|cookie|signature))[A-Za-z_][\w.\-]{0,150})(?P<between>['\"]?\s{0,3}[=:]\s{0,3})"
    r"(?P<value>'[^']{0,4000}'|\"[^\"]{0,4000}\"|[^\s,;&'\"\]})]+)",
    re.IGNORECASE,
)
_FLAG = re.compile(
    r"(?P<name>(?<![\w\-])--[A-Za-z][\w\-]{0,150})(?P<between>\s+)(?P<value>[^\s\-][^\s]*)"
)
_KNOWN = re.compile(
    r"(?:AKIA|ASIA)[0-9A-Z]{16}|hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|dapi[0-9a-f]{32}|sk-[A-Za-z0-9_\-]{20,}|(?<=Bearer )[^\s'\"]+|(?<=Basic )[A-Za-z0-9+/=]{8,}"
)


def is_secret(key: str) -> bool:
    """Does the name of a setting or variable say that its value is a secret?"""
    words = [word for word in _SPLIT.split(key) if word]
    return any(_WORD.fullmatch(w) or _ends(w) for w in words)


def _ends(word: str) -> bool:
    lowered = word.lower()
    return lowered.endswith(("apikey", "accesskey", "secretkey", "privatekey", "sshkey")) or (
        len(lowered) > 6 and lowered.endswith(("token", "password", "secret", "passwd"))
    )


def text(shown: str, secrets: Iterable[str] = ()) -> str:
    """Return the text without URL userinfo, `name=value` secrets, and the given secrets."""
    shown = _USERINFO.sub(r"\g<scheme>", shown)
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= SHORTEST:
            shown = shown.replace(secret, HIDDEN)
    shown = _KNOWN.sub(HIDDEN, shown)
    return _FLAG.sub(_hide, _ASSIGNED.sub(_hide, shown))


def _hide(match: re.Match[str]) -> str:
    name, between, value = match["name"], match["between"], match["value"]
    if "=" in between:
        in_query = match.string[: match.start()].endswith(("?", "&"))
        hidden = is_secret(name) and (in_query or name.lower() not in ("key", "keys"))
    else:
        last = _SPLIT.split(name.strip("-_."))[-1]
        hidden = name.lower() not in PROSE_WORDS and bool(_WORD.fullmatch(last) or _ends(last))
    if not hidden or _spared(name, value) or value.startswith(HIDDEN):
        return match[0]
    return f"{name}{between}{HIDDEN}"


def _spared(name: str, value: Any) -> bool:
    """A number of tokens, a switch, or the name of a saved view is no secret."""
    if value is None or isinstance(value, bool) or name == SAVED_VIEW:
        return True
    counts = {"key", "keys", "token", "tokens"}  # num_key_value_heads=8, max_tokens=512
    words = {word for word in _SPLIT.split(name.lower()) if _WORD.fullmatch(word)}
    short = len(str(value)) <= LONGEST_COUNT and bool(words) and words <= counts
    is_count = "tokens" in name.lower() or (short and name.lower() not in counts)
    return is_count and bool(_NUMBER.fullmatch(str(value)))


def override(typed: str) -> str:
    """Hide the value of one `key=value` as typed on the command line, where its key says so."""
    key, equals, value = typed.partition("=")
    if equals and is_secret(key) and not _spared(key, value):
        return f"{key}={HIDDEN}"
    return text(typed)


def secrets_in(data: Any) -> set[str]:
    """Collect the values that stand under secret names, and the userinfo of URLs."""
    found: set[str] = set()
    if isinstance(data, Mapping):
        for key, value in data.items():
            if is_secret(str(key)) and isinstance(value, str) and not _spared(str(key), value):
                found.add(value)
            found |= secrets_in(value)
    elif isinstance(data, (list, tuple)):
        for item in data:
            found |= secrets_in(item)
    elif isinstance(data, str):
        for match in _USERINFO.finditer(data):
            userinfo = match[0][len(match["scheme"]) : -1]
            found |= {userinfo, userinfo.partition(":")[2]} - {""}
    return found


def tree(data: Any) -> Any:
    """Return a copy of nested mappings and lists, as of `Spec.to_json`, with the secrets hidden.

    A value found under a secret name is hidden wherever else it stands, too.
    """
    return _tree(data, secrets_in(data))


def _tree(data: Any, secrets: set[str]) -> Any:
    if isinstance(data, Mapping):
        return {
            key: [override(str(item)) for item in value]
            if key == "overrides" and isinstance(value, (list, tuple))
            else HIDDEN
            if is_secret(str(key)) and _is_value(value) and not _spared(str(key), value)
            else _tree(value, secrets)
            for key, value in data.items()
        }
    if isinstance(data, (list, tuple)):
        return [_tree(item, secrets) for item in data]
    return text(data, secrets) if isinstance(data, str) else data


def _is_value(value: Any) -> bool:
    return not isinstance(value, (Mapping, list, tuple))

"""One health check's result. Made by check_files.py and check_table.py, gathered by health.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """What was looked at and what was found; a bad result also says why and what to do."""

    name: str
    status: str
    """ok, warning or failed."""
    message: str


def ok(name: str, message: str) -> Check:
    """The check found what it should."""
    return Check(name, "ok", message)


def warning(name: str, message: str) -> Check:
    """The numbers stand, but something about them should be known."""
    return Check(name, "warning", message)


def failed(name: str, message: str) -> Check:
    """Something that was asked for is missing or cannot be trusted."""
    return Check(name, "failed", message)


def some(names: list[str], most: int = 3) -> str:
    """List a few names and count the rest, so that a message stays one line."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")

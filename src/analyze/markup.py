"""Markdown and numbers as a report shows them. Used by report.py and sections.py."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

NONE = "—"
# Characters that start Markdown; an underscore inside a word does not.
MARKUP = re.compile(r"[\\`*|]|\](?=\()|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def number(value: float | None) -> str:
    """One decimal; a dash for what is missing."""
    return NONE if value is None else f"{round(value, 1) + 0.0:,.1f}"  # -0.0 is 0.0


def count(value: float | None) -> str:
    """A median of counts per step: mostly whole."""
    if value is None:
        return NONE
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def some(number_of: float | None, noun: str) -> str:
    """A count with its noun: 1 execution, 6 executions."""
    return f"{count(number_of)} {noun}{'' if number_of == 1 else 's'}"


def bullets(lines: Mapping[str, Any]) -> str:
    """One `- key: value` a line."""
    return "\n".join(f"- {text(str(key))}: {text(str(value))}" for key, value in lines.items())


def grid(header: tuple[str, ...], rows: Sequence[tuple[str, ...]], align: str = "---:") -> str:
    """A table; cells are Markdown already."""
    lines = (header, ("---", *[align] * (len(header) - 1)), *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def cell(name: str) -> str:
    """An operator's name as code in a table cell."""
    return " ".join(name.split()).replace("|", "\\|").replace("`", "'")


def text(words: str) -> str:
    """Foreign text on one line, with nothing that Markdown or HTML would take for its own."""
    words = html.escape(" ".join(words.split()), quote=False)
    return MARKUP.sub(r"\\\g<0>", words)


def quoted(words: str) -> str:
    """Several lines as a literal block."""
    return "\n".join(f"    {line}" for line in words.strip().splitlines())

"""The doctor's one screen: the answer first, then each finding, and under it what to type.

Called by doctor.py only. Plain lines when piped, wrapped under their column on a terminal.
"""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from .finding import NOT_APPLICABLE, OK, PROBLEM, WARNING, Finding

MARKS = {OK: "ok", WARNING: "warning", PROBLEM: "PROBLEM", NOT_APPLICABLE: "-"}
STYLES = {OK: "green", WARNING: "yellow", PROBLEM: "bold red", NOT_APPLICABLE: "dim"}
MARK_COLUMNS, NAME_COLUMNS = 9, 17
NARROWEST = 60


@contextlib.contextmanager
def busy(text: str, quiet: bool) -> Iterator[None]:
    """Show a spinner on a terminal's stderr while the child is asked."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


def show(verdict: str, can_run: bool, findings: Mapping[str, Sequence[Finding]]) -> None:
    """Print the whole answer to stdout."""
    console = Console(highlight=False, soft_wrap=True)
    width = max(console.width, NARROWEST) if console.is_terminal else None
    console.print(Text(verdict, style="bold green" if can_run else "bold red"))
    for subject, group in findings.items():
        console.print()
        console.print(Text(subject, style="bold"))
        for found in group:
            if found.status != NOT_APPLICABLE:
                console.print(_lines(found, width))
        absent = [found.name for found in group if found.status == NOT_APPLICABLE]
        if absent:
            name = Finding("not needed here", NOT_APPLICABLE, ", ".join(absent))
            console.print(_lines(name, width))


def _lines(found: Finding, width: int | None) -> Text:
    head = f"  {MARKS[found.status]:<{MARK_COLUMNS}}{found.name:<{NAME_COLUMNS}}"
    style = STYLES[found.status]
    text = Text(head, style=style)
    plain = "" if found.status == OK else style
    text.append("\n".join(_wrapped(found.found, len(head), width)), style=plain)
    if found.cure:
        cure = _wrapped(f"-> {found.cure}", len(head), width, more=3)
        text.append("\n" + " " * len(head) + "\n".join(cure), style="bold")
    return text


def _wrapped(text: str, start: int, width: int | None, more: int = 0) -> list[str]:
    """Lines that hang under the column `start`; one line when there is no width."""
    if width is None:
        return [text]
    lines = textwrap.wrap(
        text, width - start, subsequent_indent=" " * more, break_on_hyphens=False
    ) or [""]
    return [lines[0], *(" " * start + line for line in lines[1:])]

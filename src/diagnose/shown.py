"""The doctor's one screen: the answer, then what is in the way with what to type, then the rest.

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
    everything = [found for group in findings.values() for found in group]
    in_the_way = [f for status in (PROBLEM, WARNING) for f in everything if f.status == status]
    fine = {
        subject: [found for found in group if found.status == OK]
        for subject, group in findings.items()
    }
    absent = [found.name for found in everything if found.status == NOT_APPLICABLE]
    if in_the_way:
        _section(console, "What to do", in_the_way, width)
    for subject, group in fine.items():
        if group:
            _section(console, subject, group, width)
    if absent:
        names = Finding("does not apply", NOT_APPLICABLE, ", ".join(absent))
        _section(console, "", [names], width)


def _section(console: Console, title: str, findings: Sequence[Finding], width: int | None) -> None:
    console.print(Text(f"\n{title}" if title else "", style="bold"))
    for found in findings:
        console.print(_lines(found, width))


def _lines(found: Finding, width: int | None) -> Text:
    head = f"{found.name:<{NAME_COLUMNS}}"
    text = Text("  ").append(f"{MARKS[found.status]:<{MARK_COLUMNS}}", style=STYLES[found.status])
    start = len(text) + len(head)
    text.append(head + "\n".join(_wrapped(found.found, start, width)))
    if found.cure:  # never wrapped here: it is to be copied
        text.append(f"\n{' ' * (2 + MARK_COLUMNS)}-> ").append(found.cure, style="bold")
    return text


def _wrapped(text: str, start: int, width: int | None) -> list[str]:
    """Lines that hang under the column `start`; one line when there is no width."""
    if width is None:
        return [text]
    lines = textwrap.wrap(text, width - start, break_on_hyphens=False) or [""]
    return [lines[0], *(" " * start + line for line in lines[1:])]

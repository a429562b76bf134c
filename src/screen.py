"""What a person sees while a run works and when it is done. Called by the parent's doors only.

Stages go to stderr (a spinner on a terminal, plain lines elsewhere), results to stdout.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from rich.status import Status

    from .analyze.health import Health
    from .analyze.operators import Summary
    from .track.child import Message

SIMULATED = (
    "SIMULATED: no Trainium here. Device times come from a cost model, host times are this "
    "computer's Python. Neither is a measurement of Trainium."
)
MOST_ROWS = 20  # the rest is in report.md and operators.json
PIPE_COLUMNS = 120  # a file or a pipe has no width of its own
_STAGES = {
    "ready": "device ready",
    "compiling": "first call: compiling, checking the result",
    "warming_up": "warming up",
    "waiting": "warm",
    "profiling": "profiling",
    "done": "measured",
}


class Screen:
    """One run's lines on the terminal; a context manager that ends its spinner."""

    def __init__(self, title: str = "") -> None:
        self._title = title
        self._out = Console(highlight=False, soft_wrap=True)
        if not self._out.is_terminal:
            self._out.width = PIPE_COLUMNS
        self._err = Console(stderr=True, highlight=False, soft_wrap=True)
        self._status: Status | None = None

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop_spinner()

    def simulated(self) -> None:
        """Say that the numbers are simulated; the first and the last line of such a run."""
        self._stop_spinner()
        self._out.print(SIMULATED, style="bold yellow")

    def stage(self, text: str) -> None:
        """Show what the run does now."""
        line = f"{self._title}: {text}" if self._title else text
        if not self._err.is_terminal:
            self._err.print(escape(line))
        elif self._status is None:
            self._status = self._err.status(escape(line))
            self._status.start()
        else:
            self._status.update(escape(line))

    def message(self, message: Message) -> None:
        """Show a stage line of the child."""
        stage, fields = message.stage, message.fields
        if stage == "ready" and fields.get("device") == "simulated":
            self.simulated()
        text = _STAGES.get(stage, stage)
        if stage == "profiling":
            text += f" window {fields.get('window')} of {fields.get('windows')}"
        if stage == "ready":
            text += f" ({fields.get('device_name')}, cores {fields.get('cores')})"
        self.stage(text)

    def result(self, title: str, summary: Summary, health: Health) -> None:
        """Print the table like the published one, and the health line."""
        from .analyze.report import table

        self._stop_spinner()
        data = table(summary, most=MOST_ROWS)
        shown = Table(title=escape(title), title_justify="left", title_style="bold")
        for number, head in enumerate(data.header):
            shown.add_column(head, justify="right" if number else "left", no_wrap=True)
        for row in data.rows:
            shown.add_row(*map(escape, row))
        shown.add_section()
        shown.add_row(*map(escape, data.totals), style="bold")
        self._out.print(shown)
        if data.note:
            self._out.print(escape(data.note))
        style = {"complete": "green", "suspicious": "yellow"}.get(health.status, "bold red")
        self._out.print(escape(health.line), style=style)

    def line(self, text: str) -> None:
        self._stop_spinner()
        self._out.print(escape(text))

    def problem(self, text: str) -> None:
        self._stop_spinner()
        self._err.print(escape(text), style="bold red")

    def _stop_spinner(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

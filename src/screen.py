"""What a person sees while runs work and when they are done. Called by the parent's doors only.

Stages go to stderr (a spinner on a terminal, plain lines elsewhere), results to stdout.
"""

from __future__ import annotations

import os
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from .track import redact, scoreboard

if TYPE_CHECKING:
    from rich.status import Status

    from .analyze.operators import Summary
    from .track.child import Message
    from .track.outcome import Outcome
    from .track.runs import Run
    from .track.scoreboard import JobResult, Sweep
    from .track.store import Store

SIMULATED = (
    "SIMULATED: no Trainium here. Device times come from a cost model, host times are this "
    "computer's Python. Neither is a measurement of Trainium."
)
MOST_ROWS = 20  # the rest is in report.md and operators.json
PIPE_COLUMNS = 120  # a file or a pipe has no width of its own
CUT = 72  # of a message in the end table; whole in its job's line and in the run
POLL_S = 0.5
STAGES = {
    "ready": "device ready",
    "compiling": "first call: compiling, checking the result",
    "warming_up": "warming up",
    "waiting": "warm",
    "profiling": "profiling",
    "done": "measured",
}
STYLES = {
    "complete": "green",
    "FINISHED": "green",
    "suspicious": "yellow",
    "SKIPPED": "cyan",
    "KILLED": "yellow",
}


class _Console(Console):
    """A console whose reader may leave (`| head`): what runs goes on, and is tracked."""

    def on_broken_pipe(self) -> None:
        """Say no more, where rich would end the program in the middle of a run."""
        self.quiet = True
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), self.file.fileno())


def _console(stderr: bool = False) -> Console:
    console = _Console(stderr=stderr, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = PIPE_COLUMNS
    return console


class Screen:
    """One run's lines on the terminal; a context manager that ends its spinner.

    In a sweep a run is one line: the table of all jobs comes at the end.
    """

    def __init__(self, title: str = "", sweep: Sweep | None = None) -> None:
        self._title = title
        self._sweep = sweep
        self._out = _console()
        self._err = _console(stderr=True)
        self._status: Status | None = None
        self._said_simulated = False

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
        self._said_simulated = True
        self._out.print(SIMULATED, style="bold yellow")

    def stage(self, text: str) -> None:
        """Show what the run does now."""
        line = escape(f"{self._title}: {text}" if self._title else text)
        if not self._err.is_terminal:
            self._err.print(line)
        elif self._sweep is not None:
            return  # the sweep's bar is there
        elif self._status is None:
            self._status = self._err.status(line)
            self._status.start()
        else:
            self._status.update(line)

    def message(self, message: Message) -> None:
        """Show a stage line of the child."""
        stage, fields = message.stage, message.fields
        if stage in ("refused", "failed"):
            return  # the reason is said as a problem
        first = self._sweep is None or not scoreboard.read_all()
        if stage == "ready" and fields.get("device") == "simulated" and first:
            self.simulated()
        text = STAGES.get(stage, stage)
        if stage == "profiling":
            text += f" window {fields.get('window')} of {fields.get('windows')}"
        if stage == "ready":
            text += f" ({fields.get('device_name')}, cores {fields.get('cores')})"
        self.stage(text)

    def run(
        self,
        name: str,
        result: Outcome,
        run: Run | None,
        where: str,
        target: Store,
        beside: str = "",
    ) -> None:
        """Show how one run ended: table, health, where it is; in a sweep only what went wrong."""
        if self._sweep is not None:
            return
        if result.error:
            self.problem(f"{result.status}: {result.error}")
        if result.summary and result.health and result.metrics:
            self._table(name, result.summary)
            style = STYLES.get(result.health.status, "bold red")
            self._out.print(escape(result.health.line), style=style)
        if run is None:
            self.line(f"Not tracked. The run directory is {where}")
            self.line(f"To track it later: python -m src.ingest {where}")
        else:
            self.line(f"Run {run.run_id} is {result.status}: {run.link}")
            if beside:
                self.line(beside)
            self.line(f"Files: {where}")
            self.line(f"To see it: {target.ui_command}")
        if self._said_simulated:
            self.simulated()

    def _table(self, name: str, summary: Summary) -> None:
        from .analyze.report import table

        self._stop_spinner()
        data = table(summary, most=MOST_ROWS)
        shown = Table(title=escape(name), title_justify="left", title_style="bold")
        for number, head in enumerate(data.header):
            shown.add_column(head, justify="right" if number else "left", no_wrap=True)
        for row in data.rows:
            shown.add_row(*map(escape, row))
        shown.add_section()
        shown.add_row(*map(escape, data.totals), style="bold")
        self._out.print(shown)
        if data.note:
            self._out.print(escape(data.note))

    def job(self, result: JobResult) -> None:
        """One line for a job of a sweep."""
        device_us = result.metrics.get("self_neuron_us")
        told = f"Self NEURON {device_us:,.1f} us" if device_us is not None else ""
        if result.status != "FINISHED":
            told = ", ".join(text for text in (told, result.message) if text)
        line = f"{self._title}: {result.status} {result.name}: {told} ({result.seconds:.1f} s)"
        self._out.print(escape(line), style=STYLES.get(result.status, "bold red"))

    def sweep(self, results: list[JobResult], planned: Sweep) -> None:
        """The end table of a sweep: every job with its status, time and headline metrics."""
        self._out.print(end_table(results, planned))
        ended = sum(result.exit_code == 0 for result in results)
        self._out.print(f"{ended} of {planned.jobs} jobs are fine; sweep id {planned.sweep_id}")

    def line(self, text: str) -> None:
        self._stop_spinner()
        self._out.print(escape(redact.text(text)))

    def problem(self, text: str) -> None:
        self._stop_spinner()
        self._err.print(escape(redact.text(text)), style="bold red")

    def _stop_spinner(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


def end_table(results: list[JobResult], planned: Sweep) -> Table:
    """Lay out the jobs of a sweep; a job without a result is there as NOT RUN."""
    table = Table(title=f"Sweep {planned.sweep_id}", title_justify="left", title_style="bold")
    for head in ("Job", "Run", "Status"):
        table.add_column(head, overflow="fold")
    for head in ("Time (s)", "Self NEURON (us)", "Self CPU (us)", "Calls"):
        table.add_column(head, justify="right", no_wrap=True)
    by_number = {result.job: result for result in results}
    for number in range(max(planned.jobs, len(results))):
        result = by_number.get(number)
        if result is None:
            table.add_row(str(number), "—", "NOT RUN", "—", "—", "—", "—", style="bold red")
            continue
        figures = [
            _figure(result.metrics.get(key), digits)
            for key, digits in (("self_neuron_us", 1), ("self_cpu_us", 1), ("operator_calls", 0))
        ]
        said = result.status
        if result.status != "FINISHED" and result.message:
            first = result.message.splitlines()[0]
            said += f": {first if len(first) <= CUT else first[:CUT] + '...'}"
        style = STYLES.get(result.status, "bold red")
        cells = [str(number), escape(result.name), f"[{style}]{escape(said)}[/]"]
        table.add_row(*cells, f"{result.seconds:.1f}", *figures)
    return table


def _figure(value: float | None, digits: int) -> str:
    return "—" if value is None else f"{value:,.{digits}f}"


class SweepProgress:
    """A bar over the jobs of a sweep with the remaining time; nothing when there is no sweep.

    It counts the jobs' result files, so that it also sees jobs in a launcher's other processes.
    """

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> SweepProgress:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.finish()

    def finish(self) -> None:
        """Take the bar away."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while (planned := scoreboard.read_sweep()) is None:
            if self._ended.wait(POLL_S):
                return
        if planned.jobs == 0:
            return
        console, started, told = _console(stderr=True), time.monotonic(), 0
        bar = Progress(
            TextColumn("sweep"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        with bar:
            task = bar.add_task("", total=planned.jobs)
            while not self._ended.wait(POLL_S):
                done = len(scoreboard.read_all())
                left = scoreboard.remaining_s(done, planned.jobs, started)
                text = "" if left is None else f"about {_duration(left)} left"
                bar.update(task, completed=done, description=text)
                if done > told and not console.is_terminal:
                    console.print(f"sweep: {done} of {planned.jobs} jobs done, {text}")
                told = done


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"

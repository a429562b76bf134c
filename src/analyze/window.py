"""One profiled window, read from its session folder: its trace, its executions and its books.

Called by deeper.py. A window whose files are missing or cannot be read is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

from ..errors import UserError
from ..rundir import Operators, Window
from . import books, device_clock, grouped, spans
from .operators import summarize

TRACE = "trace.json"
MOST_BYTES = 64 * 1024**2  # of traces together; 18 MB (100,000 events) take about 3 s
LARGEST_BYTES = 256 * 1024**2  # of a single one, when it is the first
AGREES = 0.05  # kernel rows of a trace are engine time only if they add up to Self NEURON


@dataclass(frozen=True)
class Seen:
    """One window; what its files do not tell is None."""

    number: int
    steps: int
    trace: spans.Trace
    clock: device_clock.DeviceClock | None
    device: books.DeviceBook | None
    host: books.HostBook | None
    self_neuron_us: float | None
    """Per step, as the operators' table has it."""

    @cached_property
    def shapes(self) -> tuple[grouped.ShapeRow, ...]:
        return grouped.by_shape(self.trace)


def read_all(profile: Path, operators: Operators, simulated: bool) -> list[Seen]:
    """Read the windows' traces: the first, and more of them while they are small together."""
    seen: list[Seen] = []
    budget = MOST_BYTES
    for number, window in enumerate(operators.windows):
        if window.session_dir is None or window.steps < 1:
            continue
        session = profile / window.session_dir
        try:
            size = (session / TRACE).stat().st_size
            budget -= size
            if budget < 0 and (seen or size > LARGEST_BYTES):
                break
            trace = spans.read(session / TRACE)
        except (OSError, UserError):
            continue
        seen.append(_look(number, window, session, trace, operators.device_time_source, simulated))
    return seen


def middle(seen: Sequence[Seen]) -> Seen | None:
    """The window whose Self NEURON is nearest to the median: the one that is shown."""
    known = [one for one in seen if one.self_neuron_us is not None]
    if not known:
        return seen[0] if seen else None
    target = median(one.self_neuron_us or 0.0 for one in known)
    return min(known, key=lambda one: abs((one.self_neuron_us or 0.0) - target))


def _look(
    number: int,
    window: Window,
    session: Path,
    trace: spans.Trace,
    source: str | None,
    simulated: bool,
) -> Seen:
    alone = summarize(Operators(source, (window,)))
    self_neuron_us = alone.metrics.get("self_neuron_us")
    clock = device_clock.read(session, trace, simulated)
    device = books.device_book(clock, window.steps, self_neuron_us) if clock else None
    if device is not None and clock is not None and clock.shares_host_clock:
        residual = device.residual_us
        if residual is None or abs(residual) > AGREES * (self_neuron_us or 0.0):
            clock = device = None  # whatever these rows are, they are not Self NEURON
    host = books.host_book(trace)
    return Seen(number, window.steps, trace, clock, device, host, self_neuron_us)

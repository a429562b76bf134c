"""explorer.json, and what it adds to a run: device time to set against Self NEURON, engine metrics.

Written by explorer/explore.py, read by track/outcome.py and health.py. Where Self NEURON is missing
the merged executions are a lawful source of device time, for totals only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median

from .. import rundir
from ..errors import UserError
from ..rundir import OperatorRow, Operators, Window
from .check import Check, ok, warning
from .explorer_output import DeviceTime
from .markup import bullets, grid, number, text

SOURCE = "neuron_explorer"
DISAGREES = 2.0
NOISE = 0.1  # of a factor of two: LNC2 doubling is seldom exact


@dataclass(frozen=True)
class Session:
    """What neuron-explorer said of one session folder."""

    session_dir: str
    """Relative to profile/."""
    device_time: DeviceTime | None
    read_from: str | None
    """parquet or json."""


@dataclass(frozen=True)
class Explored:
    """explorer.json."""

    mode: str
    version: str | None
    """Of the binary; None: it was not found, or does not say."""
    seconds: float
    sessions: tuple[Session, ...] = ()
    engines: dict[str, float] = field(default_factory=dict)
    device_profiles: int = 0
    warnings: tuple[str, ...] = ()


def write(directory: Path, found: Explored) -> None:
    """Write explorer.json."""
    rundir.write_json(directory / rundir.EXPLORER, {"format": rundir.FORMAT, **asdict(found)})


def read(directory: Path) -> Explored | None:
    """Read explorer.json; None when there is none, or it is of another make."""
    try:
        data = rundir.read_json(directory / rundir.EXPLORER)
        if data is None:
            return None
        return Explored(
            mode=str(data["mode"]),
            version=data["version"],
            seconds=float(data["seconds"]),
            sessions=tuple(
                Session(
                    one["session_dir"],
                    DeviceTime(**one["device_time"]) if one["device_time"] else None,
                    one["read_from"],
                )
                for one in data["sessions"]
            ),
            engines={str(key): float(value) for key, value in data["engines"].items()},
            device_profiles=int(data["device_profiles"]),
            warnings=tuple(map(str, data["warnings"])),
        )
    except (UserError, KeyError, TypeError, ValueError, AttributeError):
        return None


def adopt(operators: Operators, found: Explored | None) -> Operators:
    """Fill in what the profiler's table lacks: executions, and device time as totals.

    Never for a simulated run, and never in part: each window must have its session.
    """
    times = _of_windows(operators.windows, found)
    if times is None or operators.device_time_source == "simulated":
        return operators
    pairs = list(zip(operators.windows, times, strict=True))
    windows = [
        window if window.executions is not None else replace(window, executions=time.executions)
        for window, time in pairs
    ]
    if operators.device_time_source is not None:
        return replace(operators, windows=tuple(windows))
    return replace(
        operators,
        device_time_source=SOURCE,
        windows=tuple(
            replace(
                window,
                operators=tuple(_host_only(row) for row in window.operators),
                self_neuron_by_core_us=time.by_core_us,
            )
            for window, time in zip(windows, times, strict=True)
        ),
    )


def metrics(operators: Operators, found: Explored | None) -> dict[str, float]:
    """Return explorer/... per profiled step, as medians over the windows, and engine/..."""
    if found is None:
        return {}
    times = _of_windows(operators.windows, found)
    values: dict[str, float] = dict(found.engines)
    if times is None:
        return values
    steps = [window.steps for window in operators.windows]
    for name in ("busy_us", "union_us", "span_us", "executions"):
        each = [getattr(time, name) / count for time, count in zip(times, steps, strict=True)]
        values[f"explorer/{name}"] = float(median(each))
    ratio = _ratio(operators, times)
    if ratio is not None:
        values["explorer/self_neuron_ratio"] = ratio
    return values


def agreement(operators: Operators, found: Explored | None) -> Check | None:
    """Self NEURON and the executions say the same; None when both are not there."""
    times = _of_windows(operators.windows, found)
    ratio = None if times is None else _ratio(operators, times)
    if ratio is None:
        return None
    name, said = "explorer_agrees", f"Self NEURON is {ratio:.2f} of neuron-explorer's busy time"
    if DISAGREES - NOISE > ratio > 1 / (DISAGREES - NOISE):
        return ok(name, said)
    why = (
        "Under LNC2 the table may add the rows of two physical cores: halve it before comparing."
        if ratio > 1
        else "Executions are missing from the table, or ran outside the operators it lists."
    )
    return warning(name, f"{said}, a factor of two apart. {why} One of the two is wrong.")


def section(operators: Operators, found: Explored | None) -> str | None:
    """Return the report's part on neuron-explorer; None when it was not asked."""
    if found is None:
        return None
    rows = [
        (f"`{name}`", f"{value:.3g}" if value < 10 else number(value))
        for name, value in metrics(operators, found).items()
    ]
    parts = ["## Neuron Explorer"]
    if rows:
        parts.append(grid(("Metric", "Value"), rows))
        parts.append(
            "Times and executions are per step; an execution's rows on two physical cores are one. "
            f"Engine values are over {found.device_profiles} device profile(s), not per step."
        )
    facts = {"mode": found.mode, "version": found.version or "not known"}
    facts |= {f"warning {n}": text(said) for n, said in enumerate(found.warnings, start=1)}
    return "\n\n".join([*parts, bullets(facts)])


def _of_windows(windows: Sequence[Window], found: Explored | None) -> list[DeviceTime] | None:
    """The device time of each window's session; None unless sessions and windows are one to one."""
    if found is None or not windows:
        return None
    times: Mapping[str | None, DeviceTime | None] = {
        session.session_dir: session.device_time for session in found.sessions
    }
    matched = [times.get(window.session_dir) for window in windows]
    whole = [time for time in matched if time is not None]
    if len(whole) < len(windows) or len(times) != len(windows):
        return None
    return whole


def _ratio(operators: Operators, times: Sequence[DeviceTime]) -> float | None:
    from .operators import summarize

    if operators.device_time_source in (None, SOURCE, "simulated"):
        return None
    own = summarize(operators).metrics.get("self_neuron_us")
    busy = median(
        time.busy_us / window.steps for time, window in zip(times, operators.windows, strict=True)
    )
    return own / busy if own and busy else None


def _host_only(row: OperatorRow) -> OperatorRow:
    return replace(row, self_neuron_us=None)

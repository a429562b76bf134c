"""A profile that another script captured: what its files tell, as operators and an environment.

Called by intake.py for a directory without spec.json. Reads, never writes; what the files do not
tell stays missing. docs/examples/neuron_handler.py is the file that makes them tell the most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import rundir
from ..errors import UserError
from .foreign_session import Session, sessions_in


@dataclass(frozen=True)
class Profile:
    """What a foreign profile tells."""

    operators: rundir.Operators
    device: str | None
    modes: tuple[str, ...]
    environment: dict[str, Any]
    notes: tuple[str, ...]
    """How it was read, in words for the report."""


def read(directory: Path) -> Profile | None:
    """Read a profile's directory, or a trace file; None when there is nothing of a profiler in it.

    Raises UserError where simulated and measured sessions lie side by side.
    """
    sessions = sessions_in(directory)
    if not sessions:
        return None
    devices = {session.device for session in sessions} - {None}
    if len(devices) > 1:
        named = {one.device: one.folder for one in sessions if one.device}
        raise UserError(
            f"{directory}: some sessions are simulated ({named['simulated']}) and some measured "
            f"({named['neuron']}). Track them one by one: python -m src.ingest "
            f"{directory / named['neuron']} --workload NAME --variant NAME."
        )
    device = next(iter(devices), None)
    used, notes = _used(sessions)
    windows, ranks = _lined_up(used, directory)
    notes += ranks
    source = _source(used, device)
    if source is None:
        windows = [_without_device_time(window) for window in windows]
        if any(one.windows for one in used):
            notes.append(
                "No lawful source of device time in these files: trace.json has host times only. "
                "Put docs/examples/neuron_handler.py into the script, or let neuron-explorer read "
                "the runtime's trace."
            )
    tables = [one.tables for one in used if one.tables is not None]
    fallback = [one.fallback_operators for one in tables]
    known = [names for names in fallback if names is not None]
    return Profile(
        operators=rundir.Operators(
            device_time_source=source,
            windows=tuple(windows),
            fallback_operators=tuple(sorted({name for names in known for name in names}))
            if known and len(known) == len(used)
            else None,
            dropped_keywords=tuple(sorted({k for one in tables for k in one.dropped_keywords})),
        ),
        device=device,
        modes=tuple(sorted({mode for one in sessions for mode in one.modes})),
        environment=_environment(used, device),
        notes=tuple(notes),
    )


def _used(sessions: list[Session]) -> tuple[list[Session], list[str]]:
    """The sessions that are counted: those with a table, else with a trace, else all of them."""
    tables = [one for one in sessions if one.has_table]
    traces = [one for one in sessions if any(window.operators for window in one.windows)]
    used = tables or traces or sessions
    what = "operators.json" if tables else "trace.json" if traces else "the runtime's files alone"
    notes = [f"{len(used)} session(s) read from {what}."]
    if len(used) < len(sessions):
        notes.append(f"{len(sessions) - len(used)} more have none and are kept, not counted.")
    if not tables and any(window.steps == 1 for one in used for window in one.windows):
        notes.append("Without ProfilerStep marks a whole session counts as one step.")
    return used, notes


def _lined_up(used: list[Session], directory: Path) -> tuple[list[rundir.Window], list[str]]:
    """The windows in order; windows of several ranks at the same time are added up."""
    ranks: dict[str, list[rundir.Window]] = {}
    for session in used:
        if session.rank is not None:
            ranks.setdefault(session.rank, []).extend(session.windows)
    if len(ranks) < 2 or any(session.rank is None for session in used):
        notes = []
        if len({session.process for session in used}) > 1:
            notes.append("Sessions of several processes, of no known rank, count as windows.")
        return [window for session in used for window in session.windows], notes
    count = min(map(len, ranks.values()))
    lined = [[windows[place] for windows in ranks.values()] for place in range(count)]
    if any(len({window.steps for window in side}) > 1 for side in lined):
        one = next(session.folder for session in used)
        raise UserError(
            f"{directory}: its {len(ranks)} ranks recorded different numbers of steps, so they "
            f"cannot be added up. Track one of them: python -m src.ingest {directory / one} "
            "--workload NAME --variant NAME."
        )
    notes = [f"{len(ranks)} ranks: each window is their sum."]
    if len(set(map(len, ranks.values()))) > 1:
        notes.append(f"Only the first {count} windows, which every rank has, are counted.")
    return [_sum(dict(zip(ranks, side, strict=True))) for side in lined], notes


def _sum(by_rank: Mapping[str, rundir.Window]) -> rundir.Window:
    windows = list(by_rank.values())
    totals = [window.self_cpu_total_us for window in windows]
    known = [total for total in totals if total is not None]
    counts = [window.executions for window in windows if window.executions is not None]
    return rundir.Window(
        steps=windows[0].steps,
        operators=tuple(row for window in windows for row in window.operators),
        self_cpu_total_us=sum(known) if len(known) == len(windows) else None,
        session_dir=windows[0].session_dir,
        executions=sum(counts) if len(counts) == len(windows) else None,
        self_neuron_by_core_us={
            f"rank {rank}": sum(
                r.self_neuron_us or 0.0 for r in window.operators if not r.annotation
            )
            for rank, window in by_rank.items()
        },
        compiles=sum(window.compiles for window in windows),
    )


def _source(used: list[Session], device: str | None) -> str | None:
    """The source of device time that all sessions share, where the device is known."""
    sources = {session.source for session in used if session.windows}
    source = next(iter(sources)) if len(sources) == 1 else None
    if source == "key_averages" and device != "neuron":
        return None
    return source


def _without_device_time(window: rundir.Window) -> rundir.Window:
    rows = tuple(replace(row, self_neuron_us=None) for row in window.operators)
    return replace(window, operators=rows, self_neuron_by_core_us={})


def _environment(used: list[Session], device: str | None) -> dict[str, Any]:
    """The first session's stamp, with what this project calls by other names."""
    found = dict(next((one.environment for one in used if one.environment), {}))
    for own in ("pid", "rank"):
        found.pop(own, None)
    instance = found.get("instance_type")
    variables = found.get("variables")
    sizes = {
        str(variables[name]).strip()
        for name in ("NEURON_RT_VIRTUAL_CORE_SIZE", "NEURON_LOGICAL_NC_CONFIG")
        if isinstance(variables, Mapping) and variables.get(name)
    }
    chip = instance.partition(".")[0] if isinstance(instance, str) else None
    found["device"] = device or "unknown"
    found.setdefault("chip", chip or None)
    found.setdefault("lnc", int(next(iter(sizes))) if sizes in ({"1"}, {"2"}) else None)
    if not isinstance(found.get("versions"), Mapping):
        found["versions"] = {}
    return found

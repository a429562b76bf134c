"""Is the capture whole, and can its numbers be trusted? Called by run.py and ingest.py.

Reads names and sizes under profile/ and child.log; never changes or deletes anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..rundir import Operators
from ..schema import Spec
from . import check_files, check_result, check_table, explored
from .check import Check

IN_LINE = ("session_directory", "mode_files", "dropped_events", "compile_in_window")


@dataclass(frozen=True)
class Health:
    """complete: nothing found; suspicious: a warning; incomplete: a check failed."""

    status: str
    checks: tuple[Check, ...]
    line: str


def examine(directory: Path, spec: Spec, operators: Operators | None) -> Health:
    """Check a run directory after its child ended; checks that cannot be made are left out."""
    config, profiler = spec.config, spec.config.profiler
    found = check_files.scan(directory)
    windows = len(operators.windows) if operators else profiler.repeats
    checks = [
        check_files.session_directory(found, max(windows, 1)),
        check_files.mode_files(found, profiler, operators.neff_cache if operators else None),
        check_files.empty_files(found),
        check_table.device_time(operators, profiler),
        check_files.dropped_events(directory, profiler),
    ]
    if operators is not None and operators.windows:
        checks += [
            check_table.compile_in_window(operators, profiler),
            *([] if spec.captured_elsewhere else [check_table.steps_marked(operators)]),
            check_table.compiled_region_present(operators, config),
            check_table.keywords_dropped(operators),
            check_table.fallback(operators),
            check_table.doubled_time(operators),
            check_table.neff_cache(operators),
        ]
        agreement = explored.agreement(operators, explored.read(directory))
        checks += [agreement] if agreement else []
    checks += check_result.numerics(directory)
    statuses = {check.status for check in checks}
    status = "suspicious" if "warning" in statuses else "complete"
    if "failed" in statuses:
        status = "incomplete"
    return Health(status, tuple(checks), _line(status, checks, windows))


def _line(status: str, checks: list[Check], windows: int) -> str:
    if status == "complete":
        said = [check.message for check in checks if check.name in IN_LINE]
        return f"capture complete: {windows} window{'' if windows == 1 else 's'}, {', '.join(said)}"
    worst = "failed" if status == "incomplete" else "warning"
    messages = [check.message for check in checks if check.status == worst]
    more = f" (and {len(messages) - 1} more in health.json)" if len(messages) > 1 else ""
    return " ".join(f"capture {status}: {messages[0]}{more}".split())

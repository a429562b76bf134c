"""What came of a run: reads a run directory, writes its summary, health and report.

Called by run.py and ingest.py once the child is done; the result goes to runs.close_run. Never
talks to a store, so tracking=none ends here.
"""

from __future__ import annotations

import logging
import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import rundir
from ..errors import ToolError
from ..schema import Spec, spec_from_json
from . import neuron_files, notes, redact

if TYPE_CHECKING:
    from ..analyze.health import Health
    from ..analyze.operators import Summary

log = logging.getLogger(__name__)

FINISHED, FAILED, KILLED = "FINISHED", "FAILED", "KILLED"
LARGEST_LOG_BYTES = 256 * 1024**2
HEADLINE = "self_neuron_us"
NO_DEVICE_TIME = (
    "no device time: none of the lawful sources gave any (see health.json). The profile is kept "
    "in full. Try profiler.correlate_device_time=true, profiler=combined, explorer=system, and "
    "python -m src.doctor"
)
NO_DEVICE_TIME_ELSEWHERE = (
    "no device time: none of the lawful sources is in this profile. It is kept in full. Put "
    "docs/examples/neuron_handler.py into the script that captured it, or read the runtime's trace "
    "with python -m src.explore DIR and then type this again"
)


@dataclass(frozen=True)
class Outcome:
    """How a run ended, and its numbers."""

    status: str
    """FINISHED, FAILED or KILLED, as MLflow names them."""
    error: str | None
    summary: Summary | None
    health: Health | None
    metrics: dict[str, float]
    """What is tracked: empty when the measurement did not come to its end."""
    operators: rundir.Operators | None = None
    file_tags: dict[str, str] = field(default_factory=dict)
    """Of NEFFs and of neuron-explorer."""

    def tags(self) -> dict[str, str]:
        """Return the tags that are known at the end only."""
        source = self.summary.device_time_source if self.summary else None
        found = {
            "capture_health": self.health.status if self.health else None,
            "capture_health_line": self.health.line if self.health else None,
            "device_time_source": source or "none",
            **self._findings(),
            **self.file_tags,
            "error": self.error,
        }
        return {name: value for name, value in found.items() if value}

    def _findings(self) -> dict[str, str | None]:
        if self.operators is None:
            return {}
        cache, fallback = self.operators.neff_cache, self.operators.fallback_operators
        return {
            "dropped_keywords": ", ".join(self.operators.dropped_keywords),
            "fallback_operators": ", ".join(fallback or ()),
            "neff_cache": cache.state if cache else None,
            "neff_cache_misses": str(cache.misses) if cache else None,
        }


def conclude(
    directory: Path, spec: Spec, error: str | None = None, *, killed: bool = False
) -> Outcome:
    """Write summary.json, health.json, report.md (and error.txt) and return the outcome.

    `error` is why the child did not come to its end; `killed` when the user stopped it.
    """
    _hide_secrets(directory, spec)
    rows, summary, health, problem = _analyzed(directory, spec)
    summary, sections = _looked_deeper(directory, spec, rows, summary)
    tags, more = neuron_files.examine(directory, rows)
    whole = error is None and not killed
    notes.update(directory, ended="killed" if killed else "measured" if whole else "failed")
    error = error or ("stopped by the user" if killed else problem)
    if error is None and (summary is None or HEADLINE not in summary.metrics):
        error = NO_DEVICE_TIME_ELSEWHERE if spec.captured_elsewhere else NO_DEVICE_TIME
    error = redact.text(error) if error else None
    outcome = Outcome(
        status=KILLED if killed else FAILED if error else FINISHED,
        error=error,
        summary=summary,
        health=health,
        metrics=_metrics(directory, spec, rows, summary) if whole else {},
        operators=rows,
        file_tags=tags,
    )
    try:
        _write(directory, spec, outcome, (*sections, *more))
    except OSError as failure:  # a full disk: what is there is still worth tracking
        reason = f"{directory}: could not write the summary ({failure.strerror or failure})"
        return replace(outcome, status=KILLED if killed else FAILED, error=error or reason)
    return outcome


def _analyzed(
    directory: Path, spec: Spec
) -> tuple[rundir.Operators | None, Summary | None, Health | None, str | None]:
    """Analyze what is there. An error in here must not cost the user the profile."""
    from ..analyze import explored, health, operators

    summary = examined = rows = None
    problem: str | None = None
    try:
        rows = rundir.read_operators(directory)
        if rows is not None:
            rows = explored.adopt(rows, explored.read(directory))
        summary = operators.summarize(rows) if rows else None
        if rows is None:
            problem = f"{rundir.OPERATORS} is missing: the measurement did not get that far"
    except Exception as error:
        problem = _words(f"{rundir.OPERATORS} could not be read", error)
    try:
        examined = health.examine(directory, spec, rows)
    except Exception as error:
        problem = problem or _words("the capture could not be checked", error)
    return rows, summary, examined, problem


def _metrics(
    directory: Path, spec: Spec, rows: rundir.Operators | None, summary: Summary | None
) -> dict[str, float]:
    """What is tracked: the summary's metrics, and those of the protocol around the windows."""
    from ..analyze import explored, protocol

    if summary is None:
        return {}
    own = protocol.metrics(directory, spec, rows, summary.metrics.get(HEADLINE))
    seen = explored.metrics(rows, explored.read(directory)) if rows else {}
    return {**summary.metrics, **own, **seen}


def _looked_deeper(
    directory: Path, spec: Spec, rows: rundir.Operators | None, summary: Summary | None
) -> tuple[Summary | None, tuple[str, ...]]:
    """Add books, roofline and advice; what fails in there costs no more than itself."""
    from ..analyze import deeper

    if rows is None or summary is None:
        return summary, ()
    try:
        found = deeper.examine(directory, spec, rows, summary)
    except Exception as error:
        log.warning("%s", _words("books, roofline and timeline could not be made", error))
        return summary, ()
    return replace(summary, metrics={**summary.metrics, **found.metrics}), found.sections


def _hide_secrets(directory: Path, spec: Spec) -> None:
    """Take secrets out of what the child wrote beside the profile, before it goes anywhere."""
    found = rundir.read_json(directory / rundir.ENVIRONMENT)
    if found is not None and (hidden := redact.tree(found)) != found:
        rundir.write_json(directory / rundir.ENVIRONMENT, hidden)
    secrets = redact.secrets_in(spec.to_json()) | redact.secrets_in(found)
    secrets = {secret for secret in secrets if len(secret) >= redact.SHORTEST}
    log_file = directory / rundir.CHILD_LOG
    if not secrets or not log_file.is_file() or log_file.stat().st_size > LARGEST_LOG_BYTES:
        return
    text = before = log_file.read_bytes()
    for secret in sorted(secrets - {redact.HIDDEN}, key=len, reverse=True):
        text = text.replace(secret.encode("utf-8", "surrogateescape"), redact.HIDDEN.encode())
    if text != before:
        log_file.write_bytes(text)


def _words(what: str, error: Exception) -> str:
    if not isinstance(error, ToolError):
        log.debug("%s", what, exc_info=error)
    return f"{what} ({type(error).__name__}: {error})"


def _write(directory: Path, spec: Spec, outcome: Outcome, sections: tuple[str, ...] = ()) -> None:
    for name, data in ((rundir.SUMMARY, outcome.summary), (rundir.HEALTH, outcome.health)):
        if data is not None:
            rundir.write_json(directory / name, _finite(asdict(data)))
    if outcome.error:
        (directory / rundir.ERROR).write_text(outcome.error + "\n", encoding="utf-8")
    else:
        (directory / rundir.ERROR).unlink(missing_ok=True)
    try:
        report = _report(directory, spec, outcome, sections)
    except Exception as error:
        log.warning("%s", _words(f"{rundir.REPORT} could not be written", error))
    else:
        (directory / rundir.REPORT).write_text(report, encoding="utf-8")


def _finite(data: Any) -> Any:
    """Put None for numbers that JSON cannot hold."""
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _report(directory: Path, spec: Spec, outcome: Outcome, sections: tuple[str, ...]) -> str:
    from ..analyze import report

    environment: dict[str, Any] | None = rundir.read_json(directory / rundir.ENVIRONMENT)
    shown = spec_from_json(redact.tree(spec.to_json()))
    return report.markdown(
        shown, outcome.summary, outcome.health, environment, outcome.error, sections
    )

"""Closes runs of this machine whose process ended without closing them (SIGKILL, power, os._exit).

Called once after connecting. Judges by pid and process start time, so a reused pid is no mistake.
Never a reason for the present run to fail.
"""

from __future__ import annotations

import functools
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import rundir
from . import artifacts, facts, identity, redact
from .connect import patiently
from .store import Store

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

log = logging.getLogger(__name__)

EXPERIMENTS_AT_ONCE = 100
MOST_RUNS = 1000


def close_abandoned(client: MlflowClient, store: Store) -> list[str]:
    """Close our own RUNNING runs whose process is gone as FAILED; returns their ids."""
    try:
        return [run.info.run_id for run in _running(client, store) if _close(client, store, run)]
    except Exception as error:
        log.warning("Could not look for abandoned runs: %s", redact.text(str(error)))
        return []


def _running(client: MlflowClient, store: Store) -> list[Any]:
    ids = [e.experiment_id for e in patiently(store, client.search_experiments)]
    query = f"attributes.status = 'RUNNING' and tags.`{facts.MACHINE}` = '{identity.machine()}'"
    runs: list[Any] = []
    for start in range(0, len(ids), EXPERIMENTS_AT_ONCE):
        some = ids[start : start + EXPERIMENTS_AT_ONCE]
        search = functools.partial(client.search_runs, some, query, max_results=MOST_RUNS)
        runs += patiently(store, search)
    return runs


def _close(client: MlflowClient, store: Store, run: Any) -> bool:
    tags = run.data.tags
    process = {name: tags.get(f"process.{name}", "") for name in ("pid", "machine", "started")}
    if not identity.has_ended(process):
        return False
    directory = _directory(run)
    reason = (
        f"the process {process['pid']} ended without closing its run; its run directory, if kept, "
        f"is {directory}: python -m src.ingest {directory}"
    )
    patiently(store, lambda: client.set_tag(run.info.run_id, "error", reason))
    patiently(store, lambda: client.set_terminated(run.info.run_id, "FAILED"))
    log.warning("Run %s closed as FAILED: %s", run.info.run_id, reason)
    return True


def _directory(run: Any) -> str:
    """Return where the run's files are: still in the spool, or moved just before the end."""
    spooled = str(run.data.tags.get(facts.DIRECTORY, "unknown"))
    moved = artifacts.local_path(run.info.artifact_uri or "")
    if not Path(spooled).is_dir() and moved and (moved / rundir.SPEC).is_file():
        return str(moved)
    return spooled

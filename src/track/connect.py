"""Opening the store: MLflow's client, the schema of a new database, the experiment.

Called by run.py and ingest.py once the device is ready; imports MLflow late. Never uses MLflow's
active run or its global tracking URI.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..errors import StoreError, UserError
from . import redact
from .store import Store

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

T = TypeVar("T")
log = logging.getLogger(__name__)

SIMULATED_MARK = " (simulated)"
LONGEST_EXPERIMENT = 500
LOCK_TIMEOUT_S = 300.0  # eight first runs, each up to 14 s of migrations under load
LOCKED_PAUSES_S = (1.0, 2.0, 4.0)
SETTINGS = {
    # MLflow's own seven retries take four minutes on a dead server.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "60",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


def connect(store: Store) -> MlflowClient:
    """Return a client for the store; makes a new database's schema under a lock.

    Raises StoreError saying what to do when the database or server cannot be used.
    """
    assert store.uri is not None, "tracking=none has no client"
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of MLflow's own imports; nothing a user can act on
        from mlflow.tracking import MlflowClient
    for noisy in ("mlflow.store.db.utils", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    uri = store.uri
    if store.database is None:
        return patiently(store, lambda: MlflowClient(tracking_uri=uri))
    return _open_database(store, store.database, lambda: MlflowClient(tracking_uri=uri))


def _open_database(store: Store, database: Path, make: Callable[[], T]) -> T:
    import filelock

    lock = database.with_name(database.name + ".lock")
    try:
        database.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(lock, timeout=LOCK_TIMEOUT_S):
            return patiently(store, make)
    except filelock.Timeout:
        raise StoreError(
            f"{lock}: another process has held this lock for {LOCK_TIMEOUT_S:.0f} s. If none is "
            "running, delete the lock file."
        ) from None
    except OSError as error:
        raise StoreError(f"{database}: {error.strerror or error}") from None


def patiently(store: Store, action: Callable[[], T]) -> T:
    """Run one call to the store, again when the database is locked; errors become StoreError."""
    for pause_s in (*LOCKED_PAUSES_S, None):
        try:
            return action()
        except Exception as error:
            if pause_s is None or not is_locked(error):
                raise store_error(store, error) from error
            time.sleep(pause_s)
    raise AssertionError  # the last turn returns or raises


def is_locked(error: BaseException) -> bool:
    """Is this sqlite's passing trouble of two writers at once?"""
    return "database is locked" in str(error) or "database table is locked" in str(error)


def is_unreachable(error: BaseException) -> bool:
    """Did the store not answer, so that the next call would wait as long again?"""
    said = str(error)
    return is_locked(error) or bool(re.search(r"Max retries exceeded|timed out|onnection", said))


def store_error(store: Store, error: BaseException) -> StoreError:
    """Word an error of MLflow or its database: one line, no password, what to do if known."""
    if isinstance(error, StoreError):
        return error
    said = redact.text(" ".join(str(error).split()))[:400] or type(error).__name__
    if is_locked(error):
        advice = "Other runs keep it locked; is it on a network drive, or does a program hold it?"
    elif re.search(r"already exists|duplicate column|expected to match one row", said):
        advice = (
            f"The database was left half-made by a run that ended early. Delete {store.database} "
            "(if it holds runs, move it away instead) and try again."
        )
    elif re.search(r"out-of-date database schema|Can't locate revision", said):
        advice = (
            f"The database belongs to another version of MLflow. Back up {store.database}, then "
            f"run: mlflow db upgrade {store.shown_uri}"
        )
    else:
        advice = ""
    return StoreError(f"The store {store.shown_uri} failed: {said} {advice}".strip())


def experiment_name(wanted: str | None, workload: str, simulated: bool) -> str:
    """Return the experiment's name; simulated runs have one of their own."""
    name = (wanted or workload).strip()
    if simulated and not name.endswith(SIMULATED_MARK):
        name += SIMULATED_MARK
    if not name or len(name) > LONGEST_EXPERIMENT:
        raise UserError(
            f"tracking.experiment={name[:60]}: {len(name)} characters; 1 to {LONGEST_EXPERIMENT} "
            "are allowed. Type a shorter name."
        )
    return name


def experiment_id(client: MlflowClient, store: Store, name: str) -> str:
    """Return the id of the experiment, made if need be, with its artifacts at a fixed place."""
    location = None if store.is_server else str(store.artifacts / folder_name(name))
    experiment = patiently(store, lambda: client.get_experiment_by_name(name))
    if experiment is None:
        try:
            return patiently(store, lambda: client.create_experiment(name, location))
        except StoreError:  # another run was faster
            experiment = patiently(store, lambda: client.get_experiment_by_name(name))
            if experiment is None:
                raise
    if experiment.lifecycle_stage == "deleted":
        raise UserError(
            f"tracking.experiment={name}: this experiment was deleted, and MLflow keeps its name. "
            f"Restore it (mlflow experiments restore -x {experiment.experiment_id}), remove it for "
            f"good (mlflow gc --backend-store-uri {store.shown_uri} --experiment-ids "
            f"{experiment.experiment_id}), or type tracking.experiment=<another name>."
        )
    found = str(experiment.artifact_location).removeprefix("file://")
    if store.local and location is not None and found != location:
        log.warning(
            "The experiment '%s' keeps its artifacts in %s, not in %s: it was made when the store "
            "stood elsewhere.",
            name,
            redact.text(found),
            location,
        )
    return str(experiment.experiment_id)


def folder_name(name: str) -> str:
    """Return a folder name for an experiment; different names get different folders."""
    folder = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._")[:80]
    if folder == name:
        return folder
    return f"{folder}-{hashlib.sha256(name.encode()).hexdigest()[:8]}".lstrip("-")

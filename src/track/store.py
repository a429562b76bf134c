"""Where runs are tracked: found from the configuration, and checked before any device work.

Called by run.py and ingest.py, before MLflow is imported. connect.py opens what is found here.
MLFLOW_TRACKING_URI in the environment is not read: the configuration alone decides.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sqlite3
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ..errors import UserError
from ..rules import URI_SCHEMES
from ..schema import TrackingConfig
from . import redact
from .identity import REPOSITORY
from .probe import probe

DATABASE = "mlflow.db"
ARTIFACTS = "artifacts"
PENDING = "pending"
SERVER_SCHEMES = ("http", "https", "databricks", "uc")
PROBED_SCHEMES = ("http", "https", "postgresql", "mysql", "mssql")
LARGEST_RETRIES = 10  # MLflow refuses more


@dataclass(frozen=True)
class Store:
    """One tracking store and the spool beside it."""

    root: Path
    pending: Path
    """Run directories that are not tracked yet."""
    uri: str | None
    """What MLflow takes; None: nothing is tracked (tracking=none). May hold a password."""
    local: bool
    """Our own sqlite file under `root`."""
    database: Path | None = None
    """The sqlite file, ours or one that `tracking.uri` names."""

    @property
    def shown_uri(self) -> str:
        """The URI for messages, tags and files: never with a user name or password."""
        return redact.text(self.uri or "none")

    @property
    def is_server(self) -> bool:
        """Is it a server, which decides itself where artifacts go?"""
        return self.uri is not None and _scheme(self.uri) in SERVER_SCHEMES

    @property
    def artifacts(self) -> Path:
        """Where artifacts of new experiments go when the store does not decide it itself."""
        beside = self.root if self.local or self.database is None else self.database.parent
        return beside / ARTIFACTS

    @property
    def ui_command(self) -> str:
        """The exact line that shows this store, for a shell."""
        if self.is_server:
            return self.shown_uri
        if self.local and self.root == REPOSITORY / "mlruns":
            return os.path.relpath(REPOSITORY / "scripts" / "ui")
        uri = shlex.quote(self.shown_uri)
        return f"{shlex.quote(sys.executable)} -m mlflow ui --workers 1 --backend-store-uri {uri}"


def locate(tracking: TrackingConfig, cwd: Path, repository: Path) -> Store:
    """Return the store that the configuration names; touches nothing.

    A relative `tracking.root`, and a relative file in a sqlite URI, start at `cwd`, where the
    command was typed.
    """
    root = _absolute(tracking.root, cwd) if tracking.root else repository / "mlruns"
    _refuse_path("tracking.root", root)
    pending = root / PENDING
    if tracking.name == "none":
        return Store(root, pending, None, local=False)
    if tracking.uri is None:
        database = root / DATABASE
        return Store(root, pending, _sqlite_uri(database), local=True, database=database)
    if _scheme(tracking.uri) not in URI_SCHEMES:
        raise UserError(
            f"tracking.uri={redact.text(tracking.uri)}: not the address of a store. Type one that "
            f"starts with {', '.join(URI_SCHEMES)}, or leave it out for the local store."
        )
    if _scheme(tracking.uri) != "sqlite":
        return Store(root, pending, tracking.uri.rstrip("/"), local=False)
    prefix, _, rest = tracking.uri.partition(":///")
    typed, mark, query = rest.partition("?")
    if not typed or ":memory:" in typed:
        raise UserError(
            f"tracking.uri={redact.text(tracking.uri)}: a store in memory keeps nothing. Type "
            "tracking.uri=sqlite:////absolute/path/mlflow.db, or leave it out for the local store."
        )
    database = _absolute(typed, cwd)
    _refuse_path("tracking.uri", database)
    uri = f"{prefix}:///{database}{mark}{query}"
    return Store(root, pending, uri, local=False, database=database)


def _absolute(typed: str, cwd: Path) -> Path:
    expanded = os.path.expanduser(os.path.expandvars(typed))
    return Path(os.path.normpath(cwd / expanded))


def _refuse_path(key: str, path: Path) -> None:
    # MLflow reads paths as URLs in places, SQLAlchemy reads ? as the start of options.
    bad = [mark for mark in ("?", "#", "%", "\n", "\r", "\0") if mark in str(path)]
    if bad or not str(path).isprintable():
        named = " or ".join(repr(mark) for mark in bad) or "a character that cannot be shown"
        raise UserError(
            f"{key}={str(path)!r}: a path with {named} does not work as an MLflow store. "
            "Type tracking.root=<another folder>."
        )


def _sqlite_uri(database: Path) -> str:
    return f"sqlite:///{database}"


def _scheme(uri: str) -> str:
    return uri if uri in SERVER_SCHEMES else urlsplit(uri).scheme.split("+")[0].lower()


def check(store: Store, *, simulated: bool | None, allow_simulated: bool = False) -> None:
    """Raise UserError when the store cannot take a run; a success leaves `pending` in place.

    `simulated`: whether the run is, where that is known already; open_run asks again.
    """
    if simulated:
        refuse_simulated(store, allow_simulated)
    _check_folder(store.pending, "tracking.root", store.root)
    _check_retries()
    if store.database is not None:
        key = "tracking.root" if store.local else "tracking.uri"
        _check_folder(store.database.parent, key, store.database)
        _check_database(store.database, key)
    elif store.uri is not None and "://" in store.uri and _scheme(store.uri) in PROBED_SCHEMES:
        probe(store.uri)


def refuse_simulated(store: Store, allow_simulated: bool) -> None:
    """Raise UserError when a simulated run would go to a tracking server unasked."""
    if store.uri is not None and store.database is None and not allow_simulated:
        raise UserError(
            f"tracking.uri={store.shown_uri}: this run is simulated, and simulated runs do not go "
            "to a tracking server, where they could pass for measured ones. Leave tracking.uri "
            "out, or type tracking.allow_simulated=true."
        )


def discard_empty(store: Store) -> None:
    """Remove the folders that `check` made, when nothing is in them: for a refused run."""
    for folder in (store.pending, store.root):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _check_folder(folder: Path, key: str, shown: Path) -> None:
    made: list[Path] = []
    try:
        for path in [*reversed(folder.parents), folder]:
            if not path.is_dir():
                path.mkdir(exist_ok=True)
                made.append(path)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".writable-"):
            pass
    except OSError as error:
        for path in reversed(made):
            with contextlib.suppress(OSError):
                path.rmdir()
        raise UserError(
            f"{key}={shown}: cannot write to {folder} ({error.strerror or error}). "
            "Type tracking.root=<a folder you may write to>."
        ) from None


def _check_database(database: Path, key: str) -> None:
    """Open the file as MLflow will: MLflow itself tries for 100 s before it gives up."""
    if not os.path.lexists(database):
        return
    instead = "Type tracking.root=<another folder>, or move that file away."
    if not database.is_file():
        raise UserError(f"{key}: {database} is not a file, so it can be no database. {instead}")
    if not os.access(database, os.R_OK | os.W_OK):
        raise UserError(f"{key}: {database} may not be read and written by you. {instead}")
    try:
        with contextlib.closing(sqlite3.connect(database, timeout=1.0)) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            tables = {str(row[0]) for row in rows}
    except sqlite3.OperationalError as error:
        if "locked" in str(error):  # in use by another run, which is no fault; connect waits
            return
        raise UserError(f"{key}: {database} cannot be opened ({error}). {instead}") from None
    except sqlite3.DatabaseError as error:
        raise UserError(f"{key}: {database} is no sqlite database ({error}). {instead}") from None
    if tables and not any(t == "experiments" or "alembic" in t for t in tables):
        raise UserError(
            f"{key}: {database} is a sqlite database of something else (its tables: "
            f"{', '.join(sorted(tables)[:5])}). {instead}"
        )


def _check_retries() -> None:
    typed = os.environ.get("MLFLOW_HTTP_REQUEST_MAX_RETRIES")
    if typed is None or (typed.isascii() and typed.isdigit() and int(typed) <= LARGEST_RETRIES):
        return
    raise UserError(
        f"MLFLOW_HTTP_REQUEST_MAX_RETRIES={typed} in the environment: MLflow takes whole numbers "
        f"from 0 to {LARGEST_RETRIES}. Set one of those, or unset it."
    )

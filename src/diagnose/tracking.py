"""The store and the spool: can a run be tracked, what was left behind? Report only."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import sqlite3
import tempfile
from pathlib import Path
from urllib.parse import quote

from ..errors import UserError
from ..track import identity, notes, redact, store
from .disk import free_space, nearest_folder
from .finding import NOT_APPLICABLE, OK, PROBLEM, WARNING, Finding, Machine, Stack, counted, size

INGEST = "python -m src.ingest --pending"
PROCESS_TAGS = ("pid", "machine", "started")


def located(machine: Machine) -> store.Store:
    """Return the store that runs would use; raises UserError when the address is none."""
    return store.locate(machine.tracking, machine.cwd, machine.repository)


def disk(machine: Machine, stack: Stack) -> list[Finding]:
    """Is there room for profiles?"""
    return [free_space(located(machine).root, stack.expected)]


def tracking_store(machine: Machine, stack: Stack) -> list[Finding]:
    """Would a run be tracked? Asks as a run would, then takes back what asking made."""
    target = located(machine)
    name = "store" if target.local or target.database else "server"
    was_there = target.pending.exists()
    try:
        if target.root.exists():
            store.check(target, simulated=None)
        else:
            _check_can_be_made(target)
    except UserError as error:
        found, cure = _divided(redact.text(str(error)))
        return [Finding(name, PROBLEM, found, cure)]
    finally:
        if not was_there and target.root.exists():
            with contextlib.suppress(OSError):
                target.pending.rmdir()
    if target.database is None:
        said = f"{target.shown_uri} answers"
        if not stack.expected:
            said += "; simulated runs go there only with tracking.allow_simulated=true"
        return [Finding(name, OK, said)]
    if not target.database.exists():
        return [Finding(name, OK, f"{target.database}: made by the first run")]
    return [_schema(target, target.database)]


def _check_can_be_made(target: store.Store) -> None:
    place = nearest_folder(target.root)
    try:
        with tempfile.TemporaryDirectory(dir=place, prefix=".writable-"):
            pass
    except OSError as error:
        raise UserError(
            f"{target.root} cannot be made: {error.strerror or error} in {place}. "
            "Type tracking.root=<a folder you may write to>."
        ) from None
    if target.uri and not target.local and target.database is None:
        from ..track.probe import probe

        if target.uri.partition("://")[0].partition("+")[0] in store.PROBED_SCHEMES:
            probe(target.uri)


def _divided(message: str) -> tuple[str, str]:
    """Divide a message of the agreed form into what is wrong and what to type instead."""
    found, *cure = re.split(r"(?<=[.)?]) (?=Type |Set )", message, maxsplit=1)
    return found, cure[0] if cure else "python -m src.doctor --root <another folder>"


def _schema(target: store.Store, database: Path) -> Finding:
    """Does the database belong to the installed MLflow? Another version is refused by it."""
    found = _query(database, "SELECT version_num FROM alembic_version")
    if not found:
        return Finding("store", OK, f"{database} opens (no schema yet)")
    version, known = str(found[0][0]), _migrations()
    said = f"{database} opens, schema {version}"
    if known is None or version == known[-1]:
        return Finding("store", OK, said if known is None else f"{said} (current)")
    if version in known:
        cure = f"mlflow db upgrade {target.shown_uri}    (copy the file first)"
        return Finding("store", PROBLEM, f"{said}, older than the installed MLflow's", cure)
    cure = "python -m pip install --upgrade mlflow    (or --root with another folder)"
    return Finding("store", PROBLEM, f"{said}, which the installed MLflow does not know", cure)


def _migrations() -> list[str] | None:
    """Return MLflow's schema versions, the newest last, without importing it; None: cannot tell."""
    package = importlib.util.find_spec("mlflow")
    if package is None or not package.submodule_search_locations:
        return None
    folder = Path(package.submodule_search_locations[0]) / "store/db_migrations/versions"
    text = "\n".join(file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.py")))
    versions = set(re.findall(r"^revision\s*=\s*['\"](\w+)", text, re.MULTILINE))
    newest = versions - set(re.findall(r"^down_revision\s*=\s*['\"](\w+)", text, re.MULTILINE))
    return [*sorted(versions - newest), *newest] if len(newest) == 1 else None


def _query(database: Path, sql: str) -> list[tuple[str, ...]]:
    """Ask the database, read-only; empty when it has no such table."""
    address = f"file:{quote(str(database))}?mode=ro"
    try:
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=1.0)) as connection:
            return connection.execute(sql).fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return []
        raise


def pending_runs(machine: Machine, stack: Stack) -> list[Finding]:
    """Run directories that no store has yet, without those that are being measured now."""
    name, target = "runs left over", located(machine)
    left = [path for path in sorted(target.pending.glob("*")) if path.is_dir() and _is_left(path)]
    if not left:
        return [Finding(name, OK, "none in pending/")]
    total = sum(file.lstat().st_size for path in left for file in path.rglob("*") if file.is_file())
    said = f"{counted(len(left), 'run')} not tracked yet in {target.pending} ({size(total)})"
    typed = f" --root {machine.tracking.root}" if machine.tracking.root else ""
    return [Finding(name, WARNING, said, f"{INGEST}{typed}    (or delete the folders)")]


def _is_left(directory: Path) -> bool:
    process = notes.read(directory).get("process", {})
    return identity.has_ended(process) or process.get("machine") != identity.machine()


def abandoned_runs(machine: Machine, stack: Stack) -> list[Finding]:
    """Runs that the store calls RUNNING though their process is gone."""
    name, database = "abandoned runs", located(machine).database
    if database is None or not database.exists():
        return [Finding(name, NOT_APPLICABLE, "there is no database file to look in")]
    tags = ", ".join(
        f"(SELECT value FROM tags WHERE run_uuid = runs.run_uuid AND key = 'process.{tag}')"
        for tag in PROCESS_TAGS
    )
    running = _query(database, f"SELECT run_uuid, {tags} FROM runs WHERE status = 'RUNNING'")
    gone = [
        str(row[0])
        for row in running
        if identity.has_ended(
            {key: value or "" for key, value in zip(PROCESS_TAGS, row[1:], strict=True)}
        )
    ]
    if not gone:
        return [Finding(name, OK, f"none ({counted(len(running), 'run')} RUNNING)")]
    said = f"{counted(len(gone), 'run')} RUNNING, but the process is gone: {', '.join(gone[:3])}"
    return [Finding(name, WARNING, said, "python -m src.run    (each run closes them as FAILED)")]

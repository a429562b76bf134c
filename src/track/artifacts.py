"""A run directory becomes the run's artifacts: moved, or uploaded and counted.

Called by runs.py. The directory is one of our own, under `pending`; nobody's only copy is here.
Links and pipes in it are left out, never followed (mlflow/mlflow#2672).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from .. import rundir
from ..errors import StoreError
from . import redact
from .connect import patiently
from .store import Store

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

log = logging.getLogger(__name__)

# MLflow's upload over HTTP puts names into addresses unquoted, so these end or change the name.
_UNSENDABLE = re.compile(r"[#?%\\\x00-\x1f\x7f\ud800-\udfff]")

MANY_BYTES = 500 * 1024**2  # proxies and workers were seen to give up from about 800 MB
MANY_FILES = 1000  # 7 s over HTTP against 0.3 s on disk


@dataclass(frozen=True)
class Kept:
    """Where a run directory went."""

    where: str
    """A path, or the run's artifact URI without userinfo."""
    undo: Callable[[], None]
    """Bring a moved directory back, when the run cannot be closed after all."""
    settle: Callable[[], None]
    """Remove the local copy after an upload, when the run is closed."""


def keep(client: MlflowClient, store: Store, run_id: str, artifact_uri: str, source: Path) -> Kept:
    """Make `source` the run's artifacts, with manifest.json written last.

    Raises StoreError, with `source` still in place, when that cannot be done or verified.
    """
    target = local_path(artifact_uri)
    try:
        moves = target is not None and _same_file_system(source, target)
        manifest = _write_manifest(source, run_id, artifact_uri, moved=moves)
        if not manifest["files"]:
            raise StoreError(f"{source}: there is no file in it, so nothing to track.")
        if target is not None and moves:
            _move(source, target)
            return Kept(str(target), undo=lambda: _move_back(target, source), settle=lambda: None)
        _upload(client, store, run_id, source, manifest["files"])
        _verify(client, store, run_id, source, manifest["files"])
    except OSError as error:
        raise StoreError(f"{source}: {error.strerror or error} ({error.filename}).") from error
    return Kept(
        redact.text(artifact_uri),
        undo=lambda: None,
        settle=lambda: shutil.rmtree(source, ignore_errors=True),
    )


def local_path(artifact_uri: str) -> Path | None:
    """Return the folder that a local artifact URI names, None for one that needs an upload."""
    parts = urlsplit(artifact_uri)
    if parts.scheme == "":
        return Path(artifact_uri)
    if parts.scheme == "file" and parts.hostname in (None, "localhost"):
        return Path(unquote(parts.path))
    return None


def _same_file_system(source: Path, target: Path) -> bool:
    target.parent.mkdir(parents=True, exist_ok=True)
    return source.stat().st_dev == target.parent.stat().st_dev


def _write_manifest(source: Path, run_id: str, uri: str, moved: bool) -> dict[str, Any]:
    """Write manifest.json; what an earlier attempt left out stays noted."""
    earlier = rundir.read_json(source / rundir.MANIFEST) or {}
    manifest = rundir.write_manifest(source)
    manifest["skipped"] = {**earlier.get("skipped", {}), **manifest["skipped"]}
    if local_path(uri) is None:
        for name, facts in manifest["files"].items():
            if (stored := stored_name(name)) != name:
                facts["stored_as"] = stored
    manifest["where"] = {
        "run_id": run_id,
        "artifact_uri": redact.text(uri),
        "how": "moved" if moved else "uploaded",
    }
    rundir.write_json(source / rundir.MANIFEST, manifest)
    return manifest


def _move(source: Path, target: Path) -> None:
    """Rename the directory onto the run's artifact folder, which is missing or empty."""
    drop_irregular(source)
    with contextlib.suppress(FileNotFoundError):
        target.rmdir()  # MLflow may have made it; with anything in it this raises
    os.rename(source, target)


def _move_back(target: Path, source: Path) -> None:
    with contextlib.suppress(OSError):
        os.rename(target, source)


def drop_irregular(directory: Path) -> None:
    """Remove links, pipes and sockets, which the manifest names; never what a link points to."""
    for folder, folders, files in os.walk(directory, followlinks=False):
        for name in folders + files:
            path = Path(folder) / name
            mode = path.lstat().st_mode
            if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
                path.unlink()


def _upload(
    client: MlflowClient, store: Store, run_id: str, source: Path, files: dict[str, Any]
) -> None:
    size_bytes = sum(int(facts["size_bytes"]) for facts in files.values())
    if size_bytes > MANY_BYTES or len(files) > MANY_FILES:
        log.warning(
            "Uploading %d files, %.0f MB to %s: this may take minutes, and servers may refuse it.",
            len(files),
            size_bytes / 1e6,
            store.shown_uri,
        )
    for name in [*files, rundir.MANIFEST]:
        stored = Path(files.get(name, {}).get("stored_as", name))
        with _under_name(source / name, stored.name) as path:
            folder = None if stored.parent == Path() else str(stored.parent)
            send = functools.partial(client.log_artifact, run_id, str(path), folder)
            patiently(store, send)


def stored_name(name: str) -> str:
    """Return the name under which an upload can store a file: nearly always its own."""
    if not _UNSENDABLE.search(name):
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{_UNSENDABLE.sub('_', name)}_{mark}"


@contextlib.contextmanager
def _under_name(path: Path, name: str) -> Iterator[Path]:
    """Give a file another base name for the time of its upload."""
    if path.name == name:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(shutil.copy2(path, Path(folder) / name))


def _verify(
    client: MlflowClient, store: Store, run_id: str, source: Path, files: dict[str, Any]
) -> None:
    """Count what arrived: MLflow's uploads can end quietly without a file."""
    wanted = {
        str(facts.get("stored_as", name)): int(facts["size_bytes"]) for name, facts in files.items()
    }
    wanted[rundir.MANIFEST] = (source / rundir.MANIFEST).stat().st_size
    found = patiently(store, lambda: listed(client, run_id))
    wrong = [
        name
        for name, size_bytes in wanted.items()
        if name not in found or found[name] not in (None, size_bytes)
    ]
    if wrong:
        raise StoreError(
            f"{store.shown_uri}: of {len(wanted)} files {len(wrong)} did not arrive whole, the "
            f"first is {wrong[0]}."
        )


def listed(client: MlflowClient, run_id: str, folder: str | None = None) -> dict[str, int | None]:
    """Return path -> size in bytes of all files that the store lists under a run."""
    found: dict[str, int | None] = {}
    for entry in client.list_artifacts(run_id, folder):
        if entry.is_dir:
            found.update(listed(client, run_id, entry.path))
        else:
            found[entry.path] = entry.file_size
    return found

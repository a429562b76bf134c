"""A tracked run's complete directory, brought back from its store and verified.

Called by fetch.py and explore.py. Never changes the store; a directory that does not agree with its
manifest is not left behind.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from .. import rundir
from ..errors import StoreError, UserError
from . import artifacts, query
from .connect import patiently
from .store import Store

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient


def find(client: MlflowClient, store: Store, typed: str) -> Any:
    """Return the run that an id, or its unique beginning, names; UserError without one."""
    run_id = query.by_ids(client, store, [typed])[0].run_id
    return patiently(store, lambda: client.get_run(run_id))


def local_directory(run: Any) -> Path | None:
    """Where a run's files lie on this computer; None when its store keeps them elsewhere."""
    found = artifacts.local_path(str(run.info.artifact_uri))
    return found if found is not None and found.is_dir() else None


def manifest_of(client: MlflowClient, store: Store, run: Any) -> dict[str, Any]:
    """Read a run's manifest.json; UserError when it has none."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            data = rundir.read_json(_one(client, store, run, rundir.MANIFEST, Path(scratch)))
        except StoreError as error:
            raise UserError(
                f"{run.info.run_id}: this run has no {rundir.MANIFEST} ({_first_line(error)}), so "
                f"its files were never tracked in full; its status is {run.info.status}. The run "
                f"directory may still be in {store.pending}."
            ) from None
    if not isinstance(data, dict) or not isinstance(data.get("files"), dict):
        raise StoreError(f"{run.info.run_id}: its {rundir.MANIFEST} is not one of this tool.")
    return data


def fetch(client: MlflowClient, store: Store, run: Any, target: Path) -> int:
    """Bring a run's directory to `target` under the files' own names; returns how many they are.

    Raises StoreError, with nothing left at `target`, for a file that is missing or not as
    manifest.json says.
    """
    manifest = manifest_of(client, store, run)
    files: Mapping[str, Mapping[str, Any]] = manifest["files"]
    _refuse_taken(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for name, facts in files.items():
            _bring(client, store, run, name, facts, part)
        rundir.write_json(part / rundir.MANIFEST, manifest)
        (part / rundir.PROFILE).mkdir(exist_ok=True)
        if target.exists():
            target.rmdir()  # empty
        part.chmod(0o755)
        part.rename(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return len(files)


def _refuse_taken(target: Path) -> None:
    if target.is_dir() and not any(target.iterdir()):
        return
    if target.exists() or target.is_symlink():
        raise UserError(f"{target}: is there already. Type another destination, or move it away.")


def _bring(
    client: MlflowClient,
    store: Store,
    run: Any,
    name: str,
    facts: Mapping[str, Any],
    part: Path,
) -> None:
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts:
        raise StoreError(f"{run.info.run_id}: its manifest names {name}, outside of the run.")
    place = part / pure
    place.parent.mkdir(parents=True, exist_ok=True)
    stored = str(facts.get("stored_as", name))
    with tempfile.TemporaryDirectory(dir=part) as scratch:
        found = _one(client, store, run, stored, Path(scratch))
        if found.is_relative_to(scratch):
            shutil.move(found, place)
        else:
            shutil.copy2(found, place)
    size = place.stat().st_size
    if size != facts.get("size_bytes"):
        raise StoreError(
            f"{run.info.run_id}: {name} came back with {size} bytes; its manifest says "
            f"{facts.get('size_bytes')}. It was changed or cut short in the store."
        )
    if rundir.sha256_of(place) != facts.get("sha256"):
        raise StoreError(
            f"{run.info.run_id}: {name} is not what was tracked: its sha256 is another. It was "
            "changed in the store."
        )


def _one(client: MlflowClient, store: Store, run: Any, stored: str, scratch: Path) -> Path:
    """One file of a run: its place on this computer, or downloaded to `scratch`."""
    folder = local_directory(run)
    if folder is not None:
        path = folder / stored
        if path.is_symlink() or not path.is_file():
            raise StoreError(f"{run.info.run_id}: {stored} is not in {folder}.")
        return path
    run_id = run.info.run_id
    return Path(
        patiently(store, lambda: client.download_artifacts(run_id, stored, str(scratch)))
    ).resolve()


def _first_line(error: StoreError) -> str:
    return str(error).splitlines()[0][:200]

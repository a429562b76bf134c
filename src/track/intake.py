"""A run directory that arrives from somewhere: is it one, is it whole, whose is it, what was it?

Called by ingest.py. A profile that another script captured becomes one, if it is named. Never
changes a directory outside `pending`: it copies it there.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import rundir
from ..errors import UserError
from ..schema import Spec, spec_from_json
from . import foreign, foreign_spec, identity, notes, redact
from .store import Store

SIMULATED_FILES = "*.simulated.json*"


@dataclass(frozen=True)
class Arrival:
    """A run directory as found, before anything is changed."""

    directory: Path
    spec: Spec
    ready: dict[str, Any]
    """What the child said when it was ready, as far as the directory tells."""
    ended: str | None
    error: str | None
    changed: tuple[str, ...]
    """Files that manifest.json describes otherwise, or that are gone."""
    earlier_run_id: str | None
    profile: foreign.Profile | None = None
    """What another script captured; None for a run directory."""

    @property
    def killed(self) -> bool:
        """Did the user stop it?"""
        return self.ended == "killed"

    def tags(self) -> dict[str, str]:
        """Return the tags that say that this run came through ingest."""
        found = {
            "ingested": "true",
            "captured_by": "another script" if self.profile else None,
            "earlier_run_id": self.earlier_run_id,
            "manifest_changed": ", ".join(self.changed),
        }
        return {name: value for name, value in found.items() if value}


def look_at(directory: Path, named: foreign_spec.Named | None = None) -> Arrival:
    """Read a run directory, or a foreign profile that the user has `named`.

    Raises UserError when it is neither, or is still being measured.
    """
    if not directory.exists():
        raise UserError(f"{directory}: no such directory. Type the path of a run directory.")
    named = named or foreign_spec.Named()
    if not (directory / rundir.SPEC).is_file():
        return _foreign(directory, named)
    if named.workload or named.variant:
        raise UserError(
            f"{directory}: its {rundir.SPEC} says what was run, so --workload and --variant are "
            "for profiles of other scripts. Leave them out."
        )
    spec = _spec(directory)
    spec = replace(spec, tags={**spec.tags, **named.tags})
    noted = notes.read(directory)
    process = noted.get("process") or {}
    if process.get("machine") == identity.machine() and not identity.has_ended(process):
        raise UserError(
            f"{directory}: process {process.get('pid')} is still at work on it. Wait until it has "
            "ended, then type this again."
        )
    manifest = rundir.read_json(directory / rundir.MANIFEST) or {}
    error_file = directory / rundir.ERROR
    ended = noted.get("ended")
    failed = ended in ("failed", None) and error_file.is_file()
    return Arrival(
        directory=directory,
        spec=spec,
        ready=_ready(directory, spec, noted),
        ended=ended,
        error=error_file.read_text(encoding="utf-8", errors="replace").strip() if failed else None,
        changed=tuple(_changed(directory, manifest.get("files") or {})),
        earlier_run_id=(manifest.get("where") or {}).get("run_id"),
    )


def _foreign(directory: Path, named: foreign_spec.Named) -> Arrival:
    inside = sorted(path.parent.name for path in directory.glob(f"*/{rundir.SPEC}"))
    if inside:
        raise UserError(
            f"{directory}: no {rundir.SPEC} in it, so it is no run directory. Did you mean "
            f"{directory / inside[0]}?"
        )
    profile = foreign.read(directory)
    if profile is None:
        raise UserError(
            f"{directory}: no {rundir.SPEC} in it, so it is no run directory, and no file of a "
            "profiler either. Run directories are the folders in <tracking.root>/pending, and the "
            "artifacts of a run."
        )
    spec = foreign_spec.make(directory, profile, named)
    known = ("device", "chip", "lnc", "versions")
    return Arrival(
        directory=directory,
        spec=spec,
        ready={key: profile.environment.get(key) for key in known},
        ended=None,
        error=None,
        changed=(),
        earlier_run_id=None,
        profile=profile,
    )


def _spec(directory: Path) -> Spec:
    data = rundir.read_json(directory / rundir.SPEC)
    try:
        return spec_from_json(data)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{directory / rundir.SPEC}: not a specification of a run "
            f"({type(error).__name__}: {error}). Was it changed by hand?"
        ) from None


def _ready(directory: Path, spec: Spec, noted: Mapping[str, Any]) -> dict[str, Any]:
    """Gather what was known at the start; any sign of the simulator makes the run simulated."""
    environment = rundir.read_json(directory / rundir.ENVIRONMENT) or {}
    known = ("device", "chip", "lnc", "versions")
    ready = {key: environment.get(key) for key in known} | dict(noted.get("ready") or {})
    operators = rundir.read_json(directory / rundir.OPERATORS) or {}
    signs = (ready.get("device"), environment.get("device"), operators.get("device_time_source"))
    simulated = "simulated" in (*signs, spec.config.device.name)
    if simulated or any((directory / rundir.PROFILE).rglob(SIMULATED_FILES)):
        ready["device"] = "simulated"
    elif not ready.get("device"):
        ready["device"] = "neuron" if spec.config.device.name == "neuron" else "unknown"
    return ready


def _changed(directory: Path, files: Mapping[str, Any]) -> list[str]:
    """Name the files that are not as manifest.json says; the parent's own may be newer."""
    rewritten = (rundir.SUMMARY, rundir.HEALTH, rundir.REPORT, rundir.ERROR, notes.NOTES)
    changed = []
    for name, facts in files.items():
        path = directory / name
        if not path.is_file():
            path = directory / facts.get("stored_as", name)  # as an upload had to name it
        if not path.is_file():
            changed.append(f"{name} (missing)")
        elif name not in rewritten and rundir.sha256_of(path) != facts.get("sha256"):
            changed.append(name)
    return changed


def bring_in(arrival: Arrival, store: Store) -> tuple[Path, bool]:
    """Return a directory under the store's `pending`, and whether it is a copy made here."""
    source = arrival.directory.resolve()
    if arrival.profile is not None:
        return _arranged(arrival, arrival.profile, source, store), True
    if source.parent == store.pending.resolve():
        return source, False
    copy = rundir.create(store.pending, arrival.spec.job)
    try:
        _copy(source, copy)
    except BaseException:
        shutil.rmtree(copy, ignore_errors=True)
        raise
    return copy, True


def _arranged(arrival: Arrival, profile: foreign.Profile, source: Path, store: Store) -> Path:
    """Make a run directory of a foreign profile: its files as profile/, and what they tell."""
    made = rundir.create(store.pending, arrival.spec.job)
    try:
        if source.is_file():
            ending = ".gz" if source.suffix == ".gz" else ""
            shutil.copy2(source, made / rundir.PROFILE / f"trace.json{ending}")
        else:
            _copy(source, made / rundir.PROFILE)
        explored = made / rundir.PROFILE / rundir.EXPLORER
        if explored.is_file():
            explored.rename(made / rundir.EXPLORER)
        rundir.write_json(made / rundir.SPEC, redact.tree(arrival.spec.to_json()))
        rundir.write_json(made / rundir.ENVIRONMENT, profile.environment)
        rundir.write_operators(made, profile.operators)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return made


def _copy(source: Path, target: Path) -> None:
    for path in rundir.regular_files(source)[0]:
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place)

"""The run directory: the names and types of its files, and its manifest. The truth about one run.

The child writes what it measured, the parent what it made of it; tracking and ingest only read.
Never touches a tracking store or a device.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from .errors import UserError

FORMAT = 1  # of operators.json and manifest.json; raised when a reader must know
SPEC = "spec.json"
PROFILE = "profile"
OPERATORS = "operators.json"
NUMERICS = "numerics.json"
PHASES = "phases.json"
ENVIRONMENT = "environment.json"
WORK = "work.json"
"""What one step does: bytes_moved, flops, dtype, tokens; null where nobody says."""
LATENCY = "latency.json"
"""Host times of unprofiled steps: synchronized_us (a list), pipelined_us_per_step, steps."""
MEMORY = "memory.json"
"""peak_allocated_bytes of the device over one step; null where the device does not tell."""
EXPLORER = "explorer.json"
"""What neuron-explorer read from the profile; only where it was asked to."""
NEFF_PAIRS = "neff_pairs.json"
CHILD_LOG = "child.log"
SUMMARY = "summary.json"
HEALTH = "health.json"
REPORT = "report.md"
ERROR = "error.txt"
MANIFEST = "manifest.json"
LEFT_OUT = "left_out.json"
"""Files of the profiler that are not kept, as relative path -> reason; part of the manifest."""


@dataclass(frozen=True)
class OperatorRow:
    """One row of the profiler's table over one window. Times in microseconds."""

    name: str
    calls: int
    self_cpu_us: float
    cpu_total_us: float
    self_neuron_us: float | None = None
    """Device time of this row's own executions; None when it has none or the source is missing."""
    annotation: bool = False
    """A user annotation such as ProfilerStep#0, not an operator."""


@dataclass(frozen=True)
class Window:
    """One profiled window: `steps` calls of the step."""

    steps: int
    operators: tuple[OperatorRow, ...]
    self_cpu_total_us: float | None
    session_dir: str | None = None
    """The window's session folder, relative to profile/; None when none appeared."""
    executions: int | None = None
    """Device executions (NEFF runs) of the window; None when they cannot be counted."""
    self_neuron_by_core_us: dict[str, float] = field(default_factory=dict)
    compiles: int = 0
    """Graphs that Dynamo compiled inside the window."""
    new_neffs: int | None = None
    """NEFFs that appeared in the cache during the window; None when there is no cache to watch."""
    executions_us: float | None = None
    """Length of the device executions, merged over physical cores; None when it is not known."""
    host_us: float | None = None
    """Host time of the window's steps under the profiler, synchronized, without starting it."""


@dataclass(frozen=True)
class NeffCache:
    """The NEFF cache around the step's first call, which compiles what the cache does not have."""

    directory: str
    state: str
    """cold: the first call added NEFFs; warm: it added none. A new NEFF is a miss."""
    misses: int
    """NEFFs that the first call added."""
    size: int
    """NEFFs in the cache after it."""


@dataclass(frozen=True)
class Operators:
    """operators.json: what the profiler's table said, window by window."""

    device_time_source: str | None
    """key_averages, neuron_explorer or simulated; None when no lawful source gave device time."""
    windows: tuple[Window, ...]
    fallback_operators: tuple[str, ...] | None = None
    """Operators that fell back to the CPU; None = cannot tell."""
    dropped_keywords: tuple[str, ...] = ()
    """Optional keywords that the installed NeuronConfig refused."""
    neff_cache: NeffCache | None = None
    """None: the cache is off, or the device has none."""
    fallback_source: str | None = None
    """torch_neuronx (its own list) or trace (the shape of the profiler's rows)."""


def write_json(path: Path, data: Any) -> None:
    """Write JSON so that a reader never sees half a file."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(part, path)


def read_json(path: Path) -> Any:
    """Return the parsed file, or None when there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise UserError(f"{path}: not a JSON file ({error}). Is it cut short?") from None


def write_operators(directory: Path, operators: Operators) -> None:
    """Write operators.json."""
    write_json(directory / OPERATORS, {"format": FORMAT, **asdict(operators)})


def read_operators(directory: Path) -> Operators | None:
    """Read operators.json; None when the run did not get that far."""
    data = read_json(directory / OPERATORS)
    if data is None:
        return None
    windows = tuple(
        Window(
            **{
                **_known(Window, window),
                "operators": tuple(
                    OperatorRow(**_known(OperatorRow, row)) for row in window["operators"]
                ),
            }
        )
        for window in data["windows"]
    )
    fallback = data["fallback_operators"]
    return Operators(
        device_time_source=data["device_time_source"],
        windows=windows,
        fallback_operators=None if fallback is None else tuple(fallback),
        dropped_keywords=tuple(data["dropped_keywords"]),
        neff_cache=NeffCache(**data["neff_cache"]) if data.get("neff_cache") else None,
        fallback_source=data.get("fallback_source"),
    )


def _known(cls: type, data: dict[str, Any]) -> dict[str, Any]:
    """Leave out what another version of this project has added."""
    return {key: value for key, value in data.items() if key in {f.name for f in fields(cls)}}


def create(pending: Path, job: int) -> Path:
    """Make a fresh `<UTC stamp>-<pid>-<job>` directory with an empty profile/ under `pending`."""
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
    directory = pending / f"{stamp}-{os.getpid()}-{job}"
    (directory / PROFILE).mkdir(parents=True)
    return directory


def regular_files(directory: Path) -> tuple[list[Path], dict[str, str]]:
    """List the files to keep, sorted, and what is left out with the reason, by relative path.

    Links, pipes, sockets and empty directories are left out: MLflow's upload breaks on some of
    them and follows others out of the directory (mlflow/mlflow#2672).
    """
    kept: list[Path] = []
    skipped: dict[str, str] = {}
    for path in _walk(directory):
        name = str(path.relative_to(directory))
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) and os.access(path, os.R_OK):
            kept.append(path)
        elif stat.S_ISREG(mode):
            skipped[name] = "not readable"
        elif stat.S_ISLNK(mode):
            skipped[name] = f"symbolic link to {os.readlink(path)}"
        elif stat.S_ISDIR(mode):
            skipped[name] = "empty directory"
        else:
            skipped[name] = "not a regular file"
    return sorted(kept), skipped


def _walk(directory: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(directory, followlinks=False):
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        if not folders and not files and Path(folder) != directory:
            yield Path(folder)
        yield from (Path(folder) / name for name in files + links)


def write_manifest(directory: Path) -> dict[str, Any]:
    """Write manifest.json over every other file of the directory, and return it.

    Each file's size in bytes and sha256; what was skipped, with the reason.
    """
    kept, skipped = regular_files(directory)
    skipped.update(read_json(directory / LEFT_OUT) or {})
    files = {
        str(path.relative_to(directory)): {
            "size_bytes": path.stat().st_size,
            "sha256": sha256_of(path),
        }
        for path in kept
        if path.relative_to(directory) != Path(MANIFEST)
    }
    manifest = {"format": FORMAT, "files": files, "skipped": skipped}
    write_json(directory / MANIFEST, manifest)
    return manifest


def sha256_of(path: Path) -> str:
    """Return the hex digest of a file's content, read in blocks."""
    digest = hashlib.sha256()  # hashlib.file_digest needs Python 3.11
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()

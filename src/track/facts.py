"""What is written about a run beside its metrics: its name, parameters, tags and description.

Called by runs.py. Pure, but for the user's name and the process's own tags.
"""

from __future__ import annotations

import dataclasses
import getpass
from collections.abc import Iterator, Mapping
from typing import Any

from .. import workload_rules
from ..rules import format_shape
from ..schema import Spec
from . import identity, names, redact

LONGEST_PARAM = 500  # MLflow 3.17 takes 6,000, servers since 1.28 500; all of it is in spec.json
LONGEST_TAG = 5000  # MLflow 3.17 takes 8,000, older servers 5,000
PID, MACHINE, STARTED = "process.pid", "process.machine", "process.started"
DIRECTORY = "run_directory"
SOURCE = "device_time_source"
SIMULATED_NOTE = (
    "**simulated**: device times come from a cost model and host times are this computer's "
    "Python. Neither is a measurement of Trainium."
)
NOT_PARAMS = ("tracking", "sweep")  # say where the run goes and what is around it, not what it is


def run_name(spec: Spec, simulated: bool) -> str:
    """Return for example `rms_norm compiled 1x2048x4096 bfloat16 nc0`."""
    config = spec.config
    if spec.captured_elsewhere:
        words = [config.workload.name, config.variant.name]
        return " ".join(["sim", *words] if simulated else words)
    words = [
        workload_rules.title(config),
        config.variant.name,
        *workload_rules.input_words(config.input),
        config.input.dtype,
        f"nc{config.cores}",
    ]
    return " ".join(["sim", *words] if simulated else words)


def params(spec: Spec, device: str) -> dict[str, str]:
    """Return the chosen options, the input's dimensions, then the flattened configuration."""
    if spec.captured_elsewhere:
        return _known_elsewhere(spec, device)
    found: dict[str, Any] = {**spec.choices, "device": device}
    found.pop("tracking", None)
    shape = spec.config.input.shape
    if isinstance(shape, (list, tuple)):
        found.update({f"dim{n}": size for n, size in enumerate(shape)})
        found["input.shape"] = format_shape(shape)
    else:  # sizes by name; those that were not typed are the target's own
        found["input.shape"] = " ".join(workload_rules.input_words(spec.config.input)) or "default"
    found["concurrent_jobs"] = spec.concurrent_jobs
    found["profiler.modes"] = "+".join(spec.config.profiler.modes)
    config = redact.tree(dataclasses.asdict(spec.config))
    for group in NOT_PARAMS:
        config.pop(group, None)
    if device != "simulated":
        for simulators_own in ("cost", "memory_bytes", "cores"):
            config["device"].pop(simulators_own, None)
    for key, value in _scalars(config):
        if not key.endswith(".name"):
            found.setdefault(key, value)
    keys = names.keys_of(found, spec.config.tracking.strict_names)
    return {keys[name]: names.cut(str(value), LONGEST_PARAM) for name, value in found.items()}


def _known_elsewhere(spec: Spec, device: str) -> dict[str, str]:
    """What a profile of another script tells; none of this tool's defaults."""
    profiler = spec.config.profiler
    found = {
        **{group: spec.choices[group] for group in ("workload", "variant", "input", "profiler")},
        "device": device,
        "profiler.modes": "+".join(profiler.modes),
        "profiler.steps": profiler.steps,
        "profiler.repeats": profiler.repeats,
    }
    return {name: names.cut(str(value), LONGEST_PARAM) for name, value in found.items()}


def _scalars(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _scalars(value, f"{prefix}{key}.")
        elif value is not None and not isinstance(value, (list, tuple)):
            yield f"{prefix}{key}", value


def tags(spec: Spec, ready: Mapping[str, Any], directory: str) -> dict[str, str]:
    """Return the tags that a run has from its start."""
    user = spec.config.tracking.user
    commit = ready.get("git_commit")
    found: dict[str, Any] = {
        **spec.tags,
        "kind": "profile",
        "device": ready.get("device"),
        "device_name": ready.get("device_name"),
        "chip": ready.get("chip"),
        "lnc": ready.get("lnc"),
        "cores": ready.get("cores"),
        "sweep_id": spec.sweep_id,
        "job": spec.job if spec.sweep_id else None,
        "measurement_id": ready.get("measurement_id"),
        "git_commit": commit,
        "overrides": " ".join(redact.override(typed) for typed in spec.overrides) or None,
        "mlflow.source.git.commit": str(commit).partition("-")[0] if commit else None,
        "mlflow.source.name": f"python -m src.{'ingest' if spec.captured_elsewhere else 'run'}",
        "mlflow.source.type": "LOCAL",
        "mlflow.user": user if user is not None else _login(),
        "mlflow.note.content": _note(spec, ready.get("device") == "simulated"),
        DIRECTORY: directory,
        **process_tags(),
    }
    for package, version in (ready.get("versions") or {}).items():
        found[f"version.{package}"] = version
    return as_tags(found)


def as_tags(found: Mapping[str, Any]) -> dict[str, str]:
    """Make tags that the store takes: clean keys, no secrets, nothing for None."""
    present = {name: value for name, value in found.items() if value is not None}
    keys = names.keys_of(present)
    hidden = redact.tree({name: str(value) for name, value in present.items()})
    return {keys[name]: names.cut(value, LONGEST_TAG) for name, value in hidden.items()}


def process_tags() -> dict[str, str]:
    """Name the process that must close the run, for the janitor."""
    return {f"process.{name}": value for name, value in identity.this_process().items()}


def _note(spec: Spec, simulated: bool) -> str | None:
    parts = [SIMULATED_NOTE] if simulated else []
    return "\n\n".join([*parts, *([spec.description] if spec.description else [])]) or None


def _login() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container without an entry for this user
        return None

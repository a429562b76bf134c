"""What a configuration may say: parsing of shapes and core lists, and the rules between fields.

Called by run.py before anything is started. Pure: reads no file, device, network or environment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from . import workload_rules
from .errors import UserError, nearest
from .schema import (
    ANNOTATIONS,
    DTYPES,
    EXECUTIONS,
    EXPLORERS,
    MISSING,
    NUMERICS,
    ORDERS,
    PROFILE_MODES,
    SCOPES,
    SYNCS,
    Config,
    ProfilerConfig,
)

HIGHEST_CORE = 1023  # far above the 128 logical cores of a trn2.48xlarge under LNC1
MOST_ELEMENTS = 2**40  # 2 TiB in bfloat16: no device holds more
HARDWARE_WARMUP = 3  # neuron_api: at least three warm-up calls with the same shapes
SHAPE_FORMS = "8x2048x4096 or [8,2048,4096], each size a whole number from 1"
CORE_FORMS = "0, 0-3 or 0,2-5 (in the shell: \"cores='0,2-5'\")"
URI_SCHEMES = ("sqlite", "http", "https", "postgresql", "mysql", "mssql", "databricks", "uc")


def parse_shape(typed: Any, key: str = "input.shape") -> list[int]:
    """Return the sizes that `typed` names: a list, or text like 8x2048x4096 or 8,2048,4096.

    Raises UserError for anything else, and for sizes below 1.
    """
    parts = re.split(r"[x,]", typed.strip()) if isinstance(typed, str) else typed
    if isinstance(parts, int) and not isinstance(parts, bool):
        parts = [parts]
    sizes = _whole_numbers(parts)
    if not sizes or min(sizes) < 1:
        raise UserError(f"{key}={_shown(typed)}: not a shape. Type {key}={SHAPE_FORMS}.")
    if math.prod(sizes) > MOST_ELEMENTS:
        raise UserError(
            f"{key}={_shown(typed)}: {math.prod(sizes):,} elements; at most {MOST_ELEMENTS:,} are "
            f"allowed. Type a smaller shape, for example {key}=1x2048x4096."
        )
    return sizes


def _whole_numbers(parts: Any) -> list[int] | None:
    if isinstance(parts, (str, bytes)) or not isinstance(parts, Iterable):
        return None
    sizes = []
    for part in parts:
        if isinstance(part, bool) or not re.fullmatch(r"[0-9]{1,18}", str(part).strip(), re.ASCII):
            return None
        sizes.append(int(part))
    return sizes


def format_shape(sizes: Iterable[int]) -> str:
    """The one way a shape is written: 8x2048x4096."""
    return "x".join(str(size) for size in sizes)


def parse_cores(typed: Any, key: str = "cores") -> list[int]:
    """Return the logical NeuronCores that a list like 0,2-5 names, in ascending order.

    Raises UserError for other forms, reversed ranges, repeats, and numbers above 1023.
    """
    text = str(typed).strip()
    cores: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part.strip(), re.ASCII)
        if not match:
            raise UserError(f"{key}={_shown(typed)}: not a core list. Type {key}={CORE_FORMS}.")
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        if last < first:
            raise UserError(
                f"{key}={_shown(typed)}: the range {part.strip()} runs backwards. "
                f"Type {key}={last}-{first}."
            )
        if last > HIGHEST_CORE:
            raise UserError(
                f"{key}={_shown(typed)}: there is no NeuronCore {last} (0 to {HIGHEST_CORE} are "
                f"allowed). Type {key}={CORE_FORMS}."
            )
        cores.extend(range(first, last + 1))
    if len(set(cores)) != len(cores):
        raise UserError(
            f"{key}={_shown(typed)}: a core is named twice. Type {key}={format_cores(set(cores))}."
        )
    return sorted(cores)


def format_cores(cores: Iterable[int]) -> str:
    """The one way a core list is written: ascending, runs as ranges, for example 0,2-5."""
    runs: list[list[int]] = []
    for core in sorted(cores):
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def checked(config: Config) -> Config:
    """Return the configuration in canonical form, or raise UserError for the first broken rule."""
    _refuse_missing(config)
    shape = None if config.input.shape is None else parse_shape(config.input.shape)
    dims = workload_rules.checked_dims(config)
    cores = parse_cores(config.cores)
    _one_of("input.dtype", config.input.dtype, DTYPES)
    _one_of("execution", config.execution, EXECUTIONS)
    _one_of("workload.numerics", config.workload.numerics, NUMERICS)
    _check_annotate(config)
    _one_of("explorer", config.explorer, EXPLORERS)
    _one_of("profiler.sync", config.profiler.sync, SYNCS)
    _one_of("sweep.order", config.sweep.order, ORDERS)
    if config.variant.compile:
        _one_of("variant.compile.scope", config.variant.compile.scope, SCOPES)
    workload_rules.check(config)
    _check_cores(config, cores)
    _check_uri(config.tracking.uri)
    if not (math.isfinite(config.explorer_timeout_s) and config.explorer_timeout_s > 0):
        raise UserError(
            f"explorer_timeout_s={config.explorer_timeout_s}: not a time limit. Type a number of "
            "seconds above 0, for example explorer_timeout_s=600."
        )
    tolerance = config.workload.tolerance
    if tolerance is not None and not (math.isfinite(tolerance) and tolerance > 0):
        raise UserError(
            f"workload.tolerance={tolerance}: not a tolerance. Type a number above 0, for "
            "example workload.tolerance=2e-2."
        )
    return replace(
        config,
        input=replace(config.input, shape=shape, dims=dims),
        cores=format_cores(cores),
        profiler=_checked_profiler(config.profiler, cores, config.device.name),
        device=replace(config.device, env=_checked_env(config.device.env)),
    )


def _refuse_missing(config: Config) -> None:
    for group in ("workload", "variant", "input", "profiler", "device", "tracking"):
        for name, value in vars(getattr(config, group)).items():
            if value == MISSING:
                raise UserError(f"{group}.{name}: no value. Type {group}.{name}=<value>.")


def _check_annotate(config: Config) -> None:
    annotate = config.workload.annotate
    if annotate is None:
        return
    _one_of("workload.annotate", annotate, ANNOTATIONS)
    if config.workload.target is None:
        raise UserError(
            f"workload.annotate={annotate}: workload '{config.workload.name}' is a function "
            "without modules. Leave it out, or type workload=custom workload.target=<your model>."
        )
    if config.variant.compile is not None:
        raise UserError(
            f"workload.annotate={annotate}: inside a compiled graph there are no modules to mark "
            f"(variant={config.variant.name}). Type variant=naive."
        )


def _check_cores(config: Config, cores: list[int]) -> None:
    uses = config.workload.uses_cores
    if len(cores) > uses:
        raise UserError(
            f"cores={config.cores}: {len(cores)} NeuronCores, but workload "
            f"'{config.workload.name}' uses {uses}; the others would be taken and stay idle. "
            f"Type cores={format_cores(cores[:uses])}, or sweep: -m cores={_each(cores)}."
        )


def _each(cores: list[int]) -> str:
    return ",".join(str(core) for core in cores[:8]) + (",..." if len(cores) > 8 else "")


def _checked_profiler(profiler: ProfilerConfig, cores: list[int], device: str) -> ProfilerConfig:
    modes = [str(mode).upper() for mode in profiler.modes]
    if not modes:
        raise UserError(f"profiler.modes=[]: no mode. Pick from {', '.join(PROFILE_MODES)}.")
    for mode in modes:
        _one_of("profiler.modes", mode, PROFILE_MODES)
    lowest = HARDWARE_WARMUP if device == "neuron" else 0
    _at_least("profiler.warmup", profiler.warmup, lowest)
    _at_least("profiler.steps", profiler.steps, 1)
    _at_least("profiler.repeats", profiler.repeats, 1)
    _at_least("profiler.latency_calls", profiler.latency_calls, 0)
    _at_least("profiler.max_events_per_nc", profiler.max_events_per_nc, 1)
    for name, value in vars(profiler.schedule).items():
        _at_least(f"profiler.schedule.{name}", value, 0)
    capture = profiler.capture_cores
    if capture is not None:
        traced = parse_cores(capture, "profiler.capture_cores")
        if not set(traced) <= set(cores):
            raise UserError(
                f"profiler.capture_cores={capture}: the run takes cores={format_cores(cores)} and "
                f"can trace only those. Type profiler.capture_cores={format_cores(cores)}."
            )
        capture = format_cores(traced)
    return replace(profiler, modes=list(dict.fromkeys(modes)), capture_cores=capture)


def _checked_env(env: Any) -> dict[str, str | None]:
    if env is not None and not isinstance(env, Mapping):
        raise UserError(
            f"device.env={_shown(env)}: no set of variables. Type device.env.NAME=value for each."
        )
    checked_env: dict[str, str | None] = {}
    for name, value in (env or {}).items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", str(name), re.ASCII):
            raise UserError(
                f"device.env.{name}: not the name of an environment variable. Use letters, digits "
                "and _, for example device.env.NEURON_RT_LOG_LEVEL=INFO."
            )
        if isinstance(value, (Mapping, list, tuple)):
            raise UserError(f"device.env.{name}: {value!r} is not text. Give one value.")
        text = str(int(value)) if isinstance(value, bool) else str(value)
        checked_env[str(name)] = None if value is None else text
    return checked_env


def _check_uri(uri: str | None) -> None:
    if uri is None:
        return
    scheme = urlsplit(uri).scheme.split("+")[0]
    if scheme not in URI_SCHEMES and uri != "databricks":
        raise UserError(
            f"tracking.uri={uri}: MLflow no longer takes a folder or a file: address as a store. "
            "Type tracking.root=<folder> for a local store, tracking.uri=sqlite:////abs/mlflow.db "
            "or, for a server, tracking.uri=http://host:5000."
        )


def _at_least(key: str, value: int | None, lowest: int) -> None:
    if value is not None and value < lowest:
        why = " on hardware" if lowest == HARDWARE_WARMUP else ""
        raise UserError(
            f"{key}={value}: at least {lowest}{why}. Type {key}={lowest} or a larger number."
        )


def _one_of(key: str, typed: str, allowed: tuple[str, ...]) -> None:
    if typed not in allowed:
        match = nearest(typed, allowed)
        hint = f" Did you mean {key}={match}?" if match else f" Type {key}={allowed[0]}."
        raise UserError(f"{key}={typed}: not one of {', '.join(allowed)}.{hint}")


def _shown(typed: Any) -> str:
    text = str(typed).replace(" ", "")
    return f"'{text}'" if text == "" or len(text) > 60 else text

"""What workload, variant and input may say together, and their names in words.

Called by rules.py, and by whoever writes a run's name. Pure, like rules.py.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import UserError
from .schema import Config, InputConfig

CUSTOM = "custom"
_TARGET = re.compile(r"(?P<where>.+):(?P<function>[A-Za-z_]\w*)")
_TARGET_FORM = "workload.target=path/model.py:build or workload.target=package.model:build"


def checked_dims(config: Config) -> dict[str, int]:
    """Return input.dims as whole numbers by name, or raise UserError for the first that is none."""
    found: dict[str, int] = {}
    for name, value in (config.input.dims or {}).items():
        _refuse_unusable(f"input.dims.{name}", str(name))
        if not isinstance(value, int) or isinstance(value, bool):
            raise UserError(
                f"input.dims.{name}={value}: not a size. Type input.dims.{name}=<whole number>."
            )
        found[str(name)] = value
    for name, value in _sizes(config.input, found):
        if value < 1:
            raise UserError(f"input.{name}={value}: at least 1. Type input.{name}=1 or more.")
    return found


def check(config: Config) -> None:
    """Raise UserError for the first rule between workload, variant and input that is broken."""
    _check_compile(config)
    if config.workload.name == CUSTOM:
        _check_custom(config)
    else:
        _check_builtin(config)


def experiment_of(config: Config) -> str:
    """The experiment's name where none was typed: rms_norm, or llama.build for a custom target."""
    match = _TARGET.fullmatch(config.workload.target or "")
    if not match:
        return config.workload.name
    stem = re.split(r"[/\\]", match["where"].removesuffix(".py"))[-1].rpartition(".")[2]
    return f"{stem}.{match['function']}"


def title(config: Config) -> str:
    """The workload in a run's name: rms_norm, `attention decode`, `llama.build prefill`."""
    phase = config.workload.phase
    return f"{experiment_of(config)} {phase}" if phase else experiment_of(config)


def sizes(given: InputConfig) -> dict[str, int]:
    """The input's sizes by name, as they were typed; empty where a shape says it all."""
    return dict(_sizes(given, given.dims or {}))


def input_words(given: InputConfig) -> list[str]:
    """The input's sizes as a run's name has them: 1x2048x4096, or batch=4 and seq=128."""
    shape = given.shape
    words = [f"{name}={size}" for name, size in sizes(given).items()]
    if shape is not None:
        words.insert(0, "x".join(map(str, shape)) if isinstance(shape, (list, tuple)) else shape)
    return words


def target_parts(target: str) -> tuple[str, str]:
    """Split path/file.py:function or package.module:function."""
    match = _TARGET.fullmatch(target)
    if not match:
        raise UserError(f"workload.target={target}: not a target. Type {_TARGET_FORM}.")
    return match["where"], match["function"]


def _sizes(given: InputConfig, dims: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name in ("batch", "seq"):
        value = getattr(given, name)
        if value is not None:
            yield name, value
    yield from dims.items()


def _check_custom(config: Config) -> None:
    workload = config.workload
    if workload.target is None:
        raise UserError(f"workload=custom: which one? Type {_TARGET_FORM}.")
    target_parts(workload.target)
    for name in workload.kwargs or {}:
        _refuse_unusable(f"workload.kwargs.{name}", str(name))
    twice = set(workload.kwargs or {}) & set(sizes(config.input))
    if twice:
        name = sorted(twice)[0]
        raise UserError(
            f"workload.kwargs.{name}: the input has a size of this name. Type one of the two."
        )


def _check_builtin(config: Config) -> None:
    workload, name = config.workload, config.workload.name
    if workload.target is not None or workload.kwargs:
        key = "target" if workload.target is not None else "kwargs"
        raise UserError(
            f"workload.{key}: workload '{name}' is built in and takes none. Type workload=custom "
            "for a model of your own."
        )
    if config.input.shape is None or sizes(config.input):
        first = next(iter(sizes(config.input)), None)
        typed = f"input.{first}" if first else f"input={config.input.name}"
        raise UserError(
            f"{typed}: sizes by name are for workload=custom; '{name}' takes a shape. Type "
            "input.shape=1x2048x4096 (batch x sequence x hidden)."
        )
    if workload.phase not in workload.phases and (workload.phase or workload.phases):
        why = f"workload '{name}' has no phases; attention has. Leave it out."
        if workload.phases:
            why = f"not one of {', '.join(workload.phases)}. Type workload.phase="
            why += f"{workload.phases[0]}."
        raise UserError(f"workload.phase={workload.phase}: {why}")
    wanted = config.variant.implementation
    if wanted not in workload.implementations:
        has = ", ".join(workload.implementations) or "none"
        raise UserError(
            f"variant={config.variant.name}: workload '{name}' has no '{wanted}' implementation "
            f"(it has: {has}). Pick a variant that uses one of those, or add it in "
            f"src/measure/workloads/{name}.py."
        )


def _check_compile(config: Config) -> None:
    compiled = config.variant.compile
    if compiled and compiled.dynamic:
        raise UserError(
            "variant.compile.dynamic=true: the neuron backend refuses dynamic shapes; each shape "
            "is compiled on its own. Type variant.compile.dynamic=false."
        )
    if compiled and compiled.scope == "layers" and config.workload.name != CUSTOM:
        raise UserError(
            f"variant={config.variant.name}: compiles the layers of a model one by one, and "
            f"workload '{config.workload.name}' has none. Type variant=compiled, or "
            "workload=custom with a model that has an nn.ModuleList."
        )


def _refuse_unusable(key: str, name: str) -> None:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UserError(
            f"{key}: not a name that a Python argument can have. Use letters, digits and _, for "
            f"example {key.removesuffix(name)}layers=2."
        )

"""workload=custom: the user's `build` function -> a Workload. docs/your_own_model.md: its contract.

Called by variants.py, after the device is open and before the run exists, so that a slip in the
user's file is one message and leaves nothing behind.
"""

from __future__ import annotations

import copy
import inspect
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..errors import UserError, nearest
from ..schema import Config
from ..workload_rules import sizes
from . import host, target
from .workload import Work, Workload, float32

KEYS = ("model", "inputs", "reference", "reset", "bytes_moved", "flops", "tokens")
OFFERED = ("dtype", "seed", "device")
"""Arguments that `build` gets when it has a parameter of that name."""


@dataclass(frozen=True)
class _Named:
    """How the target was typed, for messages."""

    target: str
    function: str

    def refuse(self, what: str) -> UserError:
        return UserError(f"workload.target={self.target}: {what}")


def load(config: Config, device: torch.device) -> Workload:
    """Import the target, call it, and check what it returns."""
    assert config.workload.target is not None  # rules.checked
    build, name = target.load(config.workload.target)
    named = _Named(config.workload.target, name)
    arguments = _arguments(build, config, device, named)
    try:
        made = build(**arguments)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        raise named.refuse(f"{name} raised {target.words(error)}. Mend it there.") from error
    return _workload(_parts(made, named), config, "dtype" in arguments, named)


def _arguments(
    build: Callable[..., Any], config: Config, device: torch.device, named: _Named
) -> dict[str, Any]:
    """What was typed must all be taken; what the function needs must all be there."""
    parameters = inspect.signature(build).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    names = [p.name for p in parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]  # fmt: skip  # noqa: E501
    typed: dict[str, tuple[str, Any]] = {
        key: (f"input.{key}" if key in ("batch", "seq") else f"input.dims.{key}", value)
        for key, value in sizes(config.input).items()
    }
    if config.input.shape is not None:
        typed["shape"] = ("input.shape", list(config.input.shape))
    if config.workload.phase is not None:
        typed["phase"] = ("workload.phase", config.workload.phase)
    typed |= {k: (f"workload.kwargs.{k}", v) for k, v in (config.workload.kwargs or {}).items()}
    for key, (said, value) in typed.items():
        if key not in names and not takes_any:
            close = nearest(key, names)
            hint = f" Did you mean '{close}'?" if close else ""
            raise named.refuse(
                f"{said}={value}: {named.function} has no parameter '{key}' (it has: "
                f"{', '.join(names) or 'none'}).{hint} Leave it out, or add it to {named.function}."
            )
    offered = {"dtype": getattr(torch, config.input.dtype), "seed": config.input.seed, "device": device}  # fmt: skip  # noqa: E501
    arguments = {key: value for key, value in offered.items() if key in names}
    arguments |= {key: value for key, (_, value) in typed.items()}
    for parameter in parameters.values():
        needed = parameter.default is parameter.empty and parameter.name in names
        if needed and parameter.name not in arguments:
            key = parameter.name
            how = f"input.{key}=<n>" if key in ("batch", "seq") else f"workload.kwargs.{key}=<value> or input.dims.{key}=<n>"  # fmt: skip  # noqa: E501
            raise named.refuse(f"{named.function} needs '{key}'. Type {how}.")
    return arguments


def _parts(made: Any, named: _Named) -> dict[str, Any]:
    """Either (model, inputs) or a mapping with KEYS."""
    if isinstance(made, tuple) and len(made) == 2:
        made = {"model": made[0], "inputs": made[1]}
    form = 'Return (model, inputs) or {"model": ..., "inputs": ...}.'
    if not isinstance(made, Mapping):
        raise named.refuse(f"{named.function} returned a {type(made).__name__}. {form}")
    for key in made:
        if key not in KEYS:
            close = nearest(str(key), KEYS)
            hint = f" Did you mean '{close}'?" if close else ""
            raise named.refuse(
                f"{named.function} returned an entry '{key}' (known are: {', '.join(KEYS)}).{hint}"
            )
    if "model" not in made:
        raise named.refuse(f"{named.function} returned no 'model'. {form}")
    for key in ("reference", "reset"):
        if made.get(key) is not None and not callable(made[key]):
            raise named.refuse(f"'{key}' is a {type(made[key]).__name__}, not a function.")
    for key in ("bytes_moved", "flops", "tokens"):
        value = made.get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise named.refuse(f"'{key}' is {value!r}, not a whole number.")
    return dict(made)


def _workload(parts: dict[str, Any], config: Config, takes_dtype: bool, named: _Named) -> Workload:
    models = parts["model"] if isinstance(parts["model"], Mapping) else {"naive": parts["model"]}
    for name, one in models.items():
        if not callable(one):
            raise named.refuse(f"'model' {name} is a {type(one).__name__}, not callable.")
    wanted = config.variant.implementation
    if wanted not in models:
        raise UserError(
            f"variant={config.variant.name}: {config.workload.target} has no '{wanted}' "
            f"implementation (it has: {', '.join(map(str, models))}). Pick a variant that uses one "
            f'of those, or return it: {{"model": {{"naive": ..., "{wanted}": ...}}, ...}}.'
        )
    args, kwargs = _inputs(parts.get("inputs"))
    dtype = _dtype(models[wanted], (args, kwargs), config, takes_dtype, named)
    reference, size, note = None, 0, ""
    if config.workload.numerics != "off":
        reference, size, note = _reference(parts.get("reference"), models, args, kwargs)
    return Workload(
        name=config.workload.name,
        implementations=models,
        args=args,
        kwargs=kwargs,
        reference=reference,
        reference_bytes=size,
        reference_note=note,
        reset=parts.get("reset"),
        work=Work(parts.get("bytes_moved"), parts.get("flops"), dtype, parts.get("tokens")),
        source_sha256=target.source_sha256(named.target),
    )


def _inputs(given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(given, Mapping):
        return (), dict(given)
    if isinstance(given, (tuple, list)):
        return tuple(given), {}
    return (() if given is None else (given,)), {}


def _dtype(model: Any, inputs: Any, config: Config, takes_dtype: bool, named: _Named) -> str:
    """The dtype of the run, which must be what the configuration says of it."""
    values = [one for one in pytree.tree_leaves(inputs) if isinstance(one, torch.Tensor)]
    if isinstance(model, torch.nn.Module):
        values += list(model.parameters())
    found = {str(one.dtype).removeprefix("torch.") for one in values if one.is_floating_point()}
    said = config.input.dtype
    if found and said not in found and not takes_dtype:
        has = sorted(found)[0]
        raise UserError(
            f"input.dtype={said}: {named.target} takes no 'dtype' and made {has}. Type "
            f"input.dtype={has}, or give {named.function} a parameter dtype and use it."
        )
    return said if said in found or not found else sorted(found)[0]


def _reference(
    own: Callable[..., Any] | None,
    models: Mapping[str, Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> tuple[Callable[[], Any] | None, int, str]:
    """The user's reference, else a float32 copy of the first model; with its size, or why not."""

    def inputs() -> Any:
        on_cpu = pytree.tree_map_only(torch.Tensor, lambda one: one.detach().cpu(), (args, kwargs))
        return pytree.tree_map(float32, on_cpu)

    if own is not None:

        def users() -> Any:
            some, named = inputs()
            return own(*some, **named)

        return users, 0, ""
    first = next(iter(models.values()))
    if not isinstance(first, torch.nn.Module):
        return None, 0, "the model is a function; return a 'reference' to have its result checked"
    held = [*first.parameters(), *first.buffers()]
    if any(one.device.type != "cpu" for one in held):
        return None, 0, "the model was made on the device; return a 'reference'"
    size = sum(one.numel() * (one.element_size() + 4) for one in held)
    if not host.has_room_for(size):
        return None, 0, f"a float32 copy of the model takes {size / 1e9:.1f} GB, too much for here"
    kept = [copy.deepcopy(first)]  # the model itself goes to the device

    def default() -> Any:
        some, named = inputs()
        return kept.pop().float()(*some, **named)

    return default, size, ""

"""A workload with its inputs made, still on the CPU: what a variant is built from.

Built-in ones are loaded here, the user's own in custom.py. Called by variants.py.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..errors import UserError
from ..schema import Config
from . import host

SHARE_OF_MEMORY = 0.8
"""Of the free memory of this computer that a simulated step may take."""


@dataclass(frozen=True)
class Work:
    """work.json: what one step does, as its author says; None where nobody says."""

    bytes_moved: int | None = None
    flops: int | None = None
    dtype: str | None = None
    tokens: int | None = None


@dataclass(frozen=True)
class Workload:
    """Implementations by name, and the inputs that all of them take."""

    name: str
    implementations: Mapping[str, Callable[..., Any]]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    reference: Callable[[], Any] | None = None
    """Computes the right result in float32 on the CPU; None: there is none."""
    reference_bytes: int = 0
    """Memory that the reference takes, as far as it is known."""
    reference_words: str = "the reference"
    """What it is, for messages."""
    reference_note: str = ""
    """Why there is no reference."""
    reset: Callable[[], Any] | None = None
    """Called before each step, and part of it."""
    tolerance_factor: float = 1.0
    work: Work = Work()
    source_sha256: str | None = None
    """Of the user's own files behind a custom workload; None for the built-in ones."""


def load_builtin(config: Config, is_simulated: bool) -> Workload:
    """Import the workload and make its seeded inputs, the same for each variant."""
    name, shape = config.workload.name, config.input.shape
    module = importlib.import_module(f".workloads.{name}", __package__)
    dtype = getattr(torch, config.input.dtype)
    options = {"phase": config.workload.phase} if config.workload.phase else {}
    work = Work(
        bytes_moved=module.bytes_moved(shape, dtype.itemsize, **options),
        flops=module.flops(shape, **options),
        dtype=config.input.dtype,
        tokens=module.tokens(shape, **options) if hasattr(module, "tokens") else None,
    )
    # A module without host_bytes works on tensors of its inputs' size: five at once.
    needs = getattr(module, "host_bytes", lambda *_, **__: 5 * (work.bytes_moved or 0) // 2)
    if is_simulated:
        _refuse_too_large(config, work, needs(shape, dtype.itemsize, **options))
    inputs = module.make_inputs(shape, dtype, config.input.seed, **options)
    return Workload(
        name=name,
        implementations={one: getattr(module, one) for one in config.workload.implementations},
        args=inputs,
        reference=lambda: module.naive(*pytree.tree_map(float32, inputs)),
        reference_bytes=needs(shape, 4, **options),
        reference_words="the naive lines",
        tolerance_factor=getattr(module, "TOLERANCE_FACTOR", 1.0),
        work=work,
    )


def float32(value: Any) -> Any:
    """Floating point tensors as float32; everything else as it is."""
    floating = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.float() if floating else value


def _refuse_too_large(config: Config, work: Work, needs_bytes: int) -> None:
    """The simulated device computes on this computer: it must not take all of it, or an hour."""
    shape = "x".join(map(str, config.input.shape))
    what = f"input.shape={shape}: one step of '{config.workload.name}'"
    instead = "Type a smaller one, for example input=small"
    limit = config.device.most_step_flops
    if limit is not None and (work.flops or 0) > limit:
        raise UserError(
            f"{what} is {work.flops:.1e} operations, which the simulated device computes on this "
            f"computer; at most {limit:.0e} are allowed. {instead}, or, with much time, "
            f"device.most_step_flops={1.1 * float(work.flops or 0):.1e}."
        )
    if not host.has_room_for(needs_bytes, SHARE_OF_MEMORY):
        free = host.free_memory_bytes() or 0
        raise UserError(
            f"{what} takes about {needs_bytes / 1e9:.1f} GB on the simulated device, which is this "
            f"computer, and {free / 1e9:.1f} GB are free (the naive lines write every intermediate "
            f"result to memory). {instead}."
        )

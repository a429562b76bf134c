"""Is the result right? The step's output against a float32 reference on the CPU, before any timing.

Called by job.py. Never runs on the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .variants import Workload

# Largest accepted max|y-r| / max|r|. Each is a few units in the last place of the type (2^-8, 2^-11
# and 2^-24) times the handful of roundings of a chain of operators; float32 also allows for another
# order of summation over some thousand elements.
TOLERANCES = {torch.bfloat16: 2e-2, torch.float16: 2e-3, torch.float32: 1e-5}


@dataclass(frozen=True)
class Numerics:
    """numerics.json: how far the output is from the reference."""

    max_relative_error: float | None
    """max|y-r| / max|r|; None when it is not a number (NaN or infinity in the output)."""
    tolerance: float
    passed: bool
    message: str


def check(output: Any, workload: Workload, tolerance: float | None) -> Numerics:
    """Compare the step's output with the naive implementation in float32 on the CPU."""
    with torch.no_grad():
        reference = workload.module.naive(*(_float32(value) for value in workload.inputs))
    return compare(output, reference, tolerance or TOLERANCES[workload.dtype])


def compare(output: Any, reference: Any, tolerance: float) -> Numerics:
    """Compare two results leaf by leaf; structure and shapes must be the same."""
    got, got_spec = pytree.tree_flatten(output)
    want, want_spec = pytree.tree_flatten(reference)
    if got_spec != want_spec:
        return _failed(tolerance, f"the result is a {got_spec}, the reference a {want_spec}")
    worst = 0.0
    for y, r in zip(got, want, strict=True):
        y, r = _float32(torch.as_tensor(y).detach().cpu()), _float32(torch.as_tensor(r))
        if y.shape != r.shape:
            return _failed(tolerance, f"shape {tuple(y.shape)} instead of {tuple(r.shape)}")
        if not torch.isfinite(y).all() and torch.isfinite(r).all():
            return _failed(tolerance, "the result holds NaN or infinity, the reference does not")
        if r.numel():
            scale = r.abs().max().item() or 1.0
            worst = max(worst, (y - r).abs().max().item() / scale)
    passed = worst <= tolerance
    relation = "within" if passed else "beyond"
    return Numerics(
        worst, tolerance, passed, f"max|y-r| / max|r| = {worst:.2e}, {relation} {tolerance:.0e}"
    )


def _failed(tolerance: float, message: str) -> Numerics:
    return Numerics(None, tolerance, False, message)


def _float32(value: torch.Tensor) -> torch.Tensor:
    return value.float() if value.is_floating_point() else value

"""Is the result right? The step's output against a float32 reference on the CPU, before any timing.

Called by job.py. Never runs on the device.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from . import host
from .workload import Workload, float32

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
    passed: bool | None
    """None: it was not checked, and `message` says why."""
    message: str


def check(output: Any, workload: Workload, tolerance: float | None) -> Numerics:
    """Compare the step's output with the workload's reference, in float32 on the CPU.

    Exceptions of a user's reference end as a note: the model itself is not to blame.
    """
    dtype = getattr(torch, workload.work.dtype or "float32")
    allowed = tolerance or TOLERANCES[dtype] * workload.tolerance_factor
    if workload.reference is None:
        return _not_checked(allowed, workload.reference_note)
    if not host.has_room_for(workload.reference_bytes):
        size = f"{workload.reference_bytes / 1e9:.1f} GB"
        return _not_checked(allowed, f"the float32 reference takes about {size} of this computer")
    try:
        with torch.no_grad():
            reference = workload.reference()
    except Exception as error:
        traceback.print_exc()
        return _not_checked(allowed, f"the reference raised {type(error).__name__}: {error}")
    return compare(output, reference, allowed)


def compare(output: Any, reference: Any, tolerance: float) -> Numerics:
    """Compare two results leaf by leaf; structure and shapes must be the same."""
    got, got_spec = pytree.tree_flatten(output)
    want, want_spec = pytree.tree_flatten(reference)
    if got_spec != want_spec:
        return _failed(tolerance, f"the result is a {got_spec}, the reference a {want_spec}")
    worst = 0.0
    for y, r in zip(got, want, strict=True):
        if not isinstance(r, (torch.Tensor, int, float)):
            continue  # a cache object, a name
        y, r = float32(torch.as_tensor(y).detach().cpu()), float32(torch.as_tensor(r))
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


def _not_checked(tolerance: float, why: str) -> Numerics:
    return Numerics(None, tolerance, None, f"the result was not checked: {why}")


def _failed(tolerance: float, message: str) -> Numerics:
    return Numerics(None, tolerance, False, message)

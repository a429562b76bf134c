"""The gate of a SwiGLU layer: y = gate * sigmoid(gate) * up, between the two matrix products.

With N elements of b bytes, the naive lines read 5 N b and write 3 N b in three device executions;
`fused` takes two, because PyTorch has an operator for gate * sigmoid(gate) alone; one kernel would
read 2 N b and write N b.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F


def make_inputs(shape: Sequence[int], dtype: torch.dtype, seed: int) -> tuple[torch.Tensor, ...]:
    """gate and up, each of `shape`, on the CPU; the same seed, the same values."""
    generator = torch.Generator().manual_seed(seed)
    gate = torch.randn(*shape, generator=generator).to(dtype)
    up = torch.randn(*shape, generator=generator).to(dtype)
    return gate, up


def naive(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    share = torch.sigmoid(gate)  # read N, write N
    activated = gate * share  # read 2 N, write N
    return activated * up  # read 2 N, write N


def fused(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return F.silu(gate) * up  # read N, write N, then read 2 N, write N


def bytes_moved(shape: Sequence[int], element_bytes: int) -> int:
    """Bytes that one step cannot avoid: gate and up read once, y written once."""
    return 3 * math.prod(shape) * element_bytes


def flops(shape: Sequence[int]) -> int:
    """Six operations an element.

    sigmoid: negate, exponentiate, add one, invert; then two products.
    """
    return 6 * math.prod(shape)

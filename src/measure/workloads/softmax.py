"""Softmax over the last dimension: y = exp(x - max(x)) / sum(exp(x - max(x))).

With N elements of b bytes, the naive lines read 5 N b and write 3 N b in five device executions; a
fused kernel reads N b and writes N b in one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch


def make_inputs(shape: Sequence[int], dtype: torch.dtype, seed: int) -> tuple[torch.Tensor, ...]:
    """x of `shape`, on the CPU; the same seed, the same values."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator).to(dtype),)


def naive(x: torch.Tensor) -> torch.Tensor:
    largest = x.amax(-1, keepdim=True)  # read N
    shifted = x - largest  # read N, write N
    raised = torch.exp(shifted)  # read N, write N
    total = raised.sum(-1, keepdim=True)  # read N
    return raised / total  # read N, write N


def fused(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)  # read N, write N


def bytes_moved(shape: Sequence[int], element_bytes: int) -> int:
    """Bytes that one step cannot avoid: x read once, y written once."""
    return 2 * math.prod(shape) * element_bytes


def flops(shape: Sequence[int]) -> int:
    """Compare, subtract, exponentiate, add, divide: five operations an element."""
    return 5 * math.prod(shape)

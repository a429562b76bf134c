"""Root mean square normalisation over the last dimension: y = x / sqrt(mean(x^2) + eps) * weight.

With N elements of b bytes, the naive lines read 5 N b and write 3 N b in six device executions; a
fused kernel reads N b and writes N b in one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

EPS = 1e-6


def make_inputs(shape: Sequence[int], dtype: torch.dtype, seed: int) -> tuple[torch.Tensor, ...]:
    """x of `shape` and weight of its last dimension, on the CPU; the same seed, the same values."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, generator=generator).to(dtype)
    weight = (1 + 0.1 * torch.randn(shape[-1], generator=generator)).to(dtype)
    return x, weight


def naive(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    squared = x * x  # read N, write N
    mean = squared.mean(-1, keepdim=True)  # read N
    shifted = mean + EPS
    scale = torch.rsqrt(shifted)
    normalised = x * scale  # read N, write N
    return normalised * weight  # read N, write N


def fused(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.rms_norm(x, (x.shape[-1],), weight, EPS)  # read N, write N


def bytes_moved(shape: Sequence[int], element_bytes: int) -> int:
    """Bytes that one step cannot avoid: x and weight read once, y written once."""
    elements = math.prod(shape)
    return (2 * elements + shape[-1]) * element_bytes


def flops(shape: Sequence[int]) -> int:
    """Square, add to the mean, scale and weight: four operations an element, three a row."""
    elements = math.prod(shape)
    return 4 * elements + 3 * (elements // shape[-1])

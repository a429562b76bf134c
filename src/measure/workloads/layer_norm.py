"""Layer normalisation over the last dimension: y = (x - mean) / sqrt(var + eps) * weight + bias.

With N elements of b bytes, the naive lines read 7 N b and write 5 N b in nine device executions; a
fused kernel reads N b and writes N b in one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F

EPS = 1e-5


def make_inputs(shape: Sequence[int], dtype: torch.dtype, seed: int) -> tuple[torch.Tensor, ...]:
    """x of `shape`, weight and bias of its last dimension, on the CPU; one seed, one result."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, generator=generator).to(dtype)
    weight = (1 + 0.1 * torch.randn(shape[-1], generator=generator)).to(dtype)
    bias = (0.1 * torch.randn(shape[-1], generator=generator)).to(dtype)
    return x, weight, bias


def naive(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    mean = x.mean(-1, keepdim=True)  # read N
    centred = x - mean  # read N, write N
    squared = centred * centred  # read N, write N
    variance = squared.mean(-1, keepdim=True)  # read N
    scale = torch.rsqrt(variance + EPS)
    normalised = centred * scale  # read N, write N
    scaled = normalised * weight  # read N, write N
    return scaled + bias  # read N, write N


def fused(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (x.shape[-1],), weight, bias, EPS)  # read N, write N


def bytes_moved(shape: Sequence[int], element_bytes: int) -> int:
    """Bytes that one step cannot avoid: x, weight and bias read once, y written once."""
    return (2 * math.prod(shape) + 2 * shape[-1]) * element_bytes


def flops(shape: Sequence[int]) -> int:
    """Seven operations an element, four a row.

    An element: add to the mean, subtract it, square, add to the variance, scale, times weight, plus
    bias. A row: divide twice, add eps, rsqrt.
    """
    elements = math.prod(shape)
    return 7 * elements + 4 * (elements // shape[-1])

"""Grouped-query attention: y = softmax(q k^T / sqrt(d)) v; four query heads share a key-value head.

`input` is batch x sequence x hidden, as heads of 128 (Llama-3-8B: 32 heads and 8 key-value heads at
hidden 4096). prefill: every token attends to those before it, causally. decode: one new token
attends to a cache of `sequence` tokens. The naive lines write the scores, batch x heads x queries x
keys, to memory five times; a fused kernel never does.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from ...errors import UserError

PHASES = ("prefill", "decode")
HEAD_DIM = 128
GROUP = 4  # query heads that share one key-value head
# The scores are rounded before exp(), and in decode the result is a small mean of large values, so
# the error is as large as two chains of roundings (seen: 1.8e-2 in bfloat16 at 8x2048x4096).
TOLERANCE_FACTOR = 2.0


def make_inputs(
    shape: Sequence[int], dtype: torch.dtype, seed: int, phase: str
) -> tuple[torch.Tensor, ...]:
    """q, k and v as batch x heads x tokens x head size, on the CPU; one seed, one result."""
    batch, queries, keys, heads, kv_heads, size = _sizes(shape, phase)
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(batch, heads, queries, size, generator=generator).to(dtype)
    k = torch.randn(batch, kv_heads, keys, size, generator=generator).to(dtype)
    v = torch.randn(batch, kv_heads, keys, size, generator=generator).to(dtype)
    return q, k, v


def naive(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    queries, keys = q.shape[-2], k.shape[-2]
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)  # read K, write K for each query head
    v = v.repeat_interleave(q.shape[1] // v.shape[1], 1)
    scores = q @ k.transpose(-2, -1)  # write S = batch * heads * queries * keys
    scores = scores * q.shape[-1] ** -0.5  # read S, write S
    if queries > 1:  # one new token may look at everything
        seen = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(keys - queries)
        scores = scores.masked_fill(~seen, float("-inf"))  # read S, write S
    weights = torch.softmax(scores, -1)  # read S, write S
    return weights @ v  # read S


def fused(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    # read q, k and v, write y; is_causal means nothing for a single query
    return F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[-2] > 1, enable_gqa=True)


def bytes_moved(shape: Sequence[int], element_bytes: int, phase: str) -> int:
    """Bytes that one step cannot avoid: q, k and v read once, y written once."""
    batch, queries, keys, heads, kv_heads, size = _sizes(shape, phase)
    return 2 * batch * size * (heads * queries + kv_heads * keys) * element_bytes


def flops(shape: Sequence[int], phase: str) -> int:
    """4 d + 5 operations for each pair of a query and a key that it may see, in each head.

    q k^T and the sum over v: d products and d additions each. The score: scale, subtract the
    largest, exponentiate, add, divide. Causal: token i sees i + 1 keys, so there are s (s + 1) / 2
    pairs instead of s * s.
    """
    batch, queries, keys, heads, _, size = _sizes(shape, phase)
    pairs = keys if queries == 1 else queries * (queries + 1) // 2
    return batch * heads * pairs * (4 * size + 5)


def tokens(shape: Sequence[int], phase: str) -> int:
    """Tokens that one step takes in: all of them in prefill, one for each sequence in decode."""
    return shape[0] * (shape[1] if phase == "prefill" else 1)


def host_bytes(shape: Sequence[int], element_bytes: int, phase: str) -> int:
    """Memory that the naive lines take at once: three of the scores and the repeated k and v."""
    batch, queries, keys, heads, _, size = _sizes(shape, phase)
    return batch * heads * keys * (3 * queries + 2 * size) * element_bytes


def _sizes(shape: Sequence[int], phase: str) -> tuple[int, int, int, int, int, int]:
    """batch, queries, keys, heads, key-value heads, head size."""
    typed = "x".join(map(str, shape))
    if len(shape) != 3 or (shape[2] > HEAD_DIM and shape[2] % HEAD_DIM):
        raise UserError(
            f"input.shape={typed}: workload 'attention' takes batch x sequence x hidden, with "
            f"hidden a multiple of {HEAD_DIM}, the size of a head. Type input.shape=1x2048x4096."
        )
    batch, sequence, hidden = shape
    heads = max(1, hidden // HEAD_DIM)
    kv_heads = heads // GROUP if heads % GROUP == 0 else heads
    queries = 1 if phase == "decode" else sequence
    return batch, queries, sequence, heads, kv_heads, min(hidden, HEAD_DIM)

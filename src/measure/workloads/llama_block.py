"""One decoder layer with the proportions of Llama-3-8B: hidden h = last dimension of `input`, heads
of 128, a key-value head for every four query heads, and a SwiGLU layer of 3.5 h (14,336 at 4,096).

`naive` writes everything out in elementary operators, as a paper does; `fused` takes the operators
that PyTorch has for it. Weights are random, scaled so that values stay near 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F

from ...errors import UserError

EPS = 1e-5
THETA = 500_000.0  # Llama 3's base of the rotary angles
HEAD_DIM = 128
GROUP = 4
Weights = Mapping[str, torch.Tensor]


def make_inputs(shape: Sequence[int], dtype: torch.dtype, seed: int) -> tuple[object, ...]:
    """x, the rotary cos and sin, and the weights by name, on the CPU; one seed, one result."""
    batch, sequence, hidden, _, kv_heads, size = _sizes(shape)
    g = torch.Generator().manual_seed(seed)
    kv, wide = kv_heads * size, 7 * hidden // 2
    sizes = {"q": (hidden, hidden), "k": (hidden, kv), "v": (hidden, kv), "o": (hidden, hidden),
             "gate": (hidden, wide), "up": (hidden, wide), "down": (wide, hidden)}  # fmt: skip
    weights = {
        name: torch.randn(*one, generator=g).mul_(one[0] ** -0.5).to(dtype)
        for name, one in sizes.items()
    }
    for name in ("norm1", "norm2"):
        weights[name] = (1 + 0.1 * torch.randn(hidden, generator=g)).to(dtype)
    angles = torch.outer(
        torch.arange(sequence), THETA ** -(torch.arange(0, size, 2).float() / size)
    )
    angles = torch.cat((angles, angles), -1)
    x = torch.randn(batch, sequence, hidden, generator=g).to(dtype)
    return x, angles.cos().to(dtype), angles.sin().to(dtype), weights


def naive(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, w: Weights) -> torch.Tensor:
    size, sequence = cos.shape[-1], x.shape[1]
    scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + EPS)
    normed = x * scale * w["norm1"]
    q, k, v = (_heads(normed @ w[name], size) for name in ("q", "k", "v"))
    q = q * cos + torch.cat((-q[..., size // 2 :], q[..., : size // 2]), -1) * sin
    k = k * cos + torch.cat((-k[..., size // 2 :], k[..., : size // 2]), -1) * sin
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.transpose(-2, -1) * size**-0.5
    seen = torch.ones(sequence, sequence, dtype=torch.bool, device=x.device).tril()
    scores = scores.masked_fill(~seen, float("-inf"))
    scores = torch.exp(scores - scores.amax(-1, keepdim=True))
    attended = (scores / scores.sum(-1, keepdim=True)) @ v
    x = x + attended.transpose(1, 2).flatten(2) @ w["o"]
    scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + EPS)
    normed = x * scale * w["norm2"]
    gate = normed @ w["gate"]
    return x + (gate * torch.sigmoid(gate) * (normed @ w["up"])) @ w["down"]


def fused(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, w: Weights) -> torch.Tensor:
    size = cos.shape[-1]
    normed = torch.rms_norm(x, (x.shape[-1],), w["norm1"], EPS)
    q, k, v = (_heads(normed @ w[name], size) for name in ("q", "k", "v"))
    q = q * cos + torch.cat((-q[..., size // 2 :], q[..., : size // 2]), -1) * sin
    k = k * cos + torch.cat((-k[..., size // 2 :], k[..., : size // 2]), -1) * sin
    attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    x = x + attended.transpose(1, 2).flatten(2) @ w["o"]
    normed = torch.rms_norm(x, (x.shape[-1],), w["norm2"], EPS)
    return x + (F.silu(normed @ w["gate"]) * (normed @ w["up"])) @ w["down"]


def bytes_moved(shape: Sequence[int], element_bytes: int) -> int:
    """Bytes that one step cannot avoid: x, cos, sin and the weights read once, y written once."""
    batch, sequence, hidden, _, _, size = _sizes(shape)
    values = 2 * batch * sequence * hidden + 2 * sequence * size + 2 * hidden
    return (values + _matrix_elements(shape)) * element_bytes


def flops(shape: Sequence[int]) -> int:
    """2 for each token and element of a matrix, 4 d + 5 for each causal pair in each head (see
    attention.py), 31 h + 3 (h + kv) for the rest of each token.

    Two norms of 4 h and two residuals of h are 10 h; the rotation of q and k is 2 products and a
    sum for each of their h + kv elements; the gate is 6 for each of its 3.5 h elements, 21 h.
    """
    batch, sequence, hidden, heads, kv_heads, size = _sizes(shape)
    count = batch * sequence
    pairs = batch * heads * sequence * (sequence + 1) // 2
    rest = 10 * hidden + 3 * (hidden + kv_heads * size) + 21 * hidden
    return 2 * count * _matrix_elements(shape) + pairs * (4 * size + 5) + count * rest


def tokens(shape: Sequence[int]) -> int:
    """Tokens that one step takes in."""
    return shape[0] * shape[1]


def host_bytes(shape: Sequence[int], element_bytes: int) -> int:
    """Memory that the naive lines take at once: weights, and three scores or the wide layer."""
    batch, sequence, hidden, heads, _, _ = _sizes(shape)
    scores = 3 * batch * heads * sequence * sequence
    wide = 4 * batch * sequence * 7 * hidden // 2
    return (_matrix_elements(shape) + max(scores, wide)) * element_bytes


def _matrix_elements(shape: Sequence[int]) -> int:
    """q and o are h x h, k and v are h x kv, gate, up and down are h x 3.5 h."""
    *_, hidden, _, kv_heads, size = _sizes(shape)
    return 2 * hidden * hidden + 2 * hidden * kv_heads * size + 3 * hidden * (7 * hidden // 2)


def _heads(x: torch.Tensor, size: int) -> torch.Tensor:
    """batch x sequence x (heads * size) -> batch x heads x sequence x size."""
    return x.view(*x.shape[:-1], -1, size).transpose(1, 2)


def _sizes(shape: Sequence[int]) -> tuple[int, int, int, int, int, int]:
    """batch, sequence, hidden, heads, key-value heads, head size."""
    typed = "x".join(map(str, shape))
    hidden = shape[-1]
    if len(shape) != 3 or hidden % 2 or (hidden > HEAD_DIM and hidden % HEAD_DIM):
        raise UserError(
            f"input.shape={typed}: workload 'llama_block' takes batch x sequence x hidden, with "
            f"hidden a multiple of {HEAD_DIM}, the size of a head. Type input.shape=1x2048x4096."
        )
    heads = max(1, hidden // HEAD_DIM)
    kv_heads = heads // GROUP if heads % GROUP == 0 else heads
    return shape[0], shape[1], hidden, heads, kv_heads, min(hidden, HEAD_DIM)

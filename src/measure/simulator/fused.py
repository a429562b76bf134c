"""Operators that Trainium lowers to one kernel, and that PyTorch would split on a device it does
not know.

RMS norm and attention, forward and backward. The forward values are those of PyTorch's own CPU
composites.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import is_fake

from .matmul import on_host
from .operators import Call, finish, unseen
from .schemas import plan_of

aten = torch.ops.aten


def _fused(op: torch._ops.OpOverload, host: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        call = Call(op, plan_of(op), args, kwargs)
        return finish(call, host(*call.host_args, **call.host_kwargs))

    return unseen(kernel)


def rms_norm_backward(
    grad_out: torch.Tensor,
    input: torch.Tensor,
    normalized_shape: Sequence[int],
    rstd: torch.Tensor,
    weight: torch.Tensor | None,
    output_mask: Sequence[bool],
) -> tuple[torch.Tensor | None, ...]:
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    x, grad = input.float() if input.dtype != torch.float64 else input, grad_out.to(rstd.dtype)
    normalized = x * rstd
    weighted = grad if weight is None else grad * weight.to(grad.dtype)
    grad_input = rstd * (weighted - normalized * (weighted * normalized).mean(dims, keepdim=True))
    grad_weight = None
    if weight is not None and output_mask[1]:
        grad_weight = (
            (grad * normalized).sum(list(range(dims[0]))).reshape(weight.shape).to(weight.dtype)
        )
    return (grad_input.to(input.dtype) if output_mask[0] else None, grad_weight)


def _attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """`scaled_dot_product_attention` as one operator, where PyTorch would decompose it."""
    # With dropout the order of random draws is the decomposition's; and only it has shapes for fake
    # tensors.
    if dropout_p > 0.0 or not query.is_floating_point() or is_fake(query):
        named = {"scale": scale, "enable_gqa": enable_gqa}
        results = aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, None, **named
        )
        decomposed: torch.Tensor = results[0]
        return decomposed
    if query.dim() == 4 and query.shape[1] != key.shape[1] and not enable_gqa:
        raise RuntimeError(
            "scaled_dot_product_attention: key and value have other heads than query; "
            "pass enable_gqa=True"
        )
    fused: torch.Tensor
    fused, *_ = _attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
    return fused


def _sdpa(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_bias: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    grouped = query.dim() == 4 and query.shape[1] != key.shape[1]
    out = on_host(
        aten.scaled_dot_product_attention.default,
        (query, key, value, attn_bias, dropout_p, is_causal),
        {"scale": scale, "enable_gqa": grouped},
    )
    # The log-sum-exp is not kept: the backward computes the probabilities again.
    none = torch.empty(0, device="cpu")
    counter = torch.zeros((), dtype=torch.int64, device="cpu")
    return (out, none, none, none, query.shape[-2], key.shape[-2], counter, counter.clone(), none)


def _sdpa_backward(
    grad_out: torch.Tensor | None,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_bias: torch.Tensor | None,
    grad_input_mask: Sequence[bool],
    out: torch.Tensor,
    logsumexp: torch.Tensor,
    cum_seq_q: torch.Tensor,
    cum_seq_k: torch.Tensor,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    philox_seed: torch.Tensor,
    philox_offset: torch.Tensor,
    *,
    scale: float | None = None,
) -> tuple[torch.Tensor | None, ...]:
    if grad_out is None:  # nothing flows back
        return (None, None, None, None)
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    grad, q, k, v = (tensor.to(wide) for tensor in (grad_out, query, key, value))
    groups = q.shape[-3] // k.shape[-3] if q.dim() >= 3 and k.shape[-3] else 1
    if groups > 1:
        k, v = k.repeat_interleave(groups, -3), v.repeat_interleave(groups, -3)
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q @ k.transpose(-2, -1) * factor
    if is_causal:
        keep = torch.ones(scores.shape[-2:], dtype=torch.bool, device="cpu").tril()
        scores = scores.masked_fill(~keep, float("-inf"))
    if attn_bias is not None and attn_bias.numel():
        is_bool = attn_bias.dtype is torch.bool
        scores = (
            scores.masked_fill(~attn_bias, float("-inf"))
            if is_bool
            else scores + attn_bias.to(wide)
        )
    chances = torch.softmax(scores, -1)
    grad_chances = grad @ v.transpose(-2, -1)
    grad_scores = chances * (grad_chances - (grad_chances * chances).sum(-1, keepdim=True))
    grads: list[torch.Tensor | None] = [
        grad_scores @ k * factor,
        grad_scores.transpose(-2, -1) @ q * factor,
        chances.transpose(-2, -1) @ grad,
        None,
    ]
    for position, source in ((1, key), (2, value)):
        one = grads[position]
        assert one is not None
        if groups > 1:
            one = one.unflatten(-3, (source.shape[-3], groups)).sum(-3)
        grads[position] = one.sum_to_size(source.shape)
    if attn_bias is not None and attn_bias.numel() and grad_input_mask[3]:
        grads[3] = grad_scores.sum_to_size(attn_bias.shape)
    sources = (query, key, value, attn_bias)
    return tuple(
        None if one is None or source is None else one.to(source.dtype)
        for one, source in zip(grads, sources, strict=True)
    )


_attention = aten._scaled_dot_product_fused_attention_overrideable
_attention_backward = aten._scaled_dot_product_fused_attention_overrideable_backward

KERNELS: dict[str, Callable[..., Any]] = {
    "_fused_rms_norm": _fused(aten._fused_rms_norm.default, aten._fused_rms_norm.default),
    "_fused_rms_norm_backward": _fused(aten._fused_rms_norm_backward.default, rms_norm_backward),
    "_scaled_dot_product_fused_attention_overrideable": _fused(_attention.default, _sdpa),
    "_scaled_dot_product_fused_attention_overrideable_backward": _fused(
        _attention_backward.default, _sdpa_backward
    ),
}
# Composites: these call other operators, so autograd and inference take the same function.
COMPOSITES: dict[str, Callable[..., Any]] = {"scaled_dot_product_attention": _attend}

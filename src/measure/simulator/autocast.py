"""`torch.autocast("neuron")`: which operators are cast, and how. The lists are those PyTorch documents for CUDA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .memory import DEVICE_TYPE, on_device

_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)
# Overload "" is the default one.
_LOWER = (
    "matmul mm mv bmm addmm addmv addbmm baddbmm linear chain_matmul linalg_multi_dot prelu einsum "
    "conv1d conv2d conv3d conv2d.padding conv1d.padding conv3d.padding conv_tbc convolution _convolution "
    "conv_transpose1d conv_transpose2d.input conv_transpose3d.input lstm_cell gru_cell scaled_dot_product_attention"
).split()
_FLOAT32 = (
    "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan softplus layer_norm "
    "native_layer_norm group_norm pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar nll_loss nll_loss2d cross_entropy_loss "
    "kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss soft_margin_loss cosine_embedding_loss "
    "cosine_similarity poisson_nll_loss triplet_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm "
    "logsumexp softmax.int log_softmax.int cumprod cumsum prod sum sum.dim_IntList prod.dim_int "
    "norm.Scalar norm.ScalarOpt_dim frobenius_norm.dim nuclear_norm rms_norm"
).split()
_WIDEST = "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put scatter_add tensordot stack cat".split()


def _map(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    return (
        type(value)(_map(item, change) for item in value) if type(value) in (list, tuple) else value
    )


def _castable(tensor: torch.Tensor) -> bool:
    return on_device(tensor) and tensor.is_floating_point() and tensor.dtype != torch.float64


def _cast_to(dtype: torch.dtype, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(dtype) if _castable(tensor) else tensor

    return _map(args, change), {key: _map(value, change) for key, value in kwargs.items()}


def _kernel(op: torch._ops.OpOverload, policy: str) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_KEYS):
            dtype = torch.get_autocast_dtype(DEVICE_TYPE) if policy == "lower" else torch.float32
            if policy == "widest":
                found: set[torch.dtype] = set()
                _map(
                    [args, list(kwargs.values())],
                    lambda t: (found.add(t.dtype) if _castable(t) else None, t)[1],
                )
                dtype = torch.float32 if len(found) > 1 else next(iter(found), torch.float32)
            cast_args, cast_kwargs = _cast_to(dtype, args, kwargs)
            return op(*cast_args, **cast_kwargs)

    return kernel


def _refuse(name: str) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"{name} is unsafe under autocast; use binary_cross_entropy_with_logits, which is safe"
        )

    return kernel


def register(aten: torch.library.Library, everything: torch.library.Library) -> None:
    """Install the casting kernels; every other operator falls through."""
    everything.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    for policy, names in (("lower", _LOWER), ("float32", _FLOAT32), ("widest", _WIDEST)):
        for name in names:
            packet, _, overload = name.partition(".")
            op = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
            if op is not None:
                aten.impl(name, _kernel(op, policy), "AutocastPrivateUse1")
    aten.impl("binary_cross_entropy", _refuse("binary_cross_entropy"), "AutocastPrivateUse1")

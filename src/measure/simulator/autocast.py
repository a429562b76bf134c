"""`torch.autocast("neuron")`: which operators are cast, and how. The lists are those PyTorch
documents for CUDA.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree

from .memory import DEVICE_TYPE, on_device

_KEYS = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, "AutocastPrivateUse1"))  # noqa: B009  # not in torch's stubs
# Names with their overload; without one the default is meant.
_LOWER = """
    matmul mm mv bmm addmm addmv addbmm baddbmm linear chain_matmul linalg_multi_dot prelu einsum
    conv1d conv2d conv3d conv1d.padding conv2d.padding conv3d.padding conv_tbc convolution
    _convolution conv_transpose1d conv_transpose2d.input conv_transpose3d.input lstm_cell gru_cell
    scaled_dot_product_attention
""".split()
_FLOAT32 = """
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan softplus
    layer_norm native_layer_norm group_norm rms_norm pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar
    nll_loss nll_loss2d cross_entropy_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss
    margin_ranking_loss soft_margin_loss cosine_embedding_loss cosine_similarity poisson_nll_loss
    triplet_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp
    softmax.int log_softmax.int cumprod cumsum prod prod.dim_int sum sum.dim_IntList norm.Scalar
    norm.ScalarOpt_dim frobenius_norm.dim nuclear_norm
""".split()
_WIDEST = """
    addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put scatter_add tensordot stack
    cat
""".split()


def _castable(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or not on_device(value):
        return False
    return value.is_floating_point() and value.dtype != torch.float64


def _cast_to(dtype: torch.dtype, values: Any) -> Any:
    return pytree.tree_map(lambda one: one.to(dtype) if _castable(one) else one, values)


def _kernel(op: torch._ops.OpOverload, policy: str) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_KEYS):
            dtype = torch.get_autocast_dtype(DEVICE_TYPE) if policy == "lower" else torch.float32
            if policy == "widest":
                leaves = pytree.tree_leaves((args, kwargs))
                found = {one.dtype for one in leaves if _castable(one)}
                dtype = torch.float32 if len(found) > 1 else next(iter(found), torch.float32)
            return op(*_cast_to(dtype, args), **_cast_to(dtype, kwargs))

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

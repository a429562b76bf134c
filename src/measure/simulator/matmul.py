"""Large products in bfloat16 and float16 on the host: multiplied in float32 and rounded once.

Many CPUs have no fast bfloat16 multiplication; PyTorch then takes 30 times as long as in float32,
and a Llama block minutes a step. The device accumulates in float32 as well. Small products, where
nothing is gained, give the CPU's own bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten

HALVES = (torch.bfloat16, torch.float16)
LARGE = 1 << 24
"""Products of elements from which it pays: about 50 ms on a CPU without bfloat16 units."""
PRODUCTS = {
    aten.mm.default: (0, 1),
    aten.bmm.default: (0, 1),
    aten.addmm.default: (1, 2),
    aten.baddbmm.default: (1, 2),
    aten.scaled_dot_product_attention.default: (0, 1),
    aten._scaled_dot_product_flash_attention_for_cpu.default: (0, 1),
}
"""Operator -> where its two factors stand."""


def on_host(op: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call an operator on host tensors; large products of halves in float32, rounded once."""
    where = PRODUCTS.get(op)
    if where is None or not _is_large(args[where[0]], args[where[1]]):
        return op(*args, **kwargs)
    dtype = args[where[0]].dtype
    wide = pytree.tree_map_only(torch.Tensor, _widened, (args, kwargs))
    results = op(*wide[0], **wide[1])
    return pytree.tree_map_only(
        torch.Tensor, lambda one: one.to(dtype) if one.dtype == torch.float32 else one, results
    )


def _is_large(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left.dtype not in HALVES or left.device.type != "cpu" or left.requires_grad:
        return False
    return left.numel() * right.shape[-1 if right.dim() < 4 else -2] >= LARGE


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.dtype in HALVES else tensor


class WideProducts(TorchDispatchMode):
    """Does the same inside a graph that runs on the host."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own signature has no types

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        return on_host(func, args, kwargs or {})

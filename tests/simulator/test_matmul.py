"""Large half-precision products: one rounding of the float32 product, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

LARGE = (256, 256, 512)  # 2^25 products of elements
SMALL = (8, 16, 24)


def _factors(shape: tuple[int, int, int], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    rows, inner, columns = shape
    return torch.randn(rows, inner).to(dtype), torch.randn(inner, columns).to(dtype)


def _compiled(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return torch.compile(function, backend="neuron", fullgraph=True, dynamic=False)


@pytest.mark.parametrize("wrap", [lambda f: f, _compiled], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_large_product_is_the_float32_product_rounded_once(
    dtype: torch.dtype, wrap: Callable[..., Callable[..., torch.Tensor]]
) -> None:
    left, right = _factors(LARGE, dtype)
    got = wrap(torch.mm)(left.to("neuron"), right.to("neuron"))
    assert got.dtype == dtype
    assert torch.equal(got.cpu(), (left.float() @ right.float()).to(dtype))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_small_product_has_the_bits_of_the_cpu(dtype: torch.dtype) -> None:
    left, right = _factors(SMALL, dtype)
    assert torch.equal((left.to("neuron") @ right.to("neuron")).cpu(), left @ right)


def test_a_large_linear_layer_and_a_batched_product_stay_close_to_the_cpu() -> None:
    left, right = _factors(LARGE, torch.bfloat16)
    bias = torch.randn(LARGE[2]).bfloat16()
    want = torch.addmm(bias.float(), left.float(), right.float())
    got = torch.addmm(bias.to("neuron"), left.to("neuron"), right.to("neuron")).cpu().float()
    assert (got - want).abs().max() <= 2**-8 * want.abs().max()
    batched = torch.bmm(left[None].to("neuron"), right[None].to("neuron")).cpu().float()
    assert (batched[0] - left.float() @ right.float()).abs().max() <= 2**-8 * want.abs().max()

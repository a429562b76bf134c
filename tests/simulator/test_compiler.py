"""A compiled function gives what the eager one gives on the CPU, keeps aliases and writes, and
refuses what it cannot do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F


def compile_(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return torch.compile(
        function, backend="neuron", **{"fullgraph": True, "dynamic": False, **options}
    )


@pytest.fixture
def x() -> torch.Tensor:
    return torch.arange(12.0).view(3, 4).to("neuron")


CASES: dict[str, Callable[[Any], Any]] = {
    "factories": lambda a: a * torch.arange(4, device=a.device) + torch.ones(4, device=a.device),
    "to the same device": lambda a: (
        torch.zeros_like(a).to(a.device) + a.to(a.device, torch.float64)
    ),
    "constants": lambda a: a * torch.tensor([1.0, 2.0], device=a.device)[1] + torch.tensor(2.0),
    "mask": lambda a: a.masked_fill(
        torch.ones(3, 4, dtype=torch.bool, device=a.device).triu(1), -1.0
    ),
    "random": lambda a: a + torch.rand(3, 4, device=a.device) + F.dropout(a),
    "structures": lambda a: {"a": a + 1, "b": [a * 2, None, 3]}["b"][0],
    "where and cat": lambda a: torch.cat([torch.where(a > 3, a, 0.0), a]),
    "attention": lambda a: F.scaled_dot_product_attention(
        a[None], a[None], a[None], is_causal=True
    ),
}


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
@pytest.mark.parametrize("name", CASES)
def test_a_compiled_function_equals_the_cpu(x: torch.Tensor, name: str, mode: Any) -> None:
    with mode():
        torch.manual_seed(4)
        expected = CASES[name](x.cpu())
        torch.manual_seed(4)
        given = compile_(CASES[name])(x)
    assert given.device.type == "neuron"
    torch.testing.assert_close(given.cpu(), expected, rtol=0, atol=0)


def test_outputs_that_alias_inputs_still_alias_them(x: torch.Tensor) -> None:
    same, part, fresh = compile_(lambda a: (a, a[1:], a + 0))(x)
    assert same is x
    part.fill_(7)
    assert x[1:].eq(7).all()
    assert fresh[1, 0].item() == 4


def test_writes_into_inputs_and_their_views_are_kept(x: torch.Tensor) -> None:
    def write(a: torch.Tensor, view: torch.Tensor) -> torch.Tensor:
        a[:, 1] = view[:, 0]
        return a.add_(1)

    assert compile_(write)(x, x[:, 2:]) is x
    expected = torch.arange(12.0).view(3, 4)
    expected[:, 1] = expected[:, 2]
    assert torch.equal(x.cpu(), expected + 1)


def test_an_input_given_twice_is_one_tensor(x: torch.Tensor) -> None:
    assert torch.equal(
        compile_(lambda a, b: a.add_(1) + b)(x, x).cpu(), 2 * (torch.arange(12.0).view(3, 4) + 1)
    )


def test_every_shape_is_compiled_anew(x: torch.Tensor) -> None:
    for options in ({}, {"dynamic": None}):
        torch._dynamo.reset()
        double = compile_(lambda a: a * 2, **options)
        assert [double(torch.ones(n, device="neuron")).sum().item() for n in (3, 4, 5)] == [
            6,
            8,
            10,
        ]


def test_the_second_device_compiles_too(x: torch.Tensor) -> None:
    assert compile_(lambda a: a * 2)(x.to("neuron:1")).device == torch.device("neuron", 1)


def test_autocast_is_compiled_in(x: torch.Tensor) -> None:
    def inside(a: torch.Tensor) -> torch.Tensor:
        with torch.autocast("neuron", dtype=torch.bfloat16):
            return F.linear(a, a)

    assert compile_(inside)(x).dtype == torch.bfloat16
    with torch.autocast("neuron", dtype=torch.bfloat16):
        assert compile_(lambda a: F.linear(a, a) * 2)(x).dtype == torch.bfloat16


def test_operators_between_two_graphs_run_eagerly(x: torch.Tensor) -> None:
    def broken(a: torch.Tensor) -> torch.Tensor:
        b = a * 2
        torch._dynamo.graph_break()
        return b[b > 3].sum() + a.sum().item()

    assert compile_(broken, fullgraph=False)(x).item() == 2 * 65 + 66


REFUSED: dict[str, tuple[Callable[[torch.Tensor], Any], str]] = {
    "dynamic": (lambda x: compile_(lambda a: a * 2, dynamic=True)(x), "dynamic=False"),
    "to host": (lambda x: compile_(lambda a: a.sum().cpu())(x), "on cpu"),
    "from host": (
        lambda x: compile_(lambda a, b: a + b.to("neuron"))(x, torch.ones(3, 4)),
        "on cpu",
    ),
    "two devices": (
        lambda x: compile_(lambda a, b: (a * 2, b * 2))(x, x.to("neuron:1")),
        "several devices",
    ),
    "shape from data": (lambda x: compile_(lambda a: a[a > 3])(x), "depends on data"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_compiled_is_refused_in_words(x: torch.Tensor, name: str) -> None:
    function, says = REFUSED[name]
    with pytest.raises(Exception, match=says):
        function(x)

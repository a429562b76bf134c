"""Rows, executions and device time are what the published table and the formula on paper say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from src.measure.simulator import CostModel, install

from .conftest import CORES, COST


def naive(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    squared = x * x
    mean = squared.mean(-1, keepdim=True)
    r = torch.rsqrt(mean + 1e-6)
    return x * r * weight


SHAPE = (1, 2048, 4096)
X = 2048 * 4096 * 2  # bytes of the input in bfloat16: 16.78 MB
M = 2048 * 2  # bytes of the reduced tensor
W = 4096 * 2  # bytes of the weight


def _time(*, moved: int = 0, vector: int = 0, bf16: int = 0) -> float:
    return COST.dispatch_us + 1e6 * max(moved / 1e12, vector / 1e13, bf16 / 100e12)


def test_naive_rms_norm_costs_six_dispatches_as_on_paper(record: Any) -> None:
    x = torch.ones(SHAPE, dtype=torch.bfloat16, device="neuron")
    w = torch.ones(SHAPE[-1], dtype=torch.bfloat16, device="neuron")
    rows = record(lambda: naive(x, w)).rows()
    # x * x reads x once (33.55 MB moved), x * r reads x and r, the last one x and w; each writes
    # one x.
    mul = _time(moved=2 * X) + _time(moved=2 * X + M) + _time(moved=2 * X + W)
    assert 2 * X == 33_554_432
    expected = {
        "aten::mul": (3, mul),
        "aten::mean": (1, _time(moved=X + M, vector=2048 * 4096)),
        "aten::add": (1, _time(moved=2 * M)),
        "aten::rsqrt": (1, _time(moved=2 * M)),
    }
    assert rows == {
        name: (calls, pytest.approx(us, abs=0.01)) for name, (calls, us) in expected.items()
    }


def test_fused_rms_norm_costs_one_dispatch(record: Any) -> None:
    x = torch.ones(SHAPE, dtype=torch.bfloat16, device="neuron")
    w = torch.ones(SHAPE[-1], dtype=torch.bfloat16, device="neuron")
    fused = record(lambda: torch.rms_norm(x, SHAPE[-1:], w, 1e-6)).rows()
    # It writes the result and the 2048 reciprocal roots, in float32.
    assert fused == {
        "aten::_fused_rms_norm": (1, pytest.approx(_time(moved=2 * X + W + 2048 * 4), abs=0.01))
    }


def test_a_compiled_graph_is_one_row_that_moves_inputs_and_outputs(record: Any) -> None:
    x = torch.ones(SHAPE, dtype=torch.bfloat16, device="neuron")
    w = torch.ones(SHAPE[-1], dtype=torch.bfloat16, device="neuron")
    program = torch.compile(naive, backend="neuron", fullgraph=True, dynamic=False)
    with torch.no_grad():
        program(x, w)
        rows = record(lambda: program(x, w)).rows()
    flops = (
        4 * 2048 * 4096 + 2 * 2048
    )  # three products and the mean in full size, add and rsqrt in the reduced one
    expected = _time(moved=2 * X + W, vector=flops)
    assert rows == {"Torch-Compiled Region: 0/0": (1, pytest.approx(expected, abs=0.01))}


def test_an_out_that_is_also_an_input_is_read_and_written(record: Any) -> None:
    x = torch.ones(1000, 1000, device="neuron")
    y = torch.ones(1000, 1000, device="neuron")
    apart = record(lambda: torch.mul(x, y, out=torch.empty_like(x))).rows()
    same = record(lambda: torch.mul(x, y, out=x)).rows()
    added = record(lambda: x.add_(y)).rows()
    filled = record(lambda: x.fill_(1)).rows()
    expected = pytest.approx(_time(moved=12_000_000), abs=0.01)
    assert apart == same == {"aten::mul": (1, expected)}
    assert added == {"aten::add_": (1, expected)}
    assert filled == {"aten::fill_": (1, pytest.approx(_time(moved=4_000_000), abs=0.01))}


def test_a_matrix_product_costs_its_tensor_flops(record: Any) -> None:
    a = torch.ones(1024, 1024, dtype=torch.bfloat16, device="neuron")
    rows = record(lambda: a @ a).rows()
    assert rows == {
        "aten::mm": (1, pytest.approx(_time(moved=2 * 1024**2 * 2, bf16=2 * 1024**3), abs=0.01))
    }
    f = a.float()
    slower = record(lambda: f @ f).rows()
    assert slower["aten::mm"][1] == pytest.approx(100 + 1e6 * 2 * 1024**3 / 25e12, abs=0.01)


def test_expanded_and_repeated_inputs_count_their_distinct_elements(record: Any) -> None:
    row = torch.ones(1000, device="neuron")
    made = record(lambda: row.expand(1000, 1000) + row)
    assert made.rows()["aten::add"][1] == pytest.approx(_time(moved=4000 + 4_000_000), abs=0.01)


ONE_ROW: dict[str, tuple[Callable[[Any], Any], str]] = {
    "softmax": (lambda x: x.softmax(-1), "aten::_softmax"),
    "layer_norm": (lambda x: F.layer_norm(x, (8,)), "aten::native_layer_norm"),
    "attention": (
        lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
        "aten::_scaled_dot_product_fused_attention_overrideable",
    ),
    "grouped attention": (
        lambda x: F.scaled_dot_product_attention(x, x[:, :1], x[:, :1], enable_gqa=True),
        "aten::_scaled_dot_product_fused_attention_overrideable",
    ),
    "silu": (F.silu, "aten::silu"),
    "add_": (lambda x: x.add_(1), "aten::add_"),
    "out": (lambda x: torch.add(x, x, out=x), "aten::add"),
    "zeros": (lambda x: torch.zeros(3, device="neuron"), "aten::zeros"),
    "clone": (lambda x: x.clone(), "aten::clone"),
    "cast": (lambda x: x.bfloat16(), "aten::copy_"),
    "slice assignment": (lambda x: x.__setitem__((slice(None), 0), x[:, 1]), "aten::copy_"),
    "cat": (lambda x: torch.cat([x, x]), "aten::cat"),
    "rand": (lambda x: torch.rand(3, device="neuron"), "aten::rand"),
}


@pytest.mark.parametrize("name", ONE_ROW)
def test_one_operator_is_one_row(record: Any, name: str) -> None:
    function, row = ONE_ROW[name]
    x = torch.rand(2, 2, 4, 8, device="neuron")
    made = record(lambda: function(x))
    assert {key: calls for key, (calls, _) in made.rows().items()} == {row: 1}
    (counted,) = [one for one in made.prof.key_averages() if one.key == row]
    assert counted.count == 1


FREE: dict[str, Callable[[Any], Any]] = {
    "views": lambda x: x.transpose(1, 2)[:, 1:].unsqueeze(0).expand(3, -1, -1, -1, -1),
    "view and detach": lambda x: x.view(-1).detach().chunk(4)[1].unfold(0, 2, 1),
    "allocation": lambda x: torch.empty_like(x).resize_(3),
    "read": lambda x: x[0, 0, 0, 0].item(),
    "to host": lambda x: x.cpu(),
    "from host": lambda x: torch.ones(4).to("neuron"),
    "nothing in it": lambda x: x[:0] + 1,
    "made on the host": lambda x: torch.zeros_like(x, device="cpu"),
    "unsafe views": lambda x: (torch.ops.aten._unsafe_view(x, (8, 16)), x.unsafe_chunk(2, 1)),
}


@pytest.mark.parametrize("name", FREE)
def test_views_allocations_and_copies_are_no_executions(record: Any, name: str) -> None:
    x = torch.rand(2, 2, 4, 8, device="neuron")
    assert record(lambda: FREE[name](x)).rows() == {}


def test_a_compiled_function_of_views_alone_costs_nothing(record: Any) -> None:
    x = torch.rand(4, 8, device="neuron")
    program = torch.compile(
        lambda x: (x.t()[1:], x.view(2, 16)), backend="neuron", fullgraph=True, dynamic=False
    )
    program(x)
    made = record(lambda: program(x))
    assert made.rows() == {}
    first, second = program(x)
    x.fill_(3)
    assert first.sum().item() == 3 * 28
    assert second.is_contiguous()


def test_a_compiled_cache_write_moves_the_slot_and_not_the_cache(record: Any) -> None:
    cache = torch.zeros(1024, 1024, device="neuron")
    row = torch.ones(1, 1024, device="neuron")

    def write(cache: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        cache[5:6] = row * 2
        return cache

    program = torch.compile(write, backend="neuron", fullgraph=True, dynamic=False)
    assert program(cache, row) is cache
    ((_, us),) = record(lambda: program(cache, row)).rows().values()
    assert us == pytest.approx(_time(moved=2 * 4096), abs=0.01)
    assert cache.sum().item() == 2048


def test_a_graph_of_many_operators_is_one_row(record: Any) -> None:
    def many(x: torch.Tensor) -> torch.Tensor:
        for n in range(40):
            x = torch.sin(x) * n + x.softmax(-1)
        return x

    x = torch.rand(8, 8, device="neuron")
    program = torch.compile(many, backend="neuron", fullgraph=True, dynamic=False)
    program(x)
    made = record(lambda: program(x))
    assert [(name, calls) for name, (calls, _) in made.rows().items()] == [
        ("Torch-Compiled Region: 0/0", 1)
    ]
    assert not [row.key for row in made.prof.key_averages() if row.key.startswith("aten::")]


def test_copies_are_counted_with_their_bytes() -> None:
    from src.measure.simulator import record as records

    before = dict(records.device.copies.count), dict(records.device.copies.bytes)
    x = torch.ones(1000).to("neuron")
    x.cpu()
    x[:10].to("neuron:1")
    for direction, nbytes in (
        ("host_to_device", 4000),
        ("device_to_host", 4000),
        ("device_to_device", 40),
    ):
        assert records.device.copies.count[direction] == before[0].get(direction, 0) + 1
        assert records.device.copies.bytes[direction] == before[1].get(direction, 0) + nbytes


def test_a_second_install_must_agree_with_the_first() -> None:
    install(COST, CORES, total_memory_bytes=4 * 1024**3)
    with pytest.raises(RuntimeError, match="installed already"):
        install(COST, (0,), total_memory_bytes=4 * 1024**3)
    with pytest.raises(ValueError, match="every rate"):
        CostModel(1.0, 0.0, {"float32": 1.0}, 1.0)
    with pytest.raises(ValueError, match="empty"):
        CostModel(1.0, 1.0, {}, 1.0)

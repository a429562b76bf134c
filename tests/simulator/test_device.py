"""What holds for any PyTorch device holds for this one, or is refused in words."""

from __future__ import annotations

import copy
import gc
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F


@pytest.fixture
def x() -> torch.Tensor:
    return torch.arange(12.0).view(3, 4).to("neuron")


MIXED: dict[str, Callable[[torch.Tensor], Any]] = {
    "add": lambda x: x + torch.ones(3, 4),
    "add from the left": lambda x: torch.ones(3, 4) + x,
    "into the cpu": lambda x: torch.ones(3, 4).add_(x),
    "into a cpu scalar": lambda x: torch.tensor(1.0).add_(x[0, 0]),
    "cpu vector with a device scalar": lambda x: torch.ones(3) + x[0, 0],
    "matmul": lambda x: x @ torch.ones(4, 2),
    "cat": lambda x: torch.cat([x, torch.ones(3, 4)]),
    "stack": lambda x: torch.stack([x[0, 0], torch.tensor(1.0)]),
    "out": lambda x: torch.add(x, x, out=torch.empty(3, 4)),
    "embedding": lambda x: F.embedding(torch.tensor([0]), x),
    "index_put values": lambda x: x.index_put_((torch.tensor([0]),), torch.ones(4)),
    "other device": lambda x: x + x.to("neuron:1"),
    "scalar of another device": lambda x: x + x[0, 0].to("neuron:1"),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixed_devices_are_refused_as_cuda_does(x: torch.Tensor, name: str) -> None:
    with pytest.raises(RuntimeError, match="same device"):
        MIXED[name](x)


REFUSED: dict[str, tuple[Callable[[torch.Tensor], Any], type[Exception], str]] = {
    "numpy": (lambda x: x.numpy(), TypeError, "neuron"),
    "asarray": (lambda x: np.asarray(x), TypeError, "neuron"),
    "sparse": (lambda x: x.to_sparse(), NotImplementedError, "_to_sparse"),
    "sparse from host": (
        lambda x: torch.eye(2).to_sparse().to("neuron"),
        NotImplementedError,
        "aten::",
    ),
    "quantized": (
        lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
        NotImplementedError,
        "quantize",
    ),
    "generator": (
        lambda x: torch.rand(2, device="neuron", generator=torch.Generator()),
        RuntimeError,
        "generator",
    ),
    "pinned": (lambda x: torch.empty(2, device="neuron", pin_memory=True), RuntimeError, "pin"),
    "pin_memory": (lambda x: torch.ones(2).pin_memory("neuron"), NotImplementedError, "Pinned"),
    "no kernel": (
        lambda x: torch.nn.LSTM(4, 4).to("neuron")(x[None]),
        NotImplementedError,
        "_thnn_fused_lstm_cell",
    ),
    "memory": (lambda x: torch.empty(1024**4, device="neuron"), torch.OutOfMemoryError, "neuron:0"),
    "current device": (lambda x: torch.neuron.set_device(1), NotImplementedError, "neuron:1"),
    "no such device": (lambda x: torch.neuron.synchronize(2), RuntimeError, "ordinal"),
    "grow a shared storage": (lambda x: (x[0], x.resize_(99)), NotImplementedError, "share"),
    "overlap": (lambda x: x[0].expand(3, 4).add_(1), RuntimeError, "single memory location"),
    "meta": (lambda x: torch.empty(3, device="meta").to("neuron"), NotImplementedError, "meta"),
    "autocast bce": (
        lambda x: _autocast(lambda: F.binary_cross_entropy(x.sigmoid(), x.sigmoid())),
        RuntimeError,
        "unsafe",
    ),
    "out of range": (lambda x: x[torch.tensor([9], device="neuron")], IndexError, "out of bounds"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_right_is_refused_in_words(x: torch.Tensor, name: str) -> None:
    function, error, says = REFUSED[name]
    with pytest.raises(error, match=says):
        function(x)


def _autocast(function: Callable[[], Any], device: str = "neuron") -> Any:
    with torch.autocast(device, dtype=torch.bfloat16):
        return function()


def test_reading_values(x: torch.Tensor) -> None:
    assert x.tolist() == torch.arange(12.0).view(3, 4).tolist()
    assert x[1, 2].item() == 6.0
    assert bool(x[0, 0] == 0)
    assert int(x[2, 3]) == 11
    assert repr(x[0]) == "tensor([0., 1., 2., 3.], device='neuron:0')"
    assert len(x) == 3
    assert torch.equal(x, x.clone())
    assert x.device == torch.device("neuron", 0)
    assert x.is_neuron  # type: ignore[attr-defined]


def test_in_place_and_out_return_the_callers_object(x: torch.Tensor) -> None:
    parameter = torch.nn.Parameter(x.clone(), requires_grad=False)
    assert parameter.add_(1) is parameter
    assert x.zero_() is x
    out = torch.empty(3, 4, device="neuron")
    assert torch.mul(x, 2, out=out) is out
    assert x.copy_(out) is x
    assert x.resize_(2, 2) is x


def test_an_out_of_the_wrong_shape_is_resized_with_the_cpus_warning(x: torch.Tensor) -> None:
    out = torch.empty(2, device="neuron")
    with pytest.warns(UserWarning, match="resized"):
        torch.add(x, 1, out=out)
    assert torch.equal(out.cpu(), x.cpu() + 1)


def test_views_share_their_storage_with_their_base(x: torch.Tensor) -> None:
    view = x[1:].t()
    assert view._base is x
    assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert view.data_ptr() == x.data_ptr() + 16
    version = x._version
    view.mul_(2)
    assert x._version == version + 1


def test_saving_and_loading_keeps_device_strides_and_sharing(x: torch.Tensor) -> None:
    file = io.BytesIO()
    torch.save({"x": x, "row": x[1], "t": x.t()}, file)
    for where, device in ((None, "neuron:0"), ("neuron:1", "neuron:1"), ("cpu", "cpu")):
        file.seek(0)
        loaded = torch.load(file, map_location=where)
        assert {str(one.device) for one in loaded.values()} == {device}
        assert loaded["t"].stride() == (1, 4)
        loaded["row"].zero_()
        assert loaded["x"].cpu()[1].sum() == 0
    assert x[1].sum().item() == 22


def test_deepcopy_copies_and_modules_move(x: torch.Tensor) -> None:
    twin = copy.deepcopy({"x": x, "t": x.t()})
    twin["x"].zero_()
    assert twin["t"].sum().item() == 0
    assert x.sum().item() == 66
    torch.manual_seed(1)
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    expected = module(x.cpu())
    moved = copy.deepcopy(module).to("neuron")
    assert {parameter.device.type for parameter in moved.parameters()} == {"neuron"}
    moved[1].load_state_dict(torch.nn.BatchNorm1d(4).state_dict())
    torch.testing.assert_close(moved(x).cpu(), expected)
    assert moved.to("cpu")[0].weight.device.type == "cpu"


def test_pickle_keeps_device_and_values(x: torch.Tensor) -> None:
    again, module = pickle.loads(pickle.dumps((x.t(), torch.nn.Linear(4, 2).to("neuron"))))
    assert again.device == x.device
    assert torch.equal(again.cpu(), x.cpu().t())
    assert module(x).shape == (x.shape[0], 2)


def test_a_hessian_equals_the_cpu() -> None:
    v = torch.arange(3.0)
    on_cpu, on_device = (
        torch.func.hessian(lambda one: (one**3).sum())(v.to(device)) for device in ("cpu", "neuron")
    )
    assert torch.equal(on_device.cpu(), on_cpu)


def test_a_packed_sequence_keeps_its_sizes_on_the_host() -> None:
    padded, lengths = torch.arange(12.0).view(3, 2, 2), torch.tensor([3, 2])
    packed = torch.nn.utils.rnn.pack_padded_sequence(padded.to("neuron"), lengths)
    assert packed.data.device.type == "neuron"
    assert packed.batch_sizes.tolist() == [2, 2, 1]
    back, sizes = torch.nn.utils.rnn.pad_packed_sequence(packed)
    assert torch.equal(back.cpu()[:2], padded[:2])
    assert sizes.tolist() == [3, 2]


def test_two_devices_hold_their_own_memory(x: torch.Tensor) -> None:
    other = x.to("neuron:1")
    other.add_(1)
    assert (other * 2).device == torch.device("neuron", 1)
    assert x.sum().item() == 66
    assert x.copy_(other).sum().item() == 78
    assert torch.neuron.device_count() == 2
    assert "core 3" in torch.neuron.get_device_name(1).lower().replace("neuroncore", "core")


def test_the_allocator_keeps_true_books() -> None:
    gc.collect()
    before = torch.neuron.memory_allocated()
    torch.neuron.reset_peak_memory_stats()
    a = torch.ones(1000, device="neuron")
    view = a[10:]
    b = a * 2
    assert torch.neuron.memory_allocated() - before == 8000
    del a, b
    assert torch.neuron.memory_allocated() - before == 4000  # the view keeps its base
    del view
    assert torch.neuron.memory_allocated() == before
    assert torch.neuron.max_memory_allocated() - before == 8000
    stats = torch.neuron.memory_stats()
    assert stats["allocated_bytes.all.current"] == before
    assert stats["allocated_bytes.all.peak"] == before + 8000
    assert torch.neuron.memory_allocated(1) >= 0


def test_random_numbers_follow_the_seed() -> None:
    torch.manual_seed(5)
    first = torch.randn(4, device="neuron")
    state = torch.neuron.get_rng_state()
    second = torch.randn(4, device="neuron")
    torch.neuron.set_rng_state(state)
    assert torch.equal(torch.randn(4, device="neuron"), second)
    torch.neuron.manual_seed_all(5)
    assert torch.equal(torch.randn(4, device="neuron"), first)


def test_the_default_device_can_be_neuron() -> None:
    with torch.device("neuron"):
        made = torch.ones(3) + torch.randn(3)
        layer = torch.nn.Linear(3, 3)
    assert made.device.type == "neuron"
    assert layer(made).device.type == "neuron"


AUTOCAST: dict[str, Callable[[Any], Any]] = {
    "matmul": lambda x: x @ x.t(),
    "linear": lambda x: F.linear(x, x),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
}


@pytest.mark.parametrize("name", AUTOCAST)
def test_autocast_casts_products_as_on_the_cpu(x: torch.Tensor, name: str) -> None:
    on_cpu = _autocast(lambda: AUTOCAST[name](x.cpu()), "cpu")
    on_device = _autocast(lambda: AUTOCAST[name](x))
    assert on_device.dtype == torch.bfloat16
    torch.testing.assert_close(on_device.cpu(), on_cpu, rtol=0, atol=0)
    assert AUTOCAST[name](x).dtype == torch.float32


def test_autocast_keeps_sums_and_norms_in_float32(x: torch.Tensor) -> None:
    half = x.bfloat16()
    for function in (
        lambda: half.softmax(-1),
        lambda: F.layer_norm(half, (4,)),
        lambda: half.sum(),
    ):
        assert _autocast(function).dtype == torch.float32
    assert _autocast(lambda: torch.cat([half, x])).dtype == torch.float32
    assert _autocast(lambda: half + half).dtype == torch.bfloat16


GRADS: dict[str, tuple[Callable[..., torch.Tensor], list[tuple[int, ...]]]] = {
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(2, 2, 5, 8)] * 3,
    ),
    "grouped attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        [(2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 8)],
    ),
    "attention with bias": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, scale=0.2),
        [(2, 2, 5, 8), (2, 2, 5, 8), (2, 2, 5, 8), (5, 5)],
    ),
    "rms_norm": (lambda x, w: torch.rms_norm(x, (8,), w, 1e-5), [(3, 8), (8,)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (8,), w, b), [(3, 8), (8,), (8,)]),
    "conv": (lambda x, w: F.conv2d(x, w, padding=1), [(1, 2, 5, 5), (3, 2, 3, 3)]),
    "conv of data": (
        lambda w: F.conv2d(torch.ones(1, 2, 5, 5, device=w.device), w),
        [(3, 2, 3, 3)],
    ),
    "conv of data with bias": (
        lambda w, b: F.conv2d(torch.ones(1, 2, 5, 5, device=w.device), w, b),
        [(3, 2, 3, 3), (3,)],
    ),
    "transposed conv of data": (
        lambda w: F.conv_transpose2d(torch.ones(1, 2, 5, 5, device=w.device), w),
        [(2, 3, 3, 3)],
    ),
    "indexing": (lambda x: x[[0, 2]] * x[1:, 1:2].sum(), [(3, 4)]),
    "softmax and linear": (lambda x, w: F.linear(x.softmax(-1), w), [(3, 4), (2, 4)]),
    "write into a clone": (
        lambda x, y: x.clone().index_fill_(0, torch.tensor([0], device=x.device), 2.0) * y,
        [(3, 4)] * 2,
    ),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", GRADS)
def test_gradients_equal_the_cpu(name: str, compiled: bool) -> None:
    function, shapes = GRADS[name]
    answers = []
    for device in ("cpu", "neuron"):
        torch.manual_seed(2)
        inputs = [torch.randn(shape).to(device).requires_grad_() for shape in shapes]
        call = function
        if compiled and device == "neuron":
            call = torch.compile(function, backend="neuron", fullgraph=True, dynamic=False)
        call(*inputs).square().sum().backward()
        answers.append([one.grad.cpu() for one in inputs if one.grad is not None])
    assert len(answers[0]) == len(shapes)
    torch.testing.assert_close(answers[1], answers[0])


@pytest.mark.parametrize("fused", [False, True])
def test_training_steps_equal_the_cpu(fused: bool) -> None:
    answers = []
    for device in ("cpu", "neuron"):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)
        ).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=fused)
        data = torch.randn(4, 8).to(device)
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(model(data), torch.arange(4, device=device)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        answers.append([parameter.detach().cpu() for parameter in model.parameters()])
    torch.testing.assert_close(answers[1], answers[0])

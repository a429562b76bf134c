"""The operators that are compared with the CPU: a case takes inputs and gives what to compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F


def inputs(device: str) -> dict[str, Any]:
    g = torch.Generator().manual_seed(7)
    made = {
        "x": torch.randn(4, 6, generator=g),
        "y": torch.randn(4, 6, generator=g),
        "s": torch.randn(6, 6, generator=g),
        "b": torch.randn(2, 4, 6, generator=g),
        "v": torch.randn(6, generator=g),
        "h": torch.randn(4, 6, generator=g).bfloat16(),
        "i": torch.randint(0, 4, (5,), generator=g),
        "n": torch.randint(-9, 9, (4, 6), generator=g),
        "m": torch.randn(4, 6, generator=g) > 0,
        "q": torch.randn(2, 4, 8, 16, generator=g),
        "kv": torch.randn(2, 2, 8, 16, generator=g),
        "img": torch.randn(2, 3, 8, 8, generator=g),
        "filt": torch.randn(4, 3, 3, 3, generator=g),
        "z": torch.randn(3, 2, generator=g) + 1j * torch.randn(3, 2, generator=g),
        "none": torch.zeros(0, 6),
        "one": torch.tensor(2.5),
    }
    return {name: tensor.to(device) for name, tensor in made.items()} | {"device": device}


def _write(change: Callable[[Any], Any], base: str = "x") -> Callable[[Any], Any]:
    """A case that changes a tensor in place, and answers the whole of it."""

    def case(a: Any) -> Any:
        change(a)
        return a[base]

    return case


def _cache(a: Any) -> Any:
    cache = torch.zeros(2, 10, 3, device=a["device"])
    for p in range(3):
        cache[:, p : p + 1] = torch.full((2, 1, 3), float(p + 1), device=a["device"])
    return cache


def _parts(a: Any, split: Callable[[Any], Any]) -> Any:
    for n, part in enumerate(split(a["x"])):
        part.mul_(n + 2)
    return a["x"]


def _out(a: Any, shape: tuple[int, ...]) -> Any:
    out = torch.empty(shape, device=a["device"])
    given = torch.add(a["x"], a["y"], out=out)
    assert given is out
    return out


CASES: dict[str, Callable[[Any], Any]] = {
    # factories
    "zeros": lambda a: torch.zeros(2, 3, device=a["device"]),
    "ones int": lambda a: torch.ones(2, 3, dtype=torch.int32, device=a["device"]),
    "full": lambda a: torch.full((2, 3), 7, device=a["device"]),
    "full bool": lambda a: torch.full((2,), True, device=a["device"]),
    "arange": lambda a: torch.arange(2, 9, 3, device=a["device"]),
    "arange float": lambda a: torch.arange(0, 1, 0.25, device=a["device"]),
    "linspace": lambda a: torch.linspace(0, 1, 5, device=a["device"]),
    "eye": lambda a: torch.eye(3, 4, device=a["device"]),
    "tensor": lambda a: torch.tensor([[1, 2], [3, 4]], device=a["device"]),
    "zeros_like": lambda a: torch.zeros_like(a["x"].t()),
    "ones_like dtype": lambda a: torch.ones_like(a["x"], dtype=torch.bfloat16),
    "full_like": lambda a: torch.full_like(a["x"], 3.0),
    "new_zeros": lambda a: a["h"].new_zeros(3),
    "new_full": lambda a: a["x"].new_full((2,), 4),
    "new_tensor": lambda a: a["x"].new_tensor([1.0, 2.0]),
    "zeros_like on cpu": lambda a: torch.zeros_like(a["x"], device="cpu").to(a["device"]),
    "empty channels_last": lambda a: torch.empty(
        1, 2, 3, 4, device=a["device"], memory_format=torch.channels_last
    ).fill_(1),
    # views, read
    "t": lambda a: a["x"].t(),
    "permute": lambda a: a["b"].permute(2, 0, 1),
    "slice step": lambda a: a["x"][1:4:2, ::3],
    "select": lambda a: a["x"][1],
    "negative select": lambda a: a["x"][..., -1],
    "expand": lambda a: a["v"].expand(3, 6),
    "expand sum": lambda a: a["v"].expand(3, 6).sum(0),
    "unsqueeze": lambda a: a["v"][None, :, None],
    "squeeze": lambda a: a["v"][None].squeeze(0),
    "view": lambda a: a["x"].view(2, 12),
    "reshape copy": lambda a: a["x"].t().reshape(-1),
    "flatten": lambda a: a["b"].flatten(1),
    "unflatten": lambda a: a["x"].unflatten(1, (2, 3)),
    "diagonal": lambda a: a["s"].diagonal(1),
    "narrow": lambda a: a["x"].narrow(1, 2, 3),
    "unfold": lambda a: a["v"].unfold(0, 3, 1),
    "as_strided": lambda a: a["x"].as_strided((3, 3), (2, 1), 1),
    "movedim": lambda a: a["b"].movedim(0, -1),
    "view dtype": lambda a: a["x"].view(torch.int32),
    "real": lambda a: a["z"].real,
    "view_as_real": lambda a: torch.view_as_real(a["z"]),
    "chunk": lambda a: a["x"].chunk(4, 1)[1],
    "contiguous": lambda a: a["x"].t().contiguous(),
    "channels_last": lambda a: a["img"].contiguous(memory_format=torch.channels_last),
    # writes through views
    "x[:,1]=1": _write(lambda a: a["x"].__setitem__((slice(None), 1), 1)),
    "x[1]=y[0]": _write(lambda a: a["x"].__setitem__(1, a["y"][0])),
    "x[::2]+=1": _write(lambda a: a["x"][::2].add_(1)),
    "t().add_": _write(lambda a: a["x"].t().add_(1)),
    "view(-1)[3]=": _write(lambda a: a["x"].view(-1).__setitem__(3, 9.0)),
    "diagonal fill": _write(lambda a: a["s"].diagonal().fill_(0), "s"),
    "fill_diagonal_": _write(lambda a: a["s"].fill_diagonal_(5), "s"),
    "narrow mul": _write(lambda a: a["x"].narrow(1, 2, 3).mul_(2)),
    "chunk writes": lambda a: _parts(a, lambda x: x.chunk(3, 1)),
    "split writes": lambda a: _parts(a, lambda x: x.split([1, 3])),
    "unbind writes": lambda a: _parts(a, lambda x: x.unbind(1)),
    "masked_fill_ slice": _write(lambda a: a["x"][:, 1:4].masked_fill_(a["m"][:, 1:4], -1)),
    "kv cache": _cache,
    "copy_ of itself": _write(lambda a: a["x"].copy_(a["x"])),
    "copy_ dtype": _write(lambda a: a["x"].copy_(a["h"])),
    "copy_ from cpu": _write(lambda a: a["x"][:, 0].copy_(torch.arange(4))),
    "squeeze_ then write": _write(lambda a: a["x"][:, :1].squeeze_(1).zero_()),
    "as_strided write": _write(lambda a: a["x"].as_strided((2, 2), (3, 1), 2).fill_(8)),
    "real write": _write(lambda a: a["z"].real.zero_(), "z"),
    "data write": _write(lambda a: a["x"].data.mul_(3)),
    "detach write": _write(lambda a: a["x"].detach().neg_()),
    # in place, out=
    "add_ alpha": lambda a: a["x"].add_(a["y"], alpha=2),
    "addcmul_": lambda a: a["x"].addcmul_(a["y"], a["y"], value=0.5),
    "clamp_": lambda a: a["x"].clamp_(-0.5, 0.5),
    "sqrt_": lambda a: a["x"].abs_().sqrt_(),
    "relu_": lambda a: F.relu(a["x"], inplace=True),
    "out same": lambda a: _out(a, (4, 6)),
    "out empty": lambda a: _out(a, (0,)),
    "out two results": lambda a: torch.max(
        a["x"],
        1,
        out=(
            torch.empty(0, device=a["device"]),
            torch.empty(0, dtype=torch.int64, device=a["device"]),
        ),
    ),
    "out matmul": lambda a: torch.mm(a["x"], a["s"], out=torch.empty(4, 6, device=a["device"])),
    "out itself": lambda a: torch.mul(a["x"], a["y"], out=a["x"]),
    "cat out": lambda a: torch.cat([a["x"], a["y"]], out=torch.empty(0, device=a["device"])),
    "resize_": lambda a: a["x"].resize_(2, 3),
    "resize_ grow": lambda a: torch.arange(3, device=a["device"]).resize_(5)[:3],
    "foreach": lambda a: torch._foreach_add([a["x"], a["y"]], 1),
    "foreach_": lambda a: (torch._foreach_mul_([a["x"], a["y"]], 2), a["x"], a["y"])[1:],
    # arithmetic and dtypes
    "python float": lambda a: a["h"] * 2.5,
    "int times float": lambda a: a["n"] * 2.5,
    "int / int": lambda a: a["n"] / 3,
    "floor divide": lambda a: a["n"] // 4,
    "rsub": lambda a: 1 - a["x"],
    "0-dim promotes": lambda a: a["h"] * a["one"],
    "cpu scalar tensor": lambda a: a["h"] * torch.tensor(3.0),
    "0-dim of int": lambda a: a["n"][0, 0] * 2.5,
    "pow": lambda a: a["x"] ** 2,
    "rpow": lambda a: 2 ** a["x"],
    "remainder": lambda a: a["n"] % 3,
    "compare": lambda a: a["x"] > a["y"],
    "logical": lambda a: (a["x"] > 0) & ~a["m"],
    "shift": lambda a: a["n"] << 1,
    "to bfloat16": lambda a: a["x"].to(torch.bfloat16),
    "to bool": lambda a: a["n"].bool(),
    "float16": lambda a: a["x"].half() + 1,
    "double": lambda a: a["x"].double().sum(),
    "type promotion": lambda a: a["n"] + a["h"],
    "complex multiply": lambda a: a["z"] * a["z"].conj(),
    "complex abs": lambda a: a["z"].conj().t().abs(),
    "conj copy": lambda a: a["z"].conj().clone(),
    "erf gelu": lambda a: F.gelu(a["x"]),
    "silu": lambda a: F.silu(a["h"]),
    "sigmoid exp log": lambda a: torch.log(torch.exp(a["x"].sigmoid())),
    "rsqrt": lambda a: torch.rsqrt(a["x"].abs() + 1e-6),
    "lerp": lambda a: torch.lerp(a["x"], a["y"], 0.3),
    "empty input": lambda a: (a["none"] + 1, a["none"].sum(0), a["none"].mean()),
    # reductions
    "sum": lambda a: a["h"].sum(),
    "sum dims": lambda a: a["b"].sum((0, 2)),
    "mean keepdim": lambda a: a["h"].mean(-1, keepdim=True),
    "max dim": lambda a: a["x"].max(1),
    "argmax": lambda a: a["x"].argmax(0),
    "any all": lambda a: (a["m"].any(), a["m"].all(1)),
    "var std": lambda a: (a["x"].var(1), a["x"].std()),
    "norm": lambda a: torch.linalg.vector_norm(a["x"], dim=1),
    "logsumexp": lambda a: a["x"].logsumexp(-1),
    "prod cumprod": lambda a: (a["x"].prod(), a["x"].cumprod(0)),
    "cumsum": lambda a: a["n"].cumsum(1),
    "int sum": lambda a: a["n"].sum(0),
    "median": lambda a: a["x"].median(1),
    # indexing
    "index rows": lambda a: a["x"][a["i"] % 4],
    "index cpu": lambda a: a["x"][torch.tensor([0, 2])],
    "index two": lambda a: a["x"][a["i"] % 4, a["i"]],
    "index mixed": lambda a: a["b"][:, a["i"] % 4],
    "bool mask": lambda a: a["x"][a["m"]],
    "bool mask set": _write(lambda a: a["x"].__setitem__(a["m"], 0.0)),
    "index_put": _write(lambda a: a["x"].__setitem__(a["i"] % 4, 3.0)),
    "index_put accumulate": lambda a: a["x"].index_put_((a["i"] % 4,), a["one"], accumulate=True),
    "index_select": lambda a: a["x"].index_select(1, a["i"]),
    "index_add_": lambda a: a["x"].index_add_(1, a["i"][:3], a["y"][:, :3]),
    "gather": lambda a: a["x"].gather(1, a["n"].abs() % 6),
    "scatter_": lambda a: a["x"].scatter_(1, a["n"].abs() % 6, 1.5),
    "scatter_add": lambda a: a["x"].scatter_add(1, a["n"].abs() % 6, a["y"]),
    "take_along_dim": lambda a: torch.take_along_dim(a["x"], a["x"].argsort(1), 1),
    "nonzero": lambda a: a["m"].nonzero(),
    "masked_select": lambda a: a["x"].masked_select(a["m"]),
    "masked_fill": lambda a: a["x"].masked_fill(a["m"], float("-inf")),
    "where": lambda a: torch.where(a["m"], a["x"], a["y"]),
    "where scalar": lambda a: torch.where(a["m"], a["h"], 0.0),
    # shape and order
    "cat": lambda a: torch.cat([a["x"], a["y"]], 1),
    "cat promotes": lambda a: torch.cat([a["x"], a["n"]]),
    "stack": lambda a: torch.stack([a["x"], a["y"]], 1),
    "repeat": lambda a: a["x"].repeat(2, 3),
    "repeat_interleave": lambda a: a["x"].repeat_interleave(2, 0),
    "roll flip": lambda a: (a["x"].roll(1, 1), a["x"].flip(0)),
    "pad": lambda a: F.pad(a["x"], (1, 2)),
    "sort": lambda a: a["x"].sort(1, descending=True),
    "topk": lambda a: a["x"].topk(3),
    "unique": lambda a: a["n"].unique(),
    "tril triu": lambda a: (a["s"].tril(), torch.triu(a["s"], 1)),
    "meshgrid": lambda a: torch.meshgrid(a["v"], a["v"], indexing="ij"),
    "one_hot": lambda a: F.one_hot(a["i"], 4),
    "bucketize": lambda a: torch.bucketize(a["x"], a["v"].sort().values),
    # layers
    "matmul": lambda a: a["x"] @ a["s"],
    "matmul batched": lambda a: a["b"] @ a["s"],
    "bmm": lambda a: torch.bmm(a["b"], a["b"].transpose(1, 2)),
    "mv dot": lambda a: (a["x"] @ a["v"], a["v"] @ a["v"]),
    "linear": lambda a: F.linear(a["b"], a["s"], a["v"]),
    "linear bf16": lambda a: F.linear(a["h"], a["s"].bfloat16()),
    "einsum": lambda a: torch.einsum("bij,kj->bik", a["b"], a["s"]),
    "addmm": lambda a: torch.addmm(a["x"], a["x"], a["s"], beta=0.5),
    "embedding": lambda a: F.embedding(a["i"], a["x"]),
    "softmax": lambda a: a["h"].softmax(-1),
    "softmax dtype": lambda a: torch.softmax(a["h"], -1, dtype=torch.float32),
    "log_softmax": lambda a: a["x"].log_softmax(0),
    "layer_norm": lambda a: F.layer_norm(a["x"], (6,), a["v"], a["v"]),
    "group_norm": lambda a: F.group_norm(a["img"], 3),
    "batch_norm": lambda a: F.batch_norm(
        a["img"],
        torch.zeros(3, device=a["device"]),
        torch.ones(3, device=a["device"]),
        training=True,
    ),
    "rms_norm": lambda a: torch.rms_norm(a["x"], (6,), a["v"], 1e-6),
    "rms_norm bf16": lambda a: torch.rms_norm(a["h"], (6,), a["v"].bfloat16()),
    "conv2d": lambda a: F.conv2d(a["img"], a["filt"], padding=1),
    "conv1d": lambda a: F.conv1d(a["img"][:, :, 0], a["filt"][..., 0]),
    "conv_transpose2d": lambda a: F.conv_transpose2d(a["img"], a["filt"].transpose(0, 1)),
    "max_pool": lambda a: F.max_pool2d(a["img"], 2),
    "avg_pool": lambda a: F.adaptive_avg_pool2d(a["img"], 2),
    "interpolate": lambda a: F.interpolate(a["img"], scale_factor=2, mode="bilinear"),
    "cross_entropy": lambda a: F.cross_entropy(a["x"], a["i"][:4]),
    "mse": lambda a: F.mse_loss(a["x"], a["y"]),
    "sdpa": lambda a: F.scaled_dot_product_attention(a["q"], a["q"], a["q"]),
    "sdpa causal": lambda a: F.scaled_dot_product_attention(a["q"], a["q"], a["q"], is_causal=True),
    "sdpa gqa": lambda a: F.scaled_dot_product_attention(
        a["q"], a["kv"], a["kv"], is_causal=True, enable_gqa=True
    ),
    "sdpa mask": lambda a: F.scaled_dot_product_attention(
        a["q"],
        a["q"],
        a["q"],
        attn_mask=torch.ones(8, 8, dtype=torch.bool, device=a["device"]).tril(),
    ),
    "sdpa bias": lambda a: F.scaled_dot_product_attention(
        a["q"], a["q"], a["q"], attn_mask=a["q"][..., :8], scale=0.3
    ),
    "sdpa bf16": lambda a: F.scaled_dot_product_attention(
        a["q"].bfloat16(), a["q"].bfloat16(), a["q"].bfloat16()
    ),
    "glu": lambda a: F.glu(a["x"]),
    "linalg": lambda a: torch.linalg.solve(a["s"], a["s"] @ a["s"]),
    # random numbers are the host's
    "rand": lambda a: torch.rand(3, 4, device=a["device"]),
    "randn": lambda a: torch.randn(3, 4, device=a["device"]),
    "randint": lambda a: torch.randint(0, 9, (5,), device=a["device"]),
    "randperm": lambda a: torch.randperm(7, device=a["device"]),
    "rand_like": lambda a: torch.rand_like(a["x"]),
    "normal_": lambda a: a["x"].normal_(1, 2),
    "uniform_ slice": _write(lambda a: a["x"][:, 1:3].uniform_()),
    "bernoulli": lambda a: torch.bernoulli(a["x"].sigmoid()),
    "multinomial": lambda a: torch.multinomial(a["x"].softmax(1), 2),
    "dropout": lambda a: F.dropout(a["x"], 0.4),
}

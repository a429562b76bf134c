"""Random chains of views and writes give the same memory on the device as on the CPU."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

Change = Callable[[random.Random, torch.Tensor], Callable[[torch.Tensor], torch.Tensor]]


def _dim(rng: random.Random, t: torch.Tensor) -> int:
    return rng.randrange(t.dim())


def _slice(rng: random.Random, t: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    d = _dim(rng, t)
    start, step = rng.randrange(t.shape[d] + 1), rng.choice((1, 1, 2))
    return lambda t: t[(slice(None),) * d + (slice(start, None, step),)]


def _narrow(rng: random.Random, t: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    d = _dim(rng, t)
    start = rng.randrange(t.shape[d] + 1)
    length = rng.randrange(t.shape[d] - start + 1)
    return lambda t: t.narrow(d, start, length)


def _transpose(rng: random.Random, t: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    a, b = _dim(rng, t), _dim(rng, t)
    return lambda t: t.transpose(a, b)


def _select(rng: random.Random, t: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    d = _dim(rng, t)
    if t.dim() < 2 or t.shape[d] == 0:
        return lambda t: t.unsqueeze(0)
    at = rng.randrange(-t.shape[d], t.shape[d])
    return lambda t: t.select(d, at)


def _diagonal(rng: random.Random, t: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    return (lambda t: t.diagonal(0, 0, 1)) if t.dim() > 2 else (lambda t: t.flatten())


def _reshape(rng: random.Random, t: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda t: t.reshape(-1, 2) if t.numel() % 2 == 0 and t.numel() else t.reshape(-1)


def _chunk(rng: random.Random, t: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    d = _dim(rng, t)
    return (lambda t: t.chunk(2, d)[-1]) if t.shape[d] else (lambda t: t)


VIEWS: list[Change] = [_slice, _narrow, _transpose, _select, _diagonal, _reshape, _chunk]


def _writes(rng: random.Random) -> Callable[[torch.Tensor], Any]:
    value = rng.randrange(-3, 4)

    def half(t: torch.Tensor) -> Any:
        return t.masked_fill_(t > value, value)

    def rows(t: torch.Tensor) -> Any:
        return (
            t.index_fill_(0, torch.zeros(1, dtype=torch.long, device=t.device), value)
            if t.dim() and len(t)
            else t
        )

    def whole(t: torch.Tensor) -> Any:
        t[...] = torch.arange(t.numel(), device=t.device).view(t.shape) % 5

    def out(t: torch.Tensor) -> Any:
        return torch.mul(t, value, out=t)

    return rng.choice(
        [
            lambda t: t.add_(value),
            lambda t: t.mul_(-2).clamp_(-50, 50),
            lambda t: t.fill_(value),
            lambda t: t.copy_(t.clone().flip(0)) if t.dim() else t.neg_(),
            lambda t: t.cumsum_(0) if t.dim() else t,
            lambda t: t.add_(t.sum() % 7),
            half,
            rows,
            whole,
            out,
        ]
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bfloat16])
@pytest.mark.parametrize("seed", range(12))
def test_random_chains_of_views_and_writes_agree(seed: int, dtype: torch.dtype) -> None:
    rng = random.Random(f"{seed} {dtype}")
    shape = [rng.randrange(1, 5) for _ in range(rng.randrange(1, 4))]
    host = (torch.arange(torch.Size(shape).numel()).view(shape) % 7 - 3).to(dtype)
    device = host.to("neuron")
    alive = [(host, device)]
    for _ in range(40):
        one, other = rng.choice(alive)
        if rng.random() < 0.5 and one.dim():
            change = rng.choice(VIEWS)(rng, one)
            one, other = change(one), change(other)
            alive = [*alive[-6:], (one, other)]
        else:
            write = _writes(rng)
            write(one)
            write(other)
        for expected, given in [(host, device), *alive]:
            assert (given.shape, given.stride(), given.storage_offset(), given.dtype) == (
                expected.shape,
                expected.stride(),
                expected.storage_offset(),
                expected.dtype,
            )
            assert torch.equal(given.cpu(), expected)

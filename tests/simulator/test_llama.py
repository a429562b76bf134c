"""A Llama-style decoder block with a KV cache: three decode steps on the device equal the CPU,
eager and compiled.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

HEADS, KV_HEADS, WIDTH, LENGTH = 4, 2, 32, 8
HEAD = WIDTH // HEADS


class Block(torch.nn.Module):
    """RMSNorm, RoPE and mask made inside, grouped queries, SwiGLU, cache written by slice
    assignment.
    """

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = torch.nn.RMSNorm(WIDTH)
        self.norm2 = torch.nn.RMSNorm(WIDTH)
        self.q = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.k = torch.nn.Linear(WIDTH, KV_HEADS * HEAD, bias=False)
        self.v = torch.nn.Linear(WIDTH, KV_HEADS * HEAD, bias=False)
        self.o = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = torch.nn.Linear(WIDTH, 64, bias=False)
        self.up = torch.nn.Linear(WIDTH, 64, bias=False)
        self.down = torch.nn.Linear(64, WIDTH, bias=False)

    def _rotate(self, x: torch.Tensor, start: int) -> torch.Tensor:
        steps = torch.arange(start, start + x.shape[2], device=x.device, dtype=torch.float32)
        powers = torch.arange(0, HEAD, 2, device=x.device, dtype=torch.float32) / HEAD
        angles = steps[:, None] * (1.0 / 10000.0**powers)[None]
        cos, sin = (f.repeat(1, 2).to(x.dtype) for f in (angles.cos(), angles.sin()))
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat((-second, first), -1) * sin

    def forward(
        self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, start: int
    ) -> torch.Tensor:
        batch, steps, _ = x.shape
        normed = self.norm1(x)
        q, k, v = (
            linear(normed).view(batch, steps, heads, HEAD).transpose(1, 2)
            for linear, heads in ((self.q, HEADS), (self.k, KV_HEADS), (self.v, KV_HEADS))
        )
        keys[:, :, start : start + steps] = self._rotate(k, start)
        values[:, :, start : start + steps] = v
        seen = start + steps
        mask = torch.ones(steps, seen, dtype=torch.bool, device=x.device).tril(diagonal=start)
        attended = F.scaled_dot_product_attention(
            self._rotate(q, start),
            keys[:, :, :seen],
            values[:, :, :seen],
            attn_mask=mask,
            enable_gqa=True,
        )
        x = x + self.o(attended.transpose(1, 2).reshape(batch, steps, WIDTH))
        normed = self.norm2(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


def _decode(device: str, compiled: bool, dtype: torch.dtype, mode: object) -> list[torch.Tensor]:
    torch.manual_seed(0)
    block = Block().to(dtype).to(device)
    call = (
        torch.compile(block, backend="neuron", fullgraph=True, dynamic=False) if compiled else block
    )
    keys = torch.zeros(2, KV_HEADS, LENGTH, HEAD, dtype=dtype, device=device)
    values = torch.zeros_like(keys)
    prompt = torch.randn(2, 5, WIDTH).to(dtype)
    with mode():  # type: ignore[operator]
        outs = [call(prompt.to(device), keys, values, 0)]
        for step in range(3):
            outs.append(call(outs[-1][:, -1:], keys, values, 5 + step))
    assert all(out.device.type == device for out in outs)
    return [*(out.cpu() for out in outs), keys.cpu(), values.cpu()]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_three_decode_steps_equal_the_cpu(compiled: bool, dtype: torch.dtype, mode: object) -> None:
    torch._dynamo.config.automatic_dynamic_shapes, before = (
        False,
        torch._dynamo.config.automatic_dynamic_shapes,
    )
    try:
        answers = zip(
            _decode("cpu", False, dtype, mode),
            _decode("neuron", compiled, dtype, mode),
            strict=True,
        )
        for host, device in answers:
            torch.testing.assert_close(device, host, rtol=0, atol=0)
    finally:
        torch._dynamo.config.automatic_dynamic_shapes = before

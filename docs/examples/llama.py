"""A small Llama from the transformers library, with random weights: nothing is downloaded.

    python -m src.run workload=custom workload.target=docs/examples/llama.py:build \
        workload.phase=decode input.batch=1 input.seq=128 variant=compiled

The tool calls `build` with what was typed, and runs what it returns. docs/your_own_model.md
explains each line.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, StaticCache
from transformers.cache_utils import StaticLayer


def build(
    batch: int = 1,
    seq: int = 128,
    phase: str = "prefill",
    layers: int = 2,
    hidden: int = 256,
    dtype: torch.dtype = torch.bfloat16,
    seed: int = 0,
) -> dict[str, Any]:
    """One step: all of a prompt (prefill), or one new token after seq - 1 others (decode)."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=4096,
        hidden_size=hidden,
        intermediate_size=7 * hidden // 2,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 32,
        num_key_value_heads=hidden // 128,
        max_position_embeddings=max(seq, 2048),
    )
    llama = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").to(dtype).eval()
    weights = sum(one.numel() for one in llama.parameters())
    looked_up = llama.get_input_embeddings().weight.numel()  # of these, one row a token is read
    kept = 2 * layers * batch * seq * hidden // 4  # keys and values of all tokens
    tokens = batch * seq if phase == "prefill" else batch
    pairs = batch * (seq * (seq + 1) // 2 if phase == "prefill" else seq)
    return {
        "model": Prefill(llama) if phase == "prefill" else Decode(llama, batch, seq, dtype),
        "inputs": {
            "input_ids": torch.randint(4096, (batch, seq if phase == "prefill" else 1)),
        },
        "tokens": tokens,
        # two operations for each weight and token; q k^T and the sum over v for each causal pair
        "flops": 2 * (weights - looked_up) * tokens + 4 * layers * hidden * pairs,
        "bytes_moved": (weights - looked_up + tokens * hidden + kept) * dtype.itemsize,
    }


class Prefill(torch.nn.Module):
    """The whole prompt, without a cache."""

    def __init__(self, llama: torch.nn.Module) -> None:
        super().__init__()
        self.llama = llama

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.llama(input_ids=input_ids, use_cache=False).logits
        return logits


class Decode(torch.nn.Module):
    """One token at a fixed position, with a static cache: each step does the same work."""

    def __init__(self, llama: torch.nn.Module, batch: int, seq: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.llama = llama
        config: Any = llama.config
        self.cache = StaticCache(config, max_cache_len=seq)
        self.cache.layers = [LastSlot(seq) for _ in range(config.num_hidden_layers)]
        self.cache.early_initialization(
            batch, config.num_key_value_heads, config.head_dim, dtype, torch.device("cpu")
        )
        for layer in self.cache.layers:  # as if seq - 1 tokens had been there
            layer.keys.normal_()
            layer.values.normal_()
        self.register_buffer("position", torch.tensor([[seq - 1]]))
        self.register_buffer("mask", torch.ones(batch, 1, 1, seq, dtype=torch.bool))

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.llama(
            input_ids=input_ids,
            attention_mask=self.mask,
            position_ids=self.position,
            past_key_values=self.cache,
            use_cache=True,
        ).logits
        return logits

    def _apply(self, function: Any, recurse: bool = True) -> Decode:
        """`.to(device)` and `.float()` mean the cache as well, which is no module."""
        super()._apply(function, recurse)
        for layer in self.cache.layers:
            layer.keys, layer.values = function(layer.keys), function(layer.values)
        return self


class LastSlot(StaticLayer):
    """Puts the new token where the cache ends, every time."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self.keys[:, :, -1:] = key_states
        self.values[:, :, -1:] = value_states
        return self.keys, self.values

"""The built-in workloads: variants agree with the reference, bytes and flops with a hand count."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import torch

from src.errors import UserError
from src.measure import host
from src.measure.workload import load_builtin
from src.measure.workloads import attention, layer_norm, llama_block, rms_norm, softmax, swiglu

from .. import running
from .agreement import CASES, config_of


@pytest.fixture(scope="module")
def results() -> dict[tuple[Any, ...], dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.workloads.agreement"],
        cwd=running.REPOSITORY,
        env=running.environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return {tuple(one["case"]): one for one in json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(filter(None, case)))
def test_every_variant_agrees_with_the_float32_reference(results: Any, case: Any) -> None:
    found = results[case]
    assert found["passed"] is True, found["message"]
    assert found["output"] == [case[-1], "neuron"]


@pytest.mark.slow
def test_lower_precision_is_seen_as_an_error_and_not_as_zero(results: Any) -> None:
    errors = {case: one["max_relative_error"] for case, one in results.items()}
    for workload, phase, variant, dtype in CASES:
        if dtype == "bfloat16":
            exact = errors[workload, phase, variant, "float32"]
            assert errors[workload, phase, variant, dtype] > max(exact, 1e-4)


def test_bytes_are_what_a_hand_count_gives() -> None:
    # x and y of 2 x 3 x 8 in 2 bytes are 96 each; a weight or bias is 16
    assert rms_norm.bytes_moved([2, 3, 8], 2) == 96 + 96 + 16
    assert layer_norm.bytes_moved([2, 3, 8], 2) == 96 + 96 + 16 + 16
    assert softmax.bytes_moved([2, 3, 8], 2) == 96 + 96
    assert swiglu.bytes_moved([2, 3, 8], 2) == 96 + 96 + 96
    # hidden 512 is 4 heads of 128 and 1 key-value head: q and y are 3072 values, k and v 768
    assert attention.bytes_moved([2, 3, 512], 2, "prefill") == 2 * (2 * 3072 + 2 * 768)
    # decode: q and y of one token, the whole cache
    assert attention.bytes_moved([2, 3, 512], 2, "decode") == 2 * (2 * 1024 + 2 * 768)
    # the matrices of a layer: 2 * 512 * 512 + 2 * 512 * 128 + 3 * 512 * 1792
    matrices = 524288 + 131072 + 2752512
    small = 2 * (2 * 3 * 512) + 2 * (3 * 128) + 2 * 512  # x and y, cos and sin, two norms
    assert llama_block.bytes_moved([2, 3, 512], 2) == 2 * (matrices + small)


def test_flops_are_what_a_hand_count_gives() -> None:
    # 6 rows of 8
    assert rms_norm.flops([2, 3, 8]) == 48 * 4 + 6 * 3
    assert layer_norm.flops([2, 3, 8]) == 48 * 7 + 6 * 4
    assert softmax.flops([2, 3, 8]) == 48 * 5
    assert swiglu.flops([2, 3, 8]) == 48 * 6
    # tokens 1, 2 and 3 see 1, 2 and 3 keys: 6 pairs in 2 x 4 heads; decode: 3 pairs
    assert attention.flops([2, 3, 512], "prefill") == 2 * 4 * 6 * (2 * 128 + 2 * 128 + 5)
    assert attention.flops([2, 3, 512], "decode") == 2 * 4 * 3 * (2 * 128 + 2 * 128 + 5)
    matrices = 524288 + 131072 + 2752512
    rest = 10 * 512 + 3 * (512 + 128) + 6 * 1792
    assert llama_block.flops([2, 3, 512]) == 2 * 6 * matrices + 2 * 4 * 6 * 517 + 6 * rest


def test_the_llama_block_has_the_proportions_of_llama_3_8b() -> None:
    *_, hidden, heads, kv_heads, size = llama_block._sizes([1, 2048, 4096])
    assert (hidden, heads, kv_heads, size) == (4096, 32, 8, 128)
    assert llama_block._matrix_elements([1, 2048, 4096]) == 218_103_808  # of its config: 218.1 M


def test_tokens_are_those_that_a_step_takes_in() -> None:
    assert attention.tokens([4, 128, 512], "prefill") == 512
    assert attention.tokens([4, 128, 512], "decode") == 4
    assert llama_block.tokens([4, 128, 512]) == 512


def test_the_same_seed_gives_the_same_inputs_and_another_one_others() -> None:
    first, again, other = (swiglu.make_inputs([2, 8], torch.float32, seed) for seed in (1, 1, 2))
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[0], other[0])


def test_attention_is_causal_in_prefill() -> None:
    q, k, v = attention.make_inputs([1, 4, 64], torch.float32, 0, "prefill")
    before = attention.naive(q, k, v)
    k[..., 3, :], v[..., 3, :] = 9.0, 9.0
    after = attention.naive(q, k, v)
    assert torch.equal(before[..., :3, :], after[..., :3, :])
    assert not torch.equal(before[..., 3, :], after[..., 3, :])


@pytest.mark.parametrize("shape", [[4, 64], [1, 4, 200]])
def test_a_shape_without_whole_heads_is_refused_with_one_to_type(shape: list[int]) -> None:
    with pytest.raises(UserError, match=r"Type input\.shape=1x2048x4096"):
        attention.flops(shape, "prefill")
    with pytest.raises(UserError, match=r"Type input\.shape=1x2048x4096"):
        llama_block.flops(shape)


def test_a_step_too_large_for_this_computer_is_refused_with_what_to_type() -> None:
    config = config_of("workload=llama_block", "variant=naive", "input=large")
    with pytest.raises(UserError, match=r"7\.4e\+12 operations.*Type .*input=small") as refused:
        load_builtin(config, is_simulated=True)
    allowed = float(str(refused.value).rpartition("most_step_flops=")[2].rstrip("."))
    assert allowed > llama_block.flops([8, 2048, 4096])


def test_a_step_that_would_take_all_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "free_memory_bytes", lambda: 10**9)
    words = ("workload=attention", "variant=naive", "input=medium")
    with pytest.raises(UserError, match=r"takes about 0\.8 GB .* 1\.0 GB are free"):
        load_builtin(config_of(*words), is_simulated=True)

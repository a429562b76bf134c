"""docs/examples/llama.py by the command line that docs/your_own_model.md shows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from src import rundir

from .. import running

DOCUMENT = running.REPOSITORY / "docs" / "your_own_model.md"
SMALL = ("device=simulated", "workload.kwargs.hidden=128", "input.seq=16", "profiler.repeats=2",
         "profiler.warmup=1", "profiler.latency_calls=2")  # fmt: skip


def documented() -> list[str]:
    """The words of the document's sweep, in which all phases and variants run."""
    text = DOCUMENT.read_text().replace("\\\n", " ")
    (line,) = [line for line in text.splitlines() if "src.run -m workload=custom" in line]
    return shlex.split(line)[3:]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Any]:
    pytest.importorskip("transformers", reason="pip install -e '.[examples]' brings transformers")
    root: Path = tmp_path_factory.mktemp("llama") / "mlruns"
    done = running.run(root, *documented(), *SMALL, cwd=running.REPOSITORY)
    assert done.returncode == 0, done.stderr
    found = [run for run in running.tracked(root) if run.data.tags.get("kind") == "profile"]
    return {(r.data.params["workload.phase"], r.data.params["variant"]): r for r in found}


@pytest.mark.slow
def test_prefill_and_decode_run_eager_compiled_and_compiled_per_layer(runs: Any) -> None:
    assert set(runs) == {
        (phase, variant)
        for phase in ("prefill", "decode")
        for variant in ("naive", "compiled", "compiled_layers")
    }
    for (phase, variant), run in runs.items():
        assert run.info.status == "FINISHED"
        assert run.data.tags["capture_health"] == "complete"
        numerics = rundir.read_json(running.artifacts(run) / rundir.NUMERICS)
        assert numerics["passed"] is True, (phase, variant, numerics["message"])


@pytest.mark.slow
def test_compiling_the_whole_model_takes_one_execution_and_layers_one_each(runs: Any) -> None:
    for phase in ("prefill", "decode"):
        calls = {
            v: run.data.metrics["operator_calls"] for (p, v), run in runs.items() if p == phase
        }
        assert calls["compiled"] == 1
        assert calls["compiled"] < calls["compiled_layers"] < calls["naive"]
        operators = rundir.read_operators(running.artifacts(runs[phase, "compiled_layers"]))
        assert operators is not None
        rows = [row for row in operators.windows[0].operators if "Compiled Region" in row.name]
        assert sum(row.calls for row in rows) == 2  # the example has two layers


@pytest.mark.slow
def test_tokens_give_a_rate_and_a_device_time_each(runs: Any) -> None:
    for (phase, _), run in runs.items():
        metrics, tokens = run.data.metrics, 16 if phase == "prefill" else 1
        expected = metrics["self_neuron_us"] / tokens
        assert metrics["self_neuron_us_per_token"] == pytest.approx(expected)
        rate = tokens / metrics["latency/pipelined_us_per_step"] * 1e6
        assert metrics["tokens_per_s"] == pytest.approx(rate)

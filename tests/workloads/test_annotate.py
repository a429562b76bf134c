"""workload.annotate=modules: marks in the trace, and a table by module from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .. import running

MODEL = """
import torch

def build(batch=2):
    inner = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(32, 4))
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), inner)
    return {"model": model, "inputs": (torch.randn(batch, 16),)}
"""


@pytest.mark.slow
def test_device_time_goes_to_the_innermost_module_and_its_parents_total(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    words = ("workload=custom", "workload.target=model.py:build", "variant=naive")
    more = ("input.dtype=float32", "profiler.repeats=1", "workload.annotate=modules")
    done = running.run(tmp_path / "mlruns", *words, *more)
    assert done.returncode == 0, done.stderr
    (run,) = running.tracked(tmp_path / "mlruns")
    tables = json.loads((running.artifacts(run) / "tables.json").read_text())
    rows = {row["module"]: row for row in tables["by_module"]}
    # Each of the three operators that run costs one dispatch of 328 us, and a little for its bytes.
    own = {name: round(rows[name]["self_neuron_us"] or 0) for name in rows}
    assert {name: own[name] for name in ("0", "1", "1.0", "1.1")} == {
        "0": 328, "1": 0, "1.0": 328, "1.1": 328
    }  # fmt: skip
    assert round(rows["1"]["neuron_total_us"]) == 656

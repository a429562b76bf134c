"""Runs a user's script with the simulated device in the place of torch_neuronx."""

from __future__ import annotations

import runpy
import sys
import types
from pathlib import Path

from src.measure import simulator

if __name__ == "__main__":
    simulator.install(
        simulator.CostModel(
            dispatch_us=300.0,
            hbm_bytes_per_s=482e9,
            tensor_flops_per_s={"bfloat16": 158e12, "float16": 158e12, "float32": 40e12},
            vector_flops_per_s=2e12,
        )
    )
    from src.measure.simulator import profiling

    library = types.ModuleType("torch_neuronx")
    library.profiling = profiling  # type: ignore[attr-defined]
    sys.modules |= {"torch_neuronx": library, "torch_neuronx.profiling": profiling}
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")

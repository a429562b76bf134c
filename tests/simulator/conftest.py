"""The simulated device, installed once for all tests of this folder, with constants that are
easy to calculate with.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from src.measure.simulator import CostModel, install  # noqa: E402
from src.measure.simulator.profiling import NeuronConfig, NeuronProfiler, ProfileMode  # noqa: E402

COST = CostModel(
    dispatch_us=100.0,
    hbm_bytes_per_s=1e12,
    tensor_flops_per_s={"bfloat16": 100e12, "float32": 25e12},
    vector_flops_per_s=1e13,
)
CORES = (0, 3)


@pytest.fixture(scope="session", autouse=True)
def simulated_device() -> None:
    install(COST, CORES, total_memory_bytes=4 * 1024**3)


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    yield
    torch._dynamo.reset()
    torch.neuron.set_device(0)
    os.environ.pop("TORCH_NEURONX_NEFF_CACHE_DIR", None)


class Recorded:
    """A finished profile and the folder of its session."""

    def __init__(self, prof: Any, root: Path) -> None:
        self.prof = prof
        self.folders = sorted(path for path in root.glob("*/*") if path.is_dir())

    @property
    def folder(self) -> Path:
        (only,) = self.folders
        return only

    def rows(self) -> dict[str, tuple[int, float]]:
        """Name -> (calls, Self NEURON in us) of the rows that have device time."""
        return {
            row.key: (row.count, row.self_device_time_total)
            for row in self.prof.key_averages()
            if row.self_device_time_total
        }


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., Recorded]:
    """Profile a callable: `record(function, **NeuronConfig parameters)`; it waits for the device
    unless told not to.
    """

    def profile_it(
        function: Callable[[], object],
        synchronize: bool = True,
        exporter: bool = True,
        profiler: dict[str, Any] | None = None,
        **config: Any,
    ) -> Recorded:
        root = Path(config.setdefault("profile_output_dir", str(tmp_path / "profile")))
        config.setdefault("modes", [ProfileMode.RUNTIME])
        config.setdefault("correlate_device_time", True)
        neuron = NeuronConfig(**config)
        arguments: dict[str, Any] = {
            "activities": [
                torch.profiler.ProfilerActivity.CPU,
                torch.profiler.ProfilerActivity.PrivateUse1,
            ],
            "experimental_config": neuron,
            **(profiler or {}),
        }
        if exporter:
            arguments["on_trace_ready"] = NeuronProfiler(neuron).export_trace
        with torch.profiler.profile(**arguments) as prof:
            function()
            if synchronize:
                torch.neuron.synchronize()
        return Recorded(prof, root)

    return profile_it

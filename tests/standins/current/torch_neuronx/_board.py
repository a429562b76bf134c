"""The device of the stand-in: the simulator's tensors under the library's behaviour.

Counts how often each program ran and how (with or without gradients), writes NEFFs into the cache
when the caller synchronizes, and can let one operator fall back to the CPU.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from pathlib import Path
from typing import Any

import torch

from . import _diary, _moods

SIMULATOR = Path(__file__).resolve().parents[4] / "src" / "measure" / "simulator"
GIB = 1024**3
# Fitted to the published study, as conf/device/simulated.yaml explains.
COST = {
    "dispatch_us": 328.0,
    "hbm_bytes_per_s": 482e9,
    "tensor_flops_per_s": {"bfloat16": 158e12, "float16": 158e12, "float32": 40e12},
    "vector_flops_per_s": 2e12,
}

calls: dict[str, int] = {}
"""Program -> how often it ran under no_grad."""
fresh: list[Any] = []
"""Programs that ran and whose NEFF is not in the cache yet: compiling is asynchronous."""
unsynchronized = 0
with_grad = 0
"""Executions while gradients were being recorded."""
executed: set[str] = set()
fallen_back: set[str] = set()
leaving = False
"""torch's own exit from a profile block, which synchronizes by itself."""
session_is_open = False
_random = random.Random(_moods.SEED)
_libraries: list[Any] = []


def _load_simulator() -> Any:
    spec = importlib.util.spec_from_file_location(
        "_standin_simulator", SIMULATOR / "__init__.py", submodule_search_locations=[str(SIMULATOR)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = package
    spec.loader.exec_module(package)
    return package


simulator = _load_simulator()
memory = importlib.import_module("_standin_simulator.memory")
record = importlib.import_module("_standin_simulator.record")
_wait = record.synchronize
# The cache is this library's: the simulator must not leave files of its own in it.
importlib.import_module("_standin_simulator.neffs").write_neff = lambda *_: ""


def power_on() -> None:
    """Make the device; what the runtime would do at its first use happens at the first tensor."""
    cores = range(1 if _moods.on("fewer_cores") else _visible())
    simulator.install(simulator.CostModel(**COST), cores=tuple(cores), total_memory_bytes=24 * GIB)
    neuron: Any = torch.neuron  # type: ignore[attr-defined]
    neuron.synchronize = synchronize
    neuron.is_available = is_available
    neuron.get_device_name = lambda device=None: "neuron:0"
    if _moods.on("nested_memory_stats"):
        flat = neuron.memory_stats
        neuron.memory_stats = lambda device=None: _nested(flat(device))
    if _moods.on("busy_core"):
        memory.books.check = _refuse_core
    record.execute = _execute
    if _moods.on("falls_back"):
        _let_fall_back(_moods.FALLS_BACK)
    from . import _session

    _session.hook()


def _visible() -> int:
    """How many cores NEURON_RT_VISIBLE_CORES names; without it, those of a trn2.3xlarge."""
    listed = os.environ.get("NEURON_RT_VISIBLE_CORES")
    if not listed:
        return 4
    parts = [part.partition("-") for part in listed.split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in parts)


def is_available() -> bool:
    return not _moods.on("unavailable")


def _refuse_core(device: int, nbytes: int) -> None:
    raise RuntimeError("nrt_init failed: logical neuron core 0 is in use by another process")


def synchronize(device: Any = None) -> None:
    """Wait for the device; NEFFs of what ran are in the cache from now on."""
    global unsynchronized
    _diary.note("synchronize", inside=session_is_open, by_torch=leaving)
    _wait(torch.device(device or "neuron").index or 0)
    unsynchronized = 0
    while fresh:
        write_neff(fresh.pop().hash)


def cache() -> Path | None:
    """Where compiled NEFFs are; a test must name it, so that no machine's own one is touched."""
    directory = os.environ.get("TORCH_NEURONX_NEFF_CACHE_DIR")
    return Path(directory) if directory else None


def write_neff(name: str) -> None:
    folder = cache()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"neff_{name}.neff"
        if not path.exists():
            path.write_text(f"placeholder of a stand-in, not a NEFF: {name}\n")


def _execute(model: Any, work: Any, index: int) -> None:
    global unsynchronized, with_grad
    if model.key not in calls:
        fresh.append(model)
    calls.setdefault(model.key, 0)
    calls[model.key] += not torch.is_grad_enabled()
    with_grad += torch.is_grad_enabled()
    executed.add(model.name)
    unsynchronized += 1
    _original_execute(model, work, index)


_original_execute = record.execute


def clear_op_tracking() -> None:
    _diary.note("clear_op_tracking", inside=session_is_open)
    executed.clear()
    fallen_back.clear()


def get_fallback_ops() -> set[str]:
    _diary.note("get_fallback_ops", inside=session_is_open)
    return set() if _moods.on("dead_op_tracking") else set(fallen_back)


def get_executed_ops() -> set[str]:
    return set() if _moods.on("dead_op_tracking") else set(executed)


def _let_fall_back(name: str) -> None:
    """The operator moves its input to the CPU, runs there, and moves the result back."""
    operator = getattr(torch.ops.aten, name).default

    def kernel(value: torch.Tensor) -> torch.Tensor:
        fallen_back.add(f"aten::{name}")
        on_host = value.to("cpu")
        return operator(on_host).to(value.device)

    library = torch.library.Library("aten", "IMPL")
    _libraries.append(library)
    library.impl(name, kernel, "PrivateUse1", allow_override=True)


def duration_ns(modelled: int) -> int:
    """The device time of one execution: the model's, with this run's scale and noise."""
    return max(1, round(modelled * _moods.SCALE * (1 + _moods.NOISE * _random.gauss(0, 1))))


def _nested(flat: dict[str, int]) -> dict[str, Any]:
    kinds = ("allocated_bytes", "reserved_bytes", "active_bytes")
    fields = ("current", "peak", "allocated", "freed")
    nested: dict[str, Any] = {
        kind: {field: flat[f"{kind}.all.{field}"] for field in fields} for kind in kinds
    }
    return {**nested, "num_ooms": 0, "num_alloc_retries": 0}

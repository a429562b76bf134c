"""Runs every built-in workload, variant and dtype on the simulated device; prints the results.

A program of its own, because a process can install one device: test_builtin.py starts it once.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import torch
from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

from src import rules
from src.measure import numerics, variants
from src.measure.devices import choose
from src.schema import DTYPES, Config, config_from_mapping

CONF = Path(__file__).resolve().parents[2] / "conf"
SHAPES = {"attention": "2x16x1024", "llama_block": "1x8x512"}
CASES = [
    (workload, phase, variant, dtype)
    for workload, phases in {
        "rms_norm": [None],
        "layer_norm": [None],
        "softmax": [None],
        "swiglu": [None],
        "attention": ["prefill", "decode"],
        "llama_block": [None],
    }.items()
    for phase in phases
    for variant in ("naive", "fused", "compiled")
    for dtype in DTYPES
]


def config_of(*overrides: str) -> Config:
    ConfigStore.instance().store(name="schema", node=Config)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        composed = compose("config", ["device=simulated", *overrides])
    return rules.checked(config_from_mapping(OmegaConf.to_container(composed, resolve=True)))


def main() -> None:
    device = choose.open_device(config_of())
    results = []
    for workload, phase, variant, dtype in CASES:
        shape = SHAPES.get(workload, "2x8x64")
        words = [f"workload={workload}", f"variant={variant}", f"input.dtype={dtype}"]
        words += [f"input.shape={shape}", *([f"workload.phase={phase}"] if phase else [])]
        config = config_of(*words)
        with torch.no_grad():
            made = variants.load(config, device)
            output = variants.build(made, config, device.torch_device)()
            device.synchronize()
            found = numerics.check(output, made, None)
        case = [workload, phase, variant, dtype]
        dtypes = [str(output.dtype).removeprefix("torch."), output.device.type]
        results.append({"case": case, **asdict(found), "output": dtypes})
    print(json.dumps(results))


if __name__ == "__main__":
    main()

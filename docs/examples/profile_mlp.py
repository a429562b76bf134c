"""A profiling script as people have them; the two marked lines are all that neuron_handler.py adds.

On Trainium: python profile_mlp.py out
"""

from __future__ import annotations

import sys

import torch
from neuron_handler import saving  # added
from torch.profiler import ProfilerActivity, profile, schedule
from torch_neuronx.profiling import NeuronConfig, NeuronProfiler, ProfileMode


def main(output_dir: str) -> None:
    """Profile three windows of two steps each."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))
    model = model.eval().to("neuron")
    x = torch.randn(8, 64).to("neuron")
    config = NeuronConfig(
        modes=[ProfileMode.RUNTIME, ProfileMode.DEVICE],
        profile_output_dir=output_dir,
        capture_enabled_for_nc="0",
        correlate_device_time=True,
    )
    export = NeuronProfiler(config).export_trace
    export = saving(export, output_dir, correlate_device_time=True)  # added
    with torch.no_grad():
        for _ in range(3):
            model(x)
        torch.neuron.synchronize()
        for _ in range(3):
            with profile(
                activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1],
                schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
                experimental_config=config,
                on_trace_ready=export,
            ) as prof:
                for _ in range(3):
                    model(x)
                    torch.neuron.synchronize()
                    prof.step()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out")

"""The script one would write without this project: Hydra, the profile and MLflow in one process.

Run by overhead.py for comparison. It measures the same step in the same windows on the same
simulated device, and logs totals, operators and the profiler directory, without any check.
"""

from __future__ import annotations

import sys
from pathlib import Path

import hydra
import mlflow
import torch
from omegaconf import DictConfig, OmegaConf
from torch.profiler import ProfilerActivity, profile, schedule

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from src.measure import simulator
from src.measure.workloads import rms_norm


@hydra.main(version_base="1.3", config_path=None)
def main(config: DictConfig) -> None:
    root = Path(config.root)
    cost = OmegaConf.to_container(config.cost)
    simulator.install(simulator.CostModel(**cost), cores=[0], total_memory_bytes=24 * 2**30)
    from src.measure.simulator.profiling import NeuronConfig, NeuronProfiler, ProfileMode

    x, weight = (t.to("neuron") for t in rms_norm.make_inputs([1, 2048, 4096], torch.bfloat16, 0))
    step = torch.compile(rms_norm.naive, backend="neuron", fullgraph=True, dynamic=False)
    mlflow.set_tracking_uri(f"sqlite:///{root}/mlflow.db")
    mlflow.set_experiment("naive_peer")
    with mlflow.start_run() as run, torch.no_grad():
        mlflow.log_params({"variant": "compiled", "shape": "1x2048x4096"})
        output = root / "profiles" / run.info.run_id
        for _ in range(4):
            step(x, weight)
        torch.neuron.synchronize()
        totals = []
        for _ in range(5):
            settings = NeuronConfig(
                modes=[ProfileMode.RUNTIME],
                profile_output_dir=str(output),
                capture_enabled_for_nc="0",
                correlate_device_time=True,
            )
            with profile(
                activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1],
                schedule=schedule(wait=0, warmup=0, active=1, repeat=1),
                on_trace_ready=NeuronProfiler(settings).export_trace,
                experimental_config=settings,
            ) as prof:
                step(x, weight)
                torch.neuron.synchronize()
                prof.step()
            rows = prof.key_averages()
            totals.append(sum(row.self_device_time_total for row in rows))
        mlflow.log_metrics({"self_neuron_us": sorted(totals)[2]})
        mlflow.log_metrics({row.key.replace("*", ""): row.self_cpu_time_total for row in rows})
        mlflow.log_artifacts(str(output), "profile")


if __name__ == "__main__":
    main()

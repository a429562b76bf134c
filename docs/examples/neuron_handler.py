"""Copy this file beside a profiling script of yours; it needs only torch.

    config = NeuronConfig(profile_output_dir="out", correlate_device_time=True, ...)
    handler = saving(NeuronProfiler(config).export_trace, "out", correlate_device_time=True)
    with torch.profiler.profile(..., experimental_config=config, on_trace_ready=handler):

Your own handler runs first, then operators.json and environment.json are put beside its trace.json,
for `python -m src.ingest out --workload NAME --variant NAME`. An error in here is only printed.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import time
import traceback
from pathlib import Path
from typing import Any

import torch

PREFIXES, SECRETS = ("NEURON_", "TORCH_NEURONX_", "XLA_", "NKI_"), ("TOKEN", "SECRET", "KEY")


def saving(
    handler: Any, output_dir: str, *, correlate_device_time: bool, steps: int | None = None
) -> Any:
    """Wrap an on_trace_ready handler; None exports the trace in the ordinary way.

    `output_dir` and `correlate_device_time` are what the NeuronConfig was given: without the
    correlation the table's device time is dispatch, and no Self NEURON. `steps` are the calls in
    one session, where no schedule marks them.
    """

    def on_trace_ready(prof: Any) -> None:
        before = _stamps(output_dir)
        if handler is not None:
            handler(prof)
        try:
            folder = _session(output_dir, before)
            if not (folder / "trace.json").exists():
                prof.export_chrome_trace(str(folder / "trace.json"))
            environment = _environment(folder)
            source = {"simulated": "simulated", "neuron": "key_averages"}.get(environment["device"])
            found = _operators(prof, source if correlate_device_time else None, steps)
            for name, data in (("environment", environment), ("operators", found)):
                (folder / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")
        except Exception:
            traceback.print_exc()

    return on_trace_ready


def _stamps(root: str) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in Path(root).rglob("*") if path.is_file()}


def _session(root: str, before: dict[Path, int]) -> Path:
    """The session's own folder, as far as its process or its new files tell; else a new one."""
    written = {path.parent for path, stamp in _stamps(root).items() if before.get(path) != stamp}
    own = {path.parent for path in before if f"_pid_{os.getpid()}" in str(path)}
    done = {path.parent for path in before if path.name == "operators.json"}
    mine = {folder for folder in written if f"_pid_{os.getpid()}" in str(folder)}
    if folders := (mine - done) or (own - done) or (written - done if len(written) == 1 else None):
        return max(folders, key=lambda folder: folder.stat().st_mtime_ns)
    folder = Path(root, f"session_pid_{os.getpid()}", str(time.time_ns()))
    folder.mkdir(parents=True)
    return folder


def _operators(prof: Any, source: str | None, steps: int | None) -> dict[str, Any]:
    averages, events = prof.key_averages(), prof.events() or ()
    dispatch = {e.name for e in events if "privateuse1_" in str(getattr(e, "activity_type", ""))}
    rows = [
        {
            "name": row.key,
            "calls": row.count,
            "self_cpu_us": float(row.self_cpu_time_total),
            "cpu_total_us": float(row.cpu_time_total),
            "self_neuron_us": float(row.self_device_time_total) or None,
            "annotation": bool(row.is_user_annotation) or row.key.startswith("ProfilerStep"),
        }
        for row in averages
        if str(row.device_type) == "DeviceType.CPU" and row.key not in dispatch
    ]
    marked = sum(row["calls"] for row in rows if row["name"].startswith("ProfilerStep"))
    has_time = any(row["self_neuron_us"] and not row["annotation"] for row in rows)
    total = {"self_cpu_total_us": float(averages.self_cpu_time_total)}
    windows = [{"steps": marked or steps or 1, "operators": rows, **total}]
    found = {"format": 1, "device_time_source": source if has_time else None, "windows": windows}
    return {**found, "fallback_operators": None, "dropped_keywords": []}


def _environment(folder: Path) -> dict[str, Any]:
    neuron = getattr(torch, "neuron", None)
    device = "neuron" if neuron is not None and neuron.is_available() else None
    named = str(neuron.get_device_name()) if device else ""
    if "simulated" in named or any(folder.glob("*.simulated.json*")):
        device = "simulated"
    product = Path("/sys/devices/virtual/dmi/id/product_name")
    instance = product.read_text(errors="replace").strip() if product.exists() else ""
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    for package in ("torch-neuronx", "neuronx-cc", "nki"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package.replace("-", "_")] = importlib.metadata.version(package)
    return {
        "device": device,
        "instance_type": instance if instance.startswith(("trn", "inf")) else None,
        "versions": versions,
        "pid": os.getpid(),
        "rank": os.environ.get("RANK"),
        "variables": {
            name: "***" if any(word in name for word in SECRETS) else value
            for name, value in sorted(os.environ.items())
            if name.startswith(PREFIXES)
        },
    }

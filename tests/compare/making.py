"""Tracked runs for the tests of comparing: as plain data, and as run directories sent by ingest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from src import ingest, rules, rundir
from src.analyze.measured import Measured
from src.schema import (
    CompileConfig,
    Config,
    DeviceConfig,
    InputConfig,
    ProfilerConfig,
    Spec,
    TrackingConfig,
    VariantConfig,
    WorkloadConfig,
)

NOISE_3 = (1.0, 1.03, 0.97, 1.015, 0.985)
"""Five windows around 1 with a standard deviation of about 2.4 %."""
VARIANTS = {
    "naive": VariantConfig("naive", "naive"),
    "fused": VariantConfig("fused", "fused"),
    "compiled": VariantConfig("compiled", "naive", CompileConfig()),
}
OPERATORS = {
    "naive": {"aten::mul": 0.5, "aten::mean": 0.2, "aten::add": 0.15, "aten::rsqrt": 0.15},
    "fused": {"aten::_fused_rms_norm": 1.0},
    "compiled": {"Torch-Compiled Region: 0/0": 1.0},
}
_numbers = count(1)


def measured(
    variant: str = "naive",
    us: float | None = 1000.0,
    windows: Sequence[float] = NOISE_3,
    *,
    device: str = "neuron",
    status: str = "FINISHED",
    params: dict[str, str | None] | None = None,
    tags: dict[str, str | None] | None = None,
    metrics: dict[str, float] | None = None,
    run_id: str | None = None,
    started_ms: int | None = None,
) -> Measured:
    """One run as the store has it; `None` in params or tags takes a value away."""
    number = next(_numbers)
    source = "simulated" if device == "simulated" else "key_averages"
    all_params = {
        "workload": "rms_norm",
        "variant": variant,
        "variant.implementation": variant,
        "input.shape": "1x2048x4096",
        "input.dtype": "bfloat16",
        "device": device,
        "device_time_source": source,
        "cores": "0",
        "profiler.modes": "RUNTIME",
        "execution": "default",
        **(params or {}),
    }
    all_tags = {
        "kind": "profile",
        "device": device,
        "device_time_source": source,
        "lnc": "2",
        "chip": "trn2",
        "cores": all_params["cores"],
        "version.torch": "2.13.0",
        "version.torch_neuronx": "2.13.0.2.1",
        "capture_health": "complete",
        "measurement_id": f"{variant} {all_params}",
        "timing_variables": "{}",
        "window_self_neuron_us": json.dumps([] if us is None else [us * w for w in windows]),
        **(tags or {}),
    }
    all_metrics = {} if us is None else {
        "self_neuron_us": us,
        "self_cpu_us": 50.0,
        "operator_calls": float(len(OPERATORS.get(variant, {"": 1}))),
        "fallback_operators": 0.0,
        **{f"self_neuron_us/{op.partition(':')[0] if op.startswith('Torch') else op}": us * share
           for op, share in OPERATORS.get(variant, {}).items()},
    }  # fmt: skip
    all_metrics |= metrics or {}
    return Measured(
        run_id=run_id or f"{number:032x}"[::-1],
        name=f"rms_norm {variant}",
        status=status,
        started_ms=number if started_ms is None else started_ms,
        experiment_id="1",
        params={k: v for k, v in all_params.items() if v is not None},
        tags={k: v for k, v in all_tags.items() if v is not None},
        metrics=all_metrics,
    )


def directory(
    folder: Path,
    variant: str = "naive",
    us: float = 1000.0,
    windows: Sequence[float] = NOISE_3,
    *,
    shape: str = "1x2048x4096",
    device: str = "neuron",
    fallbacks: Sequence[str] = (),
    measurement_id: str | None = None,
    sweep_id: str | None = None,
    versions: dict[str, str] | None = None,
    neff: bytes | None = None,
    error: str | None = None,
    **config: Any,
) -> Path:
    """A run directory as a child on that device leaves it, one window for each of `windows`."""
    name = "simulated" if device == "simulated" else "neuron"
    asked = Config(
        workload=WorkloadConfig("rms_norm", ["naive", "fused"]),
        variant=VARIANTS[variant],
        input=InputConfig("small", shape),
        profiler=ProfilerConfig("runtime", repeats=len(windows), **config),
        device=DeviceConfig(name),
        tracking=TrackingConfig("local"),
    )
    spec = Spec(rules.checked(asked), overrides=(f"variant={variant}",), sweep_id=sweep_id)
    made = folder / f"{variant}-{next(_numbers)}"
    (made / rundir.PROFILE).mkdir(parents=True)
    rundir.write_json(made / rundir.SPEC, spec.to_json())
    ready = {
        "device": device,
        "cores": "0",
        "chip": "trn2",
        "lnc": 2,
        "versions": versions or {"torch": "2.13.0", "torch_neuronx": "2.13.0.2.1"},
        "measurement_id": measurement_id or f"{variant} {shape} {device} {config}",
    }
    rundir.write_json(made / rundir.ENVIRONMENT, {**ready, "variables": {"NEURON_RT_X": "1"}})
    rundir.write_json(
        made / "run.json", {"ready": ready, "ended": "failed" if error else "measured"}
    )
    if error:
        (made / rundir.ERROR).write_text(error)
    else:
        rundir.write_operators(made, _operators(variant, us, windows, device, fallbacks))
    for number in range(len(windows)):
        session = made / rundir.PROFILE / f"i-1_pid_{number}"
        session.mkdir()
        end = ".simulated.json" if device == "simulated" else ""
        for file in ("ntrace.pb", "trace_info.pb"):
            (session / f"{file}{end}").write_bytes(b"placeholder")
        (session / "trace.json").write_text("{}")
        if neff is not None and not number:
            (session / "neff_1_vnc_0.neff").write_bytes(neff)
    (made / rundir.CHILD_LOG).write_text("measured\n")
    return made


def _operators(
    variant: str, us: float, windows: Sequence[float], device: str, fallbacks: Sequence[str]
) -> rundir.Operators:
    source = "simulated" if device == "simulated" else "key_averages"
    return rundir.Operators(
        source,
        tuple(
            rundir.Window(
                1,
                (
                    rundir.OperatorRow("ProfilerStep#0", 1, 1.0, 90.0, annotation=True),
                    *(
                        rundir.OperatorRow(name, 1, 10.0, 12.0, us * share * window)
                        for name, share in OPERATORS[variant].items()
                    ),
                ),
                90.0,
                session_dir=f"i-1_pid_{number}",
                executions=len(OPERATORS[variant]),
            )
            for number, window in enumerate(windows)
        ),
        tuple(fallbacks),
    )


def track(root: Path, *directories: Path) -> None:
    """Send run directories to the local store under `root`, as a user would."""
    assert ingest.main([*map(str, directories), "--root", str(root)]) == 0

"""A comparison as plain data: comparison.json and `python -m src.compare --json`.

Called by compare.py and track/summary_run.py. What is missing is null.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from . import conditions
from .comparison import Comparison, Row, operators
from .gate import Gate

FORMAT = 1


def as_data(comparison: Comparison, gate: Gate | None = None) -> dict[str, Any]:
    """Return everything that the tables show, and the gate's answer when one was asked for."""
    return {
        "format": FORMAT,
        "simulated": comparison.simulated,
        "across": comparison.across,
        "groups": [
            {"title": group.title, "runs": [_row(row) for row in group.rows]}
            for group in comparison.groups
        ],
        "gate": None if gate is None else {"exit_code": gate.code, "reasons": list(gate.lines)},
    }


def _row(row: Row) -> dict[str, Any]:
    run = row.run
    device_us, host_us, calls = row.headline
    found = []
    if row.baseline is not None and not row.is_baseline:
        found = [asdict(d) for d in conditions.all_differences(row.baseline, run)]
    return {
        "run_id": run.run_id,
        "name": run.name,
        "status": run.status,
        "label": row.label,
        "workload": run.workload,
        "variant": run.variant,
        "input": run.input,
        "cores": run.cores,
        "device": run.device,
        "self_neuron_us": device_us,
        "self_cpu_us": host_us,
        "operator_calls": calls,
        "window_self_neuron_us": list(run.windows_us),
        "capture_health": run.tags.get("capture_health"),
        "neff_sha256": run.neff,
        "measurement_id": run.measurement_id,
        "baseline": row.baseline.run_id if row.baseline else None,
        "is_baseline": row.is_baseline,
        "speedup": row.speedup,
        "verdict": asdict(row.verdict),
        "operators": [{**asdict(c), "saved_us": c.saved_us} for c in operators(row)],
        "differences": found,
    }

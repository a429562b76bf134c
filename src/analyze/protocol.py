"""The protocol's own metrics: phases, host latency, peak memory, tokens, the profiler's overhead.

Called by track/outcome.py. Reads the small files that the child left in a run directory; what is
not there, or is no number, gives no metric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from .. import rundir
from ..errors import UserError
from ..rundir import Operators
from ..schema import Spec

FEWEST = {50: 1, 90: 10, 99: 100}
"""Calls that a percentile needs: of fewer, it is just the largest value."""


def metrics(
    directory: Path, spec: Spec, operators: Operators | None, self_neuron_us: float | None
) -> dict[str, float]:
    """Metrics by name. Latency and tokens_per_s are host time, self_neuron_us_per_token is not."""
    latency = _read(directory / rundir.LATENCY)
    calls = _numbers(latency.get("synchronized_us"))
    pipelined_us = _number(latency.get("pipelined_us_per_step"))
    tokens = _number(_read(directory / rundir.WORK).get("tokens"))
    has_phase = _read(directory / rundir.PHASES).items()
    found: dict[str, float | None] = {
        **{f"phase/{name}": _number(value) for name, value in has_phase},
        **latencies(calls),
        "latency/pipelined_us_per_step": pipelined_us,
        "memory/peak_allocated_bytes": _number(
            _read(directory / rundir.MEMORY).get("peak_allocated_bytes")
        ),
        "numerics/max_relative_error": _number(
            _read(directory / rundir.NUMERICS).get("max_relative_error")
        ),
        "capture/profiler_overhead_ratio": overhead(spec, operators, calls, pipelined_us),
    }
    if tokens and pipelined_us:
        found["tokens_per_s"] = tokens / pipelined_us * 1e6
    if tokens and self_neuron_us is not None:
        found["self_neuron_us_per_token"] = self_neuron_us / tokens
    return {name: value for name, value in found.items() if value is not None}


def latencies(calls: Sequence[float]) -> dict[str, float | None]:
    """Percentiles (nearest rank), least and mean of the synchronized calls, in microseconds."""
    if not calls:
        return {}
    ordered = sorted(calls)
    found: dict[str, float | None] = {
        f"latency/p{percent}_us": ordered[math.ceil(percent / 100 * len(ordered)) - 1]
        for percent, fewest in FEWEST.items()
        if len(ordered) >= fewest
    }
    return {**found, "latency/min_us": ordered[0], "latency/mean_us": fmean(ordered)}


def overhead(
    spec: Spec,
    operators: Operators | None,
    calls: Sequence[float],
    pipelined_us: float | None,
) -> float | None:
    """Host time of a step in a window over that of the same step without the profiler.

    Like with like: steps that each end in a synchronize against synchronized calls, and several
    steps before one synchronize against pipelined ones.
    """
    windows = [one for one in operators.windows if one.host_us and one.steps] if operators else []
    each_synchronized = spec.config.profiler.sync == "step" or all(w.steps == 1 for w in windows)
    plain_us = (median(calls) if calls else None) if each_synchronized else pipelined_us
    if not windows or not plain_us:
        return None
    return median((one.host_us or 0.0) / one.steps for one in windows) / plain_us


def _read(path: Path) -> Mapping[str, Any]:
    try:
        data = rundir.read_json(path)
    except (OSError, UserError):
        return {}
    return data if isinstance(data, Mapping) else {}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def _numbers(values: Any) -> list[float]:
    listed = values if isinstance(values, list) else []
    return [number for value in listed if (number := _number(value)) is not None]

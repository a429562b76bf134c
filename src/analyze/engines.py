"""Engine metrics from neuron-explorer's summary-json: how busy each engine was, and what HBM moved.

Called by explorer/sessions.py. Every metric is optional. A name that ends in `_percent` is a
fraction 0..1 as published; other versions may mean 0..100, so that is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ENGINES = {
    "tensor": "tensor_engine",
    "vector": "vector_engine",
    "scalar": "scalar_engine",
    "gpsimd": "gpsimd_engine",
    "dma": "dma",
}
SHARES = {"mfu": "mfu_estimated_percent", "mbu": "mbu_estimated_percent"}
BYTES = ("hbm_read_bytes", "hbm_write_bytes")
KNOWN = (
    "total_time",
    *BYTES,
    *SHARES.values(),
    *(f"{name}_active_time" for name in ENGINES.values()),
    *(f"{name}_active_time_percent" for name in ENGINES.values()),
)
LARGEST_FRACTION = 1.5  # a larger one cannot be a fraction; a little above 1 is rounding


@dataclass(frozen=True)
class Engines:
    """The metrics of one run over its device profiles."""

    metrics: dict[str, float]
    profiles: int
    """NEFFs whose profile was read."""
    findings: tuple[str, ...] = ()
    """What was strange, in words."""


def rows_in(data: Any) -> list[Mapping[str, Any]]:
    """Return the rows of device profiles in a summary, whatever they are keyed by.

    Rows of system profiles (`s_<hash>`) have other fields and are left out.
    """
    if isinstance(data, Mapping) and any(name in data for name in KNOWN):
        return [data]
    values: Sequence[Any] = ()
    if isinstance(data, Mapping):
        values = [value for key, value in data.items() if not str(key).startswith("s_")]
    elif isinstance(data, list):
        values = data
    return [row for value in values if isinstance(value, (Mapping, list)) for row in rows_in(value)]


def measured(rows: Sequence[Mapping[str, Any]]) -> Engines:
    """Reduce the rows: fractions weighted by each profile's total_time, bytes added up."""
    scales = [_scale(row) for row in rows]
    findings = []
    if 100.0 in scales:
        findings.append("_percent fields of this version are 0..100 and were divided by 100")
    metrics: dict[str, float] = {}
    for name, field in ENGINES.items():
        key = f"engine/{name}_active_fraction"
        pairs = [
            (_active(row, field, scale), _number(row.get("total_time")))
            for row, scale in zip(rows, scales, strict=True)
        ]
        _put(metrics, findings, key, _weighted(pairs))
    for name, field in SHARES.items():
        pairs = [
            (_scaled(row.get(field), scale), _number(row.get("total_time")))
            for row, scale in zip(rows, scales, strict=True)
        ]
        _put(metrics, findings, f"engine/{name}", _weighted(pairs))
    for name in BYTES:
        known = [value for row in rows if (value := _number(row.get(name))) is not None]
        if known and len(known) == len(rows):
            metrics[f"engine/{name}"] = sum(known)
    times = [value for row in rows if (value := _number(row.get("total_time"))) is not None]
    if times and len(times) == len(rows):
        metrics["engine/total_time_us"] = sum(times) * 1e6
    return Engines(metrics, len(rows), tuple(findings))


def _scale(row: Mapping[str, Any]) -> float:
    """1 or 100: by active time over total time where both are there, else by size."""
    total = _number(row.get("total_time"))
    for field in ENGINES.values():
        active = _number(row.get(f"{field}_active_time"))
        said = _number(row.get(f"{field}_active_time_percent"))
        if total and active and said:
            return 100.0 if said > 10 * active / total else 1.0
    shares = [*(f"{field}_active_time_percent" for field in ENGINES.values()), *SHARES.values()]
    known = [value for name in shares if (value := _number(row.get(name))) is not None]
    return 100.0 if any(value > LARGEST_FRACTION for value in known) else 1.0


def _active(row: Mapping[str, Any], field: str, scale: float) -> float | None:
    said = _scaled(row.get(f"{field}_active_time_percent"), scale)
    if said is not None:
        return said
    active, total = _number(row.get(f"{field}_active_time")), _number(row.get("total_time"))
    return None if active is None or not total else active / total


def _scaled(value: Any, scale: float) -> float | None:
    number = _number(value)
    return None if number is None else number / scale


def _weighted(pairs: Sequence[tuple[float | None, float | None]]) -> float | None:
    """The mean over all profiles by their time; None when one of them does not say."""
    values = [value for value, _ in pairs if value is not None]
    if not values or len(values) < len(pairs):
        return None
    weights = [weight for _, weight in pairs if weight]
    if len(weights) < len(pairs):
        return sum(values) / len(values) if len(values) == 1 else None
    return sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)


def _put(metrics: dict[str, float], findings: list[str], key: str, value: float | None) -> None:
    if value is None:
        return
    if 0 <= value <= LARGEST_FRACTION:
        metrics[key] = value
    else:
        findings.append(f"{key} would be {value:g}, which is no fraction; left out")


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)

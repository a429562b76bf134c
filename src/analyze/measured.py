"""One tracked run as a store has it: parameters, tags and metrics, without its artifacts.

Made by track/query.py, compared by comparison.py. All values come from a store that anyone may
write to, so nothing here trusts their form.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

HEADLINE = "self_neuron_us"
HOST = "self_cpu_us"
CALLS = "operator_calls"
BUSIEST = "self_neuron_us_max_core"
UNKNOWN = "?"


@dataclass(frozen=True, eq=False)  # by identity, so that what is computed from it can be cached
class Measured:
    """What a comparison needs to know about one run."""

    run_id: str
    name: str
    status: str = "FINISHED"
    started_ms: int = 0
    experiment_id: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def short_id(self) -> str:
        """Enough of the id for a person to find the run."""
        return self.run_id[:8]

    @property
    def finished(self) -> bool:
        return self.status == "FINISHED"

    @property
    def device(self) -> str:
        """neuron or simulated; any sign of the simulator makes it simulated."""
        said = (
            self.tags.get("device"),
            self.params.get("device"),
            self.tags.get("device_time_source"),
            self.params.get("device_time_source"),
        )
        return "simulated" if "simulated" in said else str(said[0] or said[1] or UNKNOWN)

    @property
    def simulated(self) -> bool:
        return self.device == "simulated"

    @property
    def workload(self) -> str:
        return self.params.get("workload", UNKNOWN)

    @property
    def variant(self) -> str:
        return self.params.get("variant", UNKNOWN)

    @property
    def cores(self) -> str:
        return self.tags.get("cores") or self.params.get("cores", UNKNOWN)

    @property
    def input(self) -> str:
        """The shape and the dtype, as 1x2048x4096 bfloat16."""
        shape = self.params.get("input.shape") or self.params.get("input", UNKNOWN)
        return " ".join(filter(None, (shape, self.params.get("input.dtype"))))

    @property
    def dims(self) -> tuple[int, ...]:
        """Sizes of the input; empty when they are not whole numbers."""
        parts = self.params.get("input.shape", "").split("x")
        return tuple(map(int, parts)) if all(p.isascii() and p.isdigit() for p in parts) else ()

    @property
    def sweep(self) -> str | None:
        return self.tags.get("sweep_id")

    @property
    def measurement_id(self) -> str | None:
        return self.tags.get("measurement_id")

    @property
    def neff(self) -> str | None:
        """Hash of the compiled binaries that ran, where it is known."""
        return self.tags.get("neff_sha256")

    def metric(self, key: str) -> float | None:
        """A finite metric, or None."""
        value = self.metrics.get(key)
        return value if value is not None and math.isfinite(value) else None

    @property
    def device_us(self) -> float | None:
        """Self NEURON of one step."""
        return self.metric(HEADLINE)

    @cached_property
    def windows_us(self) -> tuple[float, ...]:
        """Self NEURON of one step in each window; empty when the run does not say."""
        try:
            values = json.loads(self.tags.get("window_self_neuron_us", "[]"))
        except ValueError:
            return ()
        if not isinstance(values, list):
            return ()
        numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
        return tuple(float(v) for v in numbers if math.isfinite(v))

    @cached_property
    def timing_variables(self) -> dict[str, str]:
        """Environment variables that can change timing."""
        try:
            found = json.loads(self.tags.get("timing_variables", "{}"))
        except ValueError:
            return {}
        return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}

    @property
    def versions(self) -> dict[str, str]:
        start = "version."
        return {k[len(start) :]: v for k, v in self.tags.items() if k.startswith(start)}

    @property
    def fallbacks(self) -> int | None:
        """How many operators fell back to the CPU; None = cannot tell."""
        count = self.metric("fallback_operators")
        return None if count is None else int(count)

    @property
    def fallback_names(self) -> frozenset[str]:
        names = self.tags.get("fallback_operators", "").split(",")
        return frozenset(name.strip() for name in names if name.strip())

    def by_operator(self, key: str = HEADLINE) -> dict[str, float]:
        """The metric of each tracked operator (the ten hottest), in microseconds."""
        start = f"{key}/"
        found = {k[len(start) :]: self.metric(k) for k in self.metrics if k.startswith(start)}
        return {name: value for name, value in found.items() if value is not None}

"""Where the limit is: the least device time of a step's work, and what bounds the measured time.

Called by deeper.py with work.json and a summary. The bound is a model and says so, unless engine
metrics are given; simulated time gets no bound, because that would only repeat the cost model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .chips import Peaks

# The smallest time of one execution in the published RMSNorm table, aten::mean's 340.8 us: there,
# operators on a few KB cost as much as those on 16 MB. Another published run (ESM-2, 1,050 submits
# in 124.5 ms) points to about 119 us, so the run's own cheapest execution goes before it.
DISPATCH_US = 340.0
PUBLISHED = "the smallest execution of the published RMSNorm study"
OWN = "this run's cheapest operator"
DISPATCH, MEMORY, COMPUTE = "dispatch-bound", "memory-bound", "compute-bound"
MODEL, ENGINES = "model", "engine metrics"
METRICS = ("intensity_flops_per_byte", "floor_us", "attained_fraction")
HALF = 0.5  # a bound is named for what takes at least half of the time


@dataclass(frozen=True)
class Work:
    """What one step cannot avoid doing."""

    bytes_moved: float | None
    flops: float | None
    dtype: str

    @property
    def intensity(self) -> float | None:
        if not self.bytes_moved or self.flops is None:
            return None
        return self.flops / self.bytes_moved


@dataclass(frozen=True)
class Floor:
    """The least device time of the work on one logical core, in microseconds."""

    memory_us: float | None
    compute_us: float | None

    @property
    def us(self) -> float | None:
        known = [one for one in (self.memory_us, self.compute_us) if one is not None]
        return max(known) if known else None

    @property
    def side(self) -> str:
        """Which of the two it is."""
        return COMPUTE if (self.compute_us or 0.0) > (self.memory_us or 0.0) else MEMORY


@dataclass(frozen=True)
class Dispatch:
    """The fixed cost of device executions."""

    executions: float
    counted: bool
    """False: the executions are not known, so operator calls stand for them."""
    each_us: float
    source: str

    @property
    def us(self) -> float:
        return self.executions * self.each_us


@dataclass(frozen=True)
class Bound:
    """What most of the time goes to, and how that is known."""

    label: str | None
    """None: no part takes half of the time."""
    source: str
    reason: str


def work_from(data: Any) -> Work | None:
    """Read work.json; None when nobody says what the step does."""
    if not isinstance(data, Mapping):
        return None
    found = Work(
        _positive(data.get("bytes_moved")),
        _positive(data.get("flops")),
        str(data.get("dtype") or "bfloat16"),
    )
    return found if found.bytes_moved or found.flops else None


def floor(work: Work, peaks: Peaks) -> Floor:
    """Bytes over the core's share of HBM, flops over TensorE's peak in the work's dtype."""
    return Floor(
        memory_us=work.bytes_moved / peaks.hbm_bytes_per_s * 1e6 if work.bytes_moved else None,
        compute_us=work.flops / peaks.flops_per_s * 1e6
        if work.flops and peaks.flops_per_s
        else None,
    )


def dispatch(
    executions: float | None, operator_calls: float | None, cheapest_us: float | None
) -> Dispatch | None:
    """The model of the fixed cost; None when neither executions nor calls are known.

    `cheapest_us` is the smallest device time of one call in the run: the constant cannot be more.
    """
    count = executions if executions is not None else operator_calls
    if not count:
        return None
    own = cheapest_us is not None and cheapest_us < DISPATCH_US
    each = cheapest_us if own and cheapest_us is not None else DISPATCH_US
    return Dispatch(count, executions is not None, each, OWN if own else PUBLISHED)


def bound(
    self_neuron_us: float,
    found: Floor,
    fixed: Dispatch | None,
    engines: Mapping[str, float] | None = None,
) -> Bound:
    """Name what takes at least half of the device time, by engine metrics where there are any.

    `engines` has fractions 0..1 by name, such as engine/tensor_active_fraction.
    """
    measured = _by_engines(engines) if engines else None
    if measured is not None:
        return measured
    share = fixed.us / self_neuron_us if fixed and self_neuron_us else 0.0
    if share >= HALF and fixed is not None:
        return Bound(
            DISPATCH,
            MODEL,
            f"{fixed.executions:g} x {fixed.each_us:,.0f} us of fixed cost are "
            f"{min(share, 1):.0%} of {self_neuron_us:,.0f} us",
        )
    least = found.us
    if least is not None and least >= HALF * self_neuron_us:
        return Bound(
            found.side,
            MODEL,
            f"{'HBM traffic' if found.side == MEMORY else 'TensorE'} alone needs {least:,.0f} of "
            f"{self_neuron_us:,.0f} us",
        )
    return Bound(
        None,
        MODEL,
        f"fixed cost explains {share:.0%} and the unavoidable work "
        f"{(least or 0) / self_neuron_us:.0%} of {self_neuron_us:,.0f} us; the rest is likely what "
        "the operators write to HBM and read again, or engines that wait",
    )


def _by_engines(engines: Mapping[str, float]) -> Bound | None:
    tensor = _largest(engines, "tensor_active_fraction", "mfu")
    memory = _largest(engines, "dma_active_fraction", "mbu")
    if tensor is None and memory is None:
        return None
    words = f"TensorE {_percent(tensor)}, DMA or HBM {_percent(memory)} of the time"
    if max(tensor or 0.0, memory or 0.0) < HALF:
        return Bound(None, ENGINES, f"no engine is busy half of the time: {words}")
    return Bound(COMPUTE if (tensor or 0.0) >= (memory or 0.0) else MEMORY, ENGINES, words)


def _largest(engines: Mapping[str, float], *names: str) -> float | None:
    known = [
        value
        for key, value in engines.items()
        if key.rpartition("/")[2] in names and math.isfinite(value)
    ]
    return max(known, default=None)


def _percent(value: float | None) -> str:
    return "not known" if value is None else f"{value:.0%}"


def _positive(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) and value > 0 else None

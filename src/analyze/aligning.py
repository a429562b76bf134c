"""Two runs operator by operator: a fused operator stands beside those that it replaces.

Called by comparison.py. Uses the metrics of the ten hottest operators; what they leave of the
total is one line of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .measured import Measured
from .operators import COMPILED_REGION, HOST_BY_OPERATOR

REST = "(operators that are not among the ten hottest)"
Pair = tuple[tuple[str, ...], tuple[str, ...]]
SMALLEST_REST = 0.001  # of a total; below it the rest is rounding and medians
# Fused operator -> what its parts are called when they are written out.
PARTS: dict[str, tuple[str, ...]] = {
    "rms_norm": ("pow", "mul", "mean", "add", "rsqrt", "sqrt", "div", "square"),
    "layer_norm": ("mean", "var", "sub", "pow", "mul", "add", "rsqrt", "sqrt", "div"),
    "softmax": ("amax", "max", "sub", "exp", "sum", "div"),
    "silu": ("sigmoid", "mul", "exp", "neg", "add", "div"),
    "gelu": ("erf", "tanh", "pow", "mul", "add"),
    "scaled_dot_product": ("matmul", "bmm", "mm", "softmax", "mul", "div", "add", "where"),
    "addmm": ("mm", "add"),
    "linear": ("mm", "matmul", "add", "t"),
}


@dataclass(frozen=True)
class OperatorChange:
    """Operators of the baseline and what stands for them in the run; times a step."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    before_us: float
    after_us: float
    before_cpu_us: float | None
    after_cpu_us: float | None

    @property
    def saved_us(self) -> float:
        return self.before_us - self.after_us


def changes(baseline: Measured, run: Measured) -> tuple[OperatorChange, ...]:
    """List the operators of both runs, the largest saving first and the largest loss last."""
    before, after = baseline.by_operator(), run.by_operator()
    pairs: list[Pair] = [((name,), (name,)) for name in before if name in after]
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    pairs += _replaced(gone, new)
    cpu_before, cpu_after = (
        baseline.by_operator(HOST_BY_OPERATOR),
        run.by_operator(HOST_BY_OPERATOR),
    )
    found = [
        OperatorChange(
            before=old,
            after=now,
            before_us=_sum(before, old) or 0.0,
            after_us=_sum(after, now) or 0.0,
            before_cpu_us=_sum(cpu_before, old),
            after_cpu_us=_sum(cpu_after, now),
        )
        for old, now in pairs
    ]
    found.sort(key=lambda change: change.saved_us, reverse=True)
    rest = _rest(baseline, before), _rest(run, after)
    if any(rest):
        found.append(OperatorChange((REST,), (REST,), *rest, None, None))
    return tuple(found)


def _replaced(gone: list[str], new: list[str]) -> list[Pair]:
    """Give each operator of one side only those of the other side that it stands for."""
    pairs: list[Pair] = []
    for fused in [name for name in new if _parts(name)]:
        taken = tuple(name for name in gone if _stem(name) in _parts(fused))
        if taken:
            pairs.append((taken, (fused,)))
            gone, new = _without(gone, taken), _without(new, (fused,))
    for fused in [name for name in gone if _parts(name)]:
        taken = tuple(name for name in new if _stem(name) in _parts(fused))
        if taken:
            pairs.append(((fused,), taken))
            gone, new = _without(gone, (fused,)), _without(new, taken)
    # Compiled code, or one other operator, that stands alone for all that is left.
    if gone and new and (_all_compiled(gone) or _all_compiled(new) or 1 in (len(gone), len(new))):
        return [*pairs, (tuple(gone), tuple(new))]
    return [*pairs, *(((name,), ()) for name in gone), *(((), (name,)) for name in new)]


def _parts(name: str) -> tuple[str, ...]:
    stem = _stem(name)
    return next((parts for fused, parts in PARTS.items() if fused in stem), ())


def _stem(name: str) -> str:
    """`aten::mul_` and `aten__mul` are mul."""
    return name.replace("__", "::", 1).rpartition("::")[2].strip("_")


def _all_compiled(names: Iterable[str]) -> bool:
    return all(name.startswith(COMPILED_REGION) for name in names)


def _without(names: list[str], taken: Iterable[str]) -> list[str]:
    used = set(taken)
    return [name for name in names if name not in used]


def _sum(times: Mapping[str, float], names: Iterable[str]) -> float | None:
    known = [times[name] for name in names if name in times]
    return math.fsum(known) if known else None


def _rest(run: Measured, listed: Mapping[str, float]) -> float:
    total = run.device_us
    if total is None or not listed:
        return 0.0
    rest = total - math.fsum(listed.values())
    return rest if abs(rest) > SMALLEST_REST * abs(total) else 0.0

"""The cost model: how long one execution takes on the simulated device; pure arithmetic.

    device time = dispatch_us + 1e6 * max(bytes / hbm_bytes_per_s,
                                          tensor_flops / tensor peak of their dtype,
                                          vector_flops / vector_flops_per_s)

- bytes: each distinct input region once (a tensor given twice counts once, an expanded view counts
  the elements it really has, overlapping views of one storage count their union) plus every output.
  A tensor which is only overwritten (`out=`, `copy_`, `fill_`, random fills) is an output, not an
  input. What an operator could skip (rows an embedding does not look up) counts all the same.
- tensor_flops: `torch.utils.flop_counter`'s formulas for matrix products, convolutions, attention.
- vector_flops: for every other operator, one per output element, or per input element where it
  reduces.

Views, allocations and other metadata operators cost nothing and are no execution. A compiled graph
is one execution: it moves what it reads of its graph inputs and what it writes and returns, and its
flops are the sum over its operators. Nothing else is modelled: no queues, no overlap of copies, no
cache, no difference between access patterns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

# Not where it is used: an import inside a profiled window upsets torch.profiler's with_stack.
from torch.utils.flop_counter import flop_registry


@dataclass(frozen=True)
class CostModel:
    """The constants of the formula; `tensor_flops_per_s` maps dtype names such as "bfloat16" to
    FLOP/s.

    A dtype without an entry runs at the "float32" entry's speed, or the slowest one's where there
    is none.
    """

    dispatch_us: float
    hbm_bytes_per_s: float
    tensor_flops_per_s: Mapping[str, float]
    vector_flops_per_s: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "tensor_flops_per_s", dict(self.tensor_flops_per_s))
        if not self.tensor_flops_per_s:
            raise ValueError("CostModel: tensor_flops_per_s is empty; give at least 'float32'")
        rates = [self.hbm_bytes_per_s, self.vector_flops_per_s, *self.tensor_flops_per_s.values()]
        if self.dispatch_us < 0 or min(rates) <= 0:
            raise ValueError("CostModel: dispatch_us must be >= 0 and every rate > 0")

    def device_time_us(self, work: Work) -> float:
        """Microseconds that one execution of `work` takes."""
        rates = self.tensor_flops_per_s
        slowest = rates.get("float32", min(rates.values()))
        tensor_s = sum(
            flops / rates.get(name, slowest) for name, flops in work.tensor_flops.items()
        )
        memory_s = work.bytes / self.hbm_bytes_per_s
        vector_s = work.vector_flops / self.vector_flops_per_s
        return self.dispatch_us + 1e6 * max(memory_s, tensor_s, vector_s)


@dataclass
class Work:
    """What one execution moves and computes."""

    bytes: int = 0
    tensor_flops: dict[str, int] = field(default_factory=dict)
    vector_flops: int = 0

    def add_flops(self, other: Work) -> None:
        """Add the other's arithmetic, and not its bytes."""
        self.vector_flops += other.vector_flops
        for name, flops in other.tensor_flops.items():
            self.tensor_flops[name] = self.tensor_flops.get(name, 0) + flops


class Region(NamedTuple):
    """Where a tensor's elements lie: a storage, the byte interval it spans, and how many bytes
    in it are its own.
    """

    storage: int
    start: int
    end: int
    bytes: int


def region(tensor: torch.Tensor) -> Region:
    """The region of a strided tensor; elements reached twice through stride 0 or overlap count
    once.
    """
    size = tensor.element_size()
    start = int(tensor.storage_offset()) * size
    storage = tensor.untyped_storage()._cdata
    if tensor.is_contiguous():
        nbytes = tensor.numel() * size
        return Region(storage, start, start + nbytes, nbytes)
    if tensor.numel() == 0:
        return Region(storage, start, start, 0)
    dims = [
        (n, abs(stride)) for n, stride in zip(tensor.shape, tensor.stride(), strict=True) if n > 1
    ]
    span = 1 + sum((n - 1) * stride for n, stride in dims)
    elements = 1
    for n, stride in dims:
        elements *= n if stride else 1
    return Region(storage, start, start + span * size, min(elements, span) * size)


def distinct_bytes(regions: Iterable[Region]) -> int:
    """Bytes in the union of the regions; exact for equal and for dense ones, an upper bound for
    interleaved views.
    """
    total = 0
    per_storage: dict[int, set[Region]] = {}
    for one in regions:
        per_storage.setdefault(one.storage, set()).add(one)
    for group in per_storage.values():
        if len(group) == 1:
            total += next(iter(group)).bytes
            continue
        covered, reached = 0, -1
        for one in sorted(group, key=lambda r: (r.start, r.end)):
            covered += max(0, one.end - max(one.start, reached))
            reached = max(reached, one.end)
        total += min(covered, sum(one.bytes for one in group))
    return total


_CONTRACTIONS = frozenset({"mv", "addmv", "dot", "vdot", "addr", "ger", "linear", "addbmm"})


def _attention_flops(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> int:
    """As `torch.utils.flop_counter` counts it, in any rank: both products, and no discount for a
    causal mask.
    """
    rows = query.numel() // max(1, query.shape[-1])
    return 2 * rows * key.shape[-2] * (query.shape[-1] + value.shape[-1])


@functools.cache
def _formula_of(op: torch._ops.OpOverload) -> str | Callable[..., int]:
    """How an operator's arithmetic is counted: a name, or torch's formula for it."""
    name = op._schema.name.removeprefix("aten::")
    if name.startswith("_scaled_dot_product"):
        return "attention backward" if name.endswith("backward") else "attention"
    base = name.removesuffix("_")
    packet = getattr(torch.ops.aten, base, None) if op.namespace == "aten" else None
    if packet is not None and packet in flop_registry:
        formula: Callable[..., int] = flop_registry[packet]
        return formula
    if base in _CONTRACTIONS:
        return "contraction"
    return "reduction" if torch.Tag.reduction in op.tags else "elementwise"


def flops(
    op: torch._ops.OpOverload,
    args: Any,
    kwargs: Any,
    tensors_in: list[torch.Tensor],
    tensors_out: list[torch.Tensor],
) -> Work:
    """The arithmetic of one operator call; the returned bytes are 0."""
    formula = _formula_of(op)
    if formula == "elementwise" or not tensors_in:
        return Work(vector_flops=sum(one.numel() for one in tensors_out))
    if formula == "reduction":
        return Work(vector_flops=max(one.numel() for one in tensors_in))
    if formula == "contraction":
        count = 2 * max(one.numel() for one in tensors_in)
    elif formula == "attention":
        count = _attention_flops(*tensors_in[:3])
    elif formula == "attention backward":  # five products where the forward has two
        count = _attention_flops(*tensors_in[1:4]) * 5 // 2
    else:
        assert callable(formula)
        out_val = tuple(tensors_out) if len(tensors_out) > 1 else tensors_out[0]
        if op._schema.name == "aten::convolution_backward":
            out_val = (args[1], args[2])  # the gradients' shapes; not all of them are asked for
        plain = {key: value for key, value in kwargs.items() if key not in ("out", "out_dtype")}
        count = int(formula(*args, **plain, out_val=out_val))
    dtype = str(tensors_in[0].dtype).removeprefix("torch.")
    return Work(tensor_flops={dtype: count})

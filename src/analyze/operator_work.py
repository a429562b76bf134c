"""What one call of an operator must read and compute, from its recorded input shapes.

Called by advice.py. Inputs only: an output's size is not in the trace, so bytes are a lower bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .grouped import ShapeRow

# torch's names of element types in a trace, with their bytes.
ELEMENT_BYTES = {
    "double": 8,
    "long int": 8,
    "long": 8,
    "float": 4,
    "int": 4,
    "BFloat16": 2,
    "Half": 2,
    "short int": 2,
    "bool": 1,
    "signed char": 1,
    "unsigned char": 1,
}
MATRIX = frozenset({"aten::mm", "aten::bmm", "aten::addmm", "aten::linear", "aten::matmul"})
ATTENTION = frozenset(
    {"aten::scaled_dot_product_attention", "aten::_scaled_dot_product_fused_attention_overrideable"}
)
DTYPES = {"float": "float32", "BFloat16": "bfloat16", "Half": "float16"}


@dataclass(frozen=True)
class CallWork:
    """One call, at the least."""

    bytes_read: float
    flops: float | None
    """Of a matrix product; None for the others, which do little arithmetic a byte."""
    dtype: str


def estimate(row: ShapeRow) -> CallWork | None:
    """Return a call's work; None without shapes or with a type whose size is not known."""
    if not row.shapes or not row.types:
        return None
    sizes = [[int(size) for size in one.split("x")] for one in row.shapes.split(", ")]
    types = row.types.split(", ")
    if len(sizes) != len(types) or not all(name in ELEMENT_BYTES for name in types):
        return None
    total = sum(
        math.prod(size) * ELEMENT_BYTES[name] for size, name in zip(sizes, types, strict=True)
    )
    dtype = DTYPES.get(types[0], types[0])
    return CallWork(float(total), _matrix_flops(row.operator, sizes), dtype)


def _matrix_flops(operator: str, sizes: list[list[int]]) -> float | None:
    """Two operations for each multiply and add: 2 x rows x inner x columns."""
    factors = sizes[1:] if operator == "aten::addmm" else sizes[:2]
    if operator not in MATRIX or len(factors) < 2 or len(factors[1]) < 2:
        return None
    left, right = factors[:2]
    columns = right[-2] if operator == "aten::linear" else right[-1]  # linear's weight is N x K
    return 2.0 * math.prod(left) * columns

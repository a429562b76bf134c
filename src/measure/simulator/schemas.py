"""What an operator's schema says about its call: what it writes, what it returns, whether it only
makes a view.

Read once per operator and kept. Called by `operators.py` and `compiler.py`; looks at no tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

# Written without being read, beside `out=` arguments and random fills.
_OVERWRITING = frozenset({"copy_", "fill_", "zero_", "set_", "_copy_from"})
# Memory is taken, nothing is computed.
# A view although its schema does not say so.
_UNDECLARED_VIEWS = frozenset({"_unsafe_view", "unsafe_split", "unsafe_split_with_sizes"})
_ALLOCATING = frozenset(
    {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"}
)


@dataclass(frozen=True)
class Plan:
    """How to treat one operator."""

    name: str
    arguments: tuple[str, ...]
    written: tuple[str, ...]
    outs: tuple[str, ...]  # those of `written` that are keyword-only: `out=`
    overwritten: frozenset[str]  # those of `written` whose old contents are not read
    returns: tuple[str | None, ...]  # for each result, the written argument that it is
    is_view: bool
    changes_metadata: bool
    allocates: bool

    def argument(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The value passed for an argument; None where it was left out."""
        position = self.arguments.index(name)
        return args[position] if position < len(args) else kwargs.get(name)

    def read(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
        """The tensors of a call whose contents are read."""
        names = [name for name in self.arguments if name not in self.overwritten]
        return [one for name in names for one in flat(self.argument(name, args, kwargs))]

    def writes(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
        """The tensors of a call that are written."""
        return [one for name in self.written for one in flat(self.argument(name, args, kwargs))]

    @property
    def is_free(self) -> bool:
        """Whether the device has nothing to execute."""
        return self.is_view or self.changes_metadata or self.allocates


def flat(value: Any) -> list[torch.Tensor]:
    """The tensors in an argument: one, a list of them, or none."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [one for item in value for one in flat(item)] if isinstance(value, (list, tuple)) else []


@functools.cache
def plan_of(op: torch._ops.OpOverload) -> Plan:
    """The plan of an operator."""
    schema = op._schema
    name = schema.name.partition("::")[2]
    written: dict[str, set[str]] = {}
    outs = []
    for argument in schema.arguments:
        if argument.alias_info is not None and argument.alias_info.is_write:
            written[argument.name] = set(argument.alias_info.before_set)
            if argument.kwarg_only:
                outs.append(argument.name)
    returns: list[str | None] = []
    is_view = False
    for result in schema.returns:
        owner = None
        if result.alias_info is not None:
            if result.alias_info.is_write:
                alias = set(result.alias_info.before_set)
                owner = next((name_ for name_, own in written.items() if own & alias), None)
            else:
                is_view = True
        returns.append(owner)
    random_fill = torch.Tag.nondeterministic_seeded in op.tags and name.endswith("_")
    overwrites_self = name in _OVERWRITING or (random_fill and name != "dropout_")
    return Plan(
        name=name,
        arguments=tuple(argument.name for argument in schema.arguments),
        written=tuple(written),
        outs=tuple(outs),
        overwritten=frozenset(written if overwrites_self else outs),
        returns=tuple(returns),
        is_view=(is_view and not written) or name in _UNDECLARED_VIEWS,
        changes_metadata=torch.Tag.inplace_view in op.tags,
        allocates=name in _ALLOCATING and not outs,
    )

"""Marks in the trace that say which module of a model an operator belongs to (workload.annotate).

Called by variants.py for eager models. analyze/grouped.py reads the marks and makes the table.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.profiler import record_function

PREFIX = "module: "


def mark_modules(model: torch.nn.Module) -> None:
    """Wrap each submodule's forward in a mark `module: <its dotted name>`.

    The marks cost host time: runs with and without them are not to be compared in Self CPU.
    """
    for name, module in model.named_modules():
        if name:
            _mark(module, PREFIX + name)


def _mark(module: torch.nn.Module, text: str) -> None:
    open_marks: list[Any] = []  # a module may be called again inside itself

    def enter(*_: Any) -> None:
        mark = record_function(text)
        mark.__enter__()
        open_marks.append(mark)

    def leave(*_: Any) -> None:
        open_marks.pop().__exit__(None, None, None)

    module.register_forward_pre_hook(enter)
    module.register_forward_hook(leave, always_call=True)

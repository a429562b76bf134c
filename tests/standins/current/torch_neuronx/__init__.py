"""A stand-in for torch_neuronx in tests: the published names over the simulator's tensors.

Written from the published interface, not from this project's code. On the path of the child only.
What the caller did, and in which order, is in the diary; STANDIN_MOOD says what goes wrong.
"""

from __future__ import annotations

import sys

from . import _board, _diary, _moods, _version

__version__ = _version.TEXT

_diary.note("import", environ=_diary.variables(), command=sys.orig_argv)
_board.power_on()

# torch_neuronx offers torch.neuron's functions under its own name as well.
synchronize = _board.synchronize
is_available = _board.is_available

if not _moods.on("no_op_tracking"):
    clear_op_tracking = _board.clear_op_tracking
    get_fallback_ops = _board.get_fallback_ops
    get_executed_ops = _board.get_executed_ops


def _autoload() -> None:
    """What torch calls through its entry point; importing has done everything."""

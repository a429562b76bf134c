"""Which operators fell back to the CPU: by the library's own list, else by the shape of the trace.

Called by capture.py. A fallen-back operator still returns a device tensor, so its output tells
nothing. What cannot be told is None, never an empty list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .devices import Device

MOVES = frozenset(
    """
    aten::to aten::_to_copy aten::_to_cpu aten::copy_ aten::_copy_from aten::_copy_from_and_resize
    """.split()
)
_MAKES_ROOM = frozenset({"aten::empty", "aten::empty_strided", "aten::empty_like"})
# These move or make memory themselves: copying is their work, not a sign of a fall-back.
_NOT_SUSPECT = MOVES | frozenset(
    """
    aten::empty aten::empty_like aten::empty_strided aten::new_empty aten::clone aten::contiguous
    aten::detach aten::detach_ aten::item aten::_local_scalar_dense aten::lift_fresh aten::alias
    aten::tensor aten::scalar_tensor aten::zeros aten::ones aten::full aten::arange aten::resize_
    aten::set_ aten::cpu aten::type_as aten::reshape aten::_reshape_alias aten::pin_memory
    """.split()
)


def listed(step: Callable[[], Any], device: Device) -> tuple[str, ...] | None:
    """Ask the library which operators fell back in one call of the step, outside the profiler.

    None when it keeps no list, or a list that does not even name one operator as executed.
    """
    tracking = device.tracking
    if tracking is None:
        return None
    try:
        tracking.clear()
        step()
        device.synchronize()
        found = tuple(sorted(str(name) for name in tracking.fallback()))
        works = bool(found) or tracking.executed is None or bool(tracking.executed())
    except (RuntimeError, TypeError, AttributeError) as error:
        print(f"fall-backs cannot be asked for: {error}", flush=True)  # noqa: T201  # child.log
        return None
    return found if works else None


def in_trace(events: Iterable[Any]) -> set[str]:
    """Operators whose rows look like a fall-back: they only move data, and take no device time.

    `events` are torch's FunctionEvents. Empty also when there is no device time at all, because
    then nothing can be told apart.
    """
    rows = [event for event in events if str(event.device_type) == "DeviceType.CPU"]
    if not any(row.self_device_time_total for row in rows):
        return set()
    return {row.name for row in rows if _looks_fallen_back(row)}


def _looks_fallen_back(row: Any) -> bool:
    if not row.name.startswith("aten::") or row.name in _NOT_SUSPECT or row.device_time_total:
        return False
    # Beside the copies there may be the CPU's own kernel, a row of the same name. With any other
    # child it is a composite operator, whose device time may be credited to a neighbour.
    inside = {child.name for child in row.cpu_children}
    if not inside & MOVES or inside - MOVES - _MAKES_ROOM - {row.name}:
        return False
    parent = row.cpu_parent
    while parent is not None:  # what a copy does inside is not to blame
        if parent.name in _NOT_SUSPECT:
            return False
        parent = parent.cpu_parent
    return True

"""STANDIN_MOOD: what goes wrong, as names separated by commas. An unknown one is an error."""

from __future__ import annotations

import os

MOODS = frozenset(
    """
    refuses refuses_pybind refuses_invalid refuses_value refuses_modes no_host_memory
    no_device_time doubled lnc2 dispatch_rows dispatch_rows_beside
    falls_back no_op_tracking dead_op_tracking
    compile_in_window warm_cache whole_cache whole_cache_unnamed
    silent_start start_warns start_raises aborts empty_folder
    export_returns export_raises export_does_nothing
    no_time_level odd_folder many_sessions empty_ntff
    device_out_of_memory device_out_of_memory_silent busy_core unavailable fewer_cores
    dropped_events noisy nested_memory_stats
    """.split()
)
ON = frozenset(filter(None, os.environ.get("STANDIN_MOOD", "").split(",")))
REFUSED = frozenset(os.environ.get("STANDIN_REFUSES", "correlate_device_time").split(","))
FALLS_BACK = os.environ.get("STANDIN_FALLBACK", "rsqrt")
SCALE = float(os.environ.get("STANDIN_SCALE", "1"))
NOISE = float(os.environ.get("STANDIN_NOISE", "0"))
SEED = os.environ.get("STANDIN_SEED", "0")

if ON - MOODS:
    raise ValueError(f"STANDIN_MOOD: no such mood: {', '.join(sorted(ON - MOODS))}")


def on(*names: str) -> bool:
    """Whether one of these moods is on."""
    assert set(names) <= MOODS, names
    return not ON.isdisjoint(names)

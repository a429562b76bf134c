"""What a session leaves: files with the published names and placeholder bytes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from . import _board, _moods

PLACEHOLDER = b"placeholder of a stand-in for tests, not a Neuron file\n"
MARKER = _board.record.MARKER


def write(session: Any) -> None:
    folders = [session.folder]
    if _moods.on("many_sessions"):
        folders.append(session.folder.with_name(session.folder.name + "1"))
        folders[1].mkdir()
    for number, folder in enumerate(folders, start=1):
        _write(session, folder, number)


def _write(session: Any, folder: Path, number: int) -> None:
    modes = session.asked["modes"]
    models = {event.model.hash: event.model for event in session.executions}
    names = b""
    if _moods.on("whole_cache"):
        names = "".join(f"{name}\n" for name in models).encode()
    if modes & {"RUNTIME", "DEVICE"}:
        (folder / "trace_info.pb").write_bytes(PLACEHOLDER)
    if "RUNTIME" in modes:
        (folder / "ntrace.pb").write_bytes(PLACEHOLDER + names)
    if "CPU_UTIL" in modes:
        (folder / "cpu_util.pb").write_bytes(PLACEHOLDER)
    if "HOST_MEMORY" in modes:
        (folder / "host_mem.pb").write_bytes(PLACEHOLDER)
    if "DEVICE" in modes and models and not _moods.on("device_out_of_memory_silent"):
        ntff = folder / f"profile_nc_0_session_{number}.ntff"
        ntff.write_bytes(b"" if _moods.on("empty_ntff") else PLACEHOLDER + names)
        _copy_neffs(session, folder, models)
    if _moods.on("lnc2", "doubled"):
        _write_system_profile(session, folder)


def _copy_neffs(session: Any, folder: Path, models: dict[str, Any]) -> None:
    """From the cache that the config names; without one, only what was loaded in the window."""
    if _moods.on("warm_cache"):
        return
    named = session.asked.get("neff_cache_dir")
    if named and _moods.on("whole_cache", "whole_cache_unnamed"):
        for path in Path(named).glob("neff_*.neff"):
            shutil.copyfile(path, folder / f"{path.stem}_vnc_0.neff")
        return
    for name, model in models.items():
        cached = Path(named) / f"neff_{name}.neff" if named else None
        target = folder / f"neff_{name}_vnc_0.neff"
        if cached is not None and cached.exists():
            shutil.copyfile(cached, target)
        elif model.key not in session.known:
            target.write_bytes(PLACEHOLDER)


def _write_system_profile(session: Any, folder: Path) -> None:
    """What neuron-explorer would make of it under LNC2: two rows for each execution."""
    rows = [
        {
            "name": "nc_exec_running",
            "timestamp": event.start_ns + core,
            "duration": event.duration_ns,
            "process_id": str(os.getpid()),
            "model_id": event.model.model_id,
            "exec_id": event.exec_id,
            "nc_idx": 0,
            "device_core_idx": core,
        }
        for event in session.executions
        for core in (0, 1)
    ]
    (folder / "system_profile.json").write_text(json.dumps({"trace_event": rows}))


def take_out_markers(path: str) -> None:
    """The simulator's own marks are no part of a framework trace; dispatch rows may be."""
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    events = [one for one in trace["traceEvents"] if not str(one.get("name")).startswith(MARKER)]
    if _moods.on("dispatch_rows", "dispatch_rows_beside"):
        events += [
            {"ph": "X", "cat": kind, "name": "nrta_execute_schedule", "pid": 1, "tid": 7,
             "ts": events[0].get("ts", 0), "dur": 5000.0, "args": {}}
            for kind in ("privateuse1_runtime", "privateuse1_driver")
        ]  # fmt: skip
    trace["traceEvents"] = events
    with open(path, "w", encoding="utf-8") as file:
        json.dump(trace, file)

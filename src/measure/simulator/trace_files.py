"""The files that a session leaves: the published names with `.simulated.json` after them, each
saying it is simulated.

Written by `sessions.py` when a session stops, and by the compiler for compiled graphs. Never a
pretended binary.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from typing import TYPE_CHECKING, Any

from . import memory, record
from .neffs import CACHE, SUFFIX, write_json, write_neff
from .profiling import ProfileMode
from .record import Event, Model

if TYPE_CHECKING:
    from .sessions import Session


def write(session: Session) -> None:
    """Write the files of each stream that is on, into the session's folder."""
    os.makedirs(session.folder, exist_ok=True)
    modes = session.config.modes
    if ProfileMode.RUNTIME in modes or ProfileMode.DEVICE in modes:
        write_json(os.path.join(session.folder, f"trace_info.pb{SUFFIX}"), _trace_info(session))
    if ProfileMode.RUNTIME in modes:
        events = [_event(event) for event in session.visible]
        write_json(
            os.path.join(session.folder, f"ntrace.pb{SUFFIX}"),
            {"events": events, "dropped": session.dropped},
        )
    if ProfileMode.DEVICE in modes:
        _write_device_files(session)
    samples = [
        dataclasses.asdict(sample)
        for sample in (session.started, session.stopped)
        if sample is not None
    ]
    if ProfileMode.CPU_UTIL in modes:
        kept = [
            {k: v for k, v in sample.items() if k != "peak_resident_bytes"} for sample in samples
        ]
        write_json(os.path.join(session.folder, f"cpu_util.pb{SUFFIX}"), {"samples": kept})
    if ProfileMode.HOST_MEMORY in modes:
        kept = [{k: sample[k] for k in ("time_ns", "peak_resident_bytes")} for sample in samples]
        device = dict(zip(map(str, record.device.cores), memory.books.allocated_bytes, strict=True))
        write_json(
            os.path.join(session.folder, f"host_mem.pb{SUFFIX}"),
            {"samples": kept, "device_allocated_bytes": device},
        )


def _models(session: Session) -> list[tuple[int, Model]]:
    """The programs that executed, with the core they ran on, each once."""
    found = {
        (event.nc_idx, event.model.model_id): event.model
        for event in session.visible
        if event.model
    }
    return [(core, model) for (core, _), model in found.items()]


def _trace_info(session: Session) -> dict[str, Any]:
    cores = [core for core in record.device.cores if session.config.captures(core)]
    models = {model.model_id: model for _, model in _models(session)}
    return {
        "cores": cores,
        "clock": {
            "unit": "ns",
            "source": "cost model; device time only, not related to the host's clock",
        },
        "cost_model": dataclasses.asdict(record.device.cost),
        "max_events_per_nc": session.config.max_events_per_nc,
        "precache_node_info": session.config.precache_node_info,
        "dropped": session.dropped,
        "models": [
            {
                "model_id": model.model_id,
                "hash": model.hash,
                "name": model.name,
                "kind": model.kind,
                "compiled_in_window": model.key not in session.known_models,
            }
            for model in models.values()
        ],
        "copies": _copies(session.visible),
    }


def _copies(events: list[Event]) -> dict[str, dict[str, int]]:
    totals: dict[str, dict[str, int]] = {}
    for event in events:
        if event.model is None:
            total = totals.setdefault(event.name, {"count": 0, "bytes": 0})
            total["count"] += 1
            total["bytes"] += event.bytes
    return totals


def _event(event: Event) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": event.name,
        "nc_idx": event.nc_idx,
        "start_ns": event.start_ns,
        "bytes": event.bytes,
    }
    if event.model is not None:
        row |= {
            "duration_ns": event.duration_ns,
            "exec_id": event.exec_id,
            "flow_id": event.flow_id,
            "model_id": event.model.model_id,
            "operator": event.model.name,
        }
    return row


def _write_device_files(session: Session) -> None:
    by_core: dict[int, list[dict[str, Any]]] = {}
    for event in session.visible:
        if event.model is not None:
            by_core.setdefault(event.nc_idx, []).append(_event(event))
    for core, executions in by_core.items():
        path = os.path.join(session.folder, f"profile_nc_{core}_session_1.ntff{SUFFIX}")
        write_json(path, {"nc_idx": core, "executions": executions})
    cache = session.config.neff_cache_dir or os.environ.get(CACHE)
    for core, model in _models(session):
        target = os.path.join(session.folder, f"neff_{model.hash}_vnc_{core}.neff{SUFFIX}")
        if cache:
            shutil.copyfile(write_neff(cache, model), target)
        elif model.key not in session.known_models:
            # Loaded inside the window, so the session has its own copy. A program that was warm
            # before it, with no cache to copy from, leaves an .ntff and no .neff: as on the real
            # device.
            write_neff(session.folder, model)
            os.replace(os.path.join(session.folder, f"neff_{model.hash}.neff{SUFFIX}"), target)

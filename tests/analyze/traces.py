"""Traces made by hand: events in the form of torch's Chrome trace, in microseconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from src.analyze import spans


def event(name: str, ts: float, dur: float, cat: str = "cpu_op", **more: Any) -> dict[str, Any]:
    """One complete event; `tid` picks the thread, the rest are args."""
    tid = more.pop("tid", 1)
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur,
            "args": more}  # fmt: skip


def mark(number: int, ts: float, dur: float, tid: int = 1) -> dict[str, Any]:
    return event(f"ProfilerStep#{number}", ts, dur, "user_annotation", tid=tid)


def kernel(name: str, ts: float, dur: float, core: int = 0, **args: Any) -> dict[str, Any]:
    return event(name, ts, dur, "kernel", tid=f"NC {core}", nc_idx=core, **args)


def write(folder: Path, *events: dict[str, Any], **top: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": list(events), **top}))
    return path


def trace(*events: dict[str, Any], **top: Any) -> spans.Trace:
    return spans.parse({"traceEvents": list(events), **top})

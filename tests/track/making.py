"""Specifications, run directories and fake children for the tests of the tracking room."""

from __future__ import annotations

import http.server
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from src import rules, rundir
from src.schema import (
    Config,
    DeviceConfig,
    InputConfig,
    ProfilerConfig,
    Spec,
    TrackingConfig,
    VariantConfig,
    WorkloadConfig,
)
from src.track import redact

READY = {
    "device": "simulated",
    "cores": "0",
    "versions": {"torch": "2.13.0", "python": "3.11"},
    "chip": None,
    "lnc": None,
    "device_name": "simulated NeuronCore",
}


def spec(root: Path, **changes: Any) -> Spec:
    """A small simulated run whose store is under `root`; `tracking_...` changes that group."""
    tracking = {k[9:]: changes.pop(k) for k in list(changes) if k.startswith("tracking_")}
    env = changes.pop("env", {})
    device = changes.pop("device", "simulated")
    config = Config(
        workload=WorkloadConfig(name="rms_norm", implementations=["naive"]),
        variant=VariantConfig(name="naive", implementation="naive"),
        input=InputConfig(name="small", shape="1x2x3"),
        profiler=ProfilerConfig(name="runtime", repeats=1),
        device=DeviceConfig(name=device, env=env),
        tracking=TrackingConfig(**{"name": "local", "root": str(root), **tracking}),
    )
    return Spec(**{"config": rules.checked(config), "overrides": ("variant=naive",), **changes})


def operators(*rows: rundir.OperatorRow, source: str | None = "simulated") -> rundir.Operators:
    """One window of one step."""
    rows = rows or (rundir.OperatorRow("aten::mul", 3, 10.0, 12.0, 5.0),)
    return rundir.Operators(source, (rundir.Window(1, rows, 22.0, session_dir="i-1_pid_2"),))


def run_directory(pending: Path, asked: Spec, found: rundir.Operators | None = None) -> Path:
    """A run directory as the child leaves it."""
    directory = rundir.create(pending, asked.job)
    rundir.write_json(directory / rundir.SPEC, redact.tree(asked.to_json()))
    rundir.write_operators(directory, found or operators())
    session = directory / rundir.PROFILE / "i-1_pid_2"
    session.mkdir()
    (session / "trace.simulated.json").write_text('{"simulated": true}')
    (directory / rundir.CHILD_LOG).write_text("warming up\n")
    return directory


def manifest_agrees(directory: Path) -> bool:
    """Is each file of a directory, and no other, in its manifest with its size and sha256?"""
    manifest = rundir.read_json(directory / rundir.MANIFEST)
    files = {p.relative_to(directory).as_posix() for p in directory.rglob("*") if p.is_file()}
    return files - {rundir.MANIFEST} == set(manifest["files"]) and all(
        rundir.sha256_of(directory / name) == facts["sha256"]
        and (directory / name).stat().st_size == facts["size_bytes"]
        for name, facts in manifest["files"].items()
    )


CHILD_START = """
import json, os, signal, subprocess, sys, threading, time
out = os.fdopen(int(os.environ["PROFILE_RUN_STAGE_FD"]), "w", buffering=1)
def say(stage, **fields): print(json.dumps({"stage": stage, **fields}), file=out, flush=True)
def hear(): return sys.stdin.readline().strip()
def ready(): say("ready", device="simulated", cores="0", versions={}, chip=None, lnc=None)
directory = hear().removeprefix("run ")
"""


def fake_child(code: str) -> list[str]:
    """A command that speaks the child's protocol as `code` says."""
    return [sys.executable, "-c", CHILD_START + code]


def retracked(asked: Spec, **changes: Any) -> Spec:
    """The same run with another tracking group."""
    tracking = replace(asked.config.tracking, **changes)
    return replace(asked, config=replace(asked.config, tracking=tracking))


@contextmanager
def web_server(
    status: int, body: bytes = b"{}", headers: dict[str, str] | None = None
) -> Iterator[tuple[str, list[Any]]]:
    """A server that answers everything alike; yields its address and the requests it got."""
    seen: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.path, dict(self.headers)))
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()

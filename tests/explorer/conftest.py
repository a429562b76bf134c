"""Profiles as Trainium leaves them, and the stand-in program on a PATH of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.track import conftest as track

schema_file = track.schema_file
local_store = track.local_store
client = track.client
STANDIN = Path(__file__).with_name("standin.py")
EXECUTIONS = [
    {"start_ns": 1_000_000, "length_ns": 100_000},
    {"start_ns": 1_050_000, "length_ns": 100_000},  # overlaps the first
    {"start_ns": 1_400_000, "length_ns": 50_000},
]
BUSY_US, UNION_US, SPAN_US = 250.0, 200.0, 450.0


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """neuron-explorer, on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    path = folder / "neuron-explorer"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STANDIN}" "$@"\n')
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("EXPLORER_DIARY", str(tmp_path / "diary"))
    monkeypatch.setenv("EXPLORER_HELPER", str(tmp_path / "helper.pid"))
    return path


@pytest.fixture
def in_mood(program: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Set how the program behaves."""
    return lambda mood: monkeypatch.setenv("EXPLORER_MOOD", mood)


def make_session(profile: Path, stamp: int = 1776672348756756905, cores: int = 1) -> str:
    """A session folder with runtime and device files; its name relative to the profile."""
    folder = profile / "i-0abc_pid_7" / str(stamp)
    folder.mkdir(parents=True)
    for name in ("ntrace.pb", "trace_info.pb"):
        (folder / name).write_bytes(b"\x01" + name.encode())
    (folder / "neff_395760075800974_vnc_0.neff").write_bytes(b"NEFF a")
    for core in range(cores):
        (folder / f"profile_nc_{core}_session_1.ntff").write_bytes(b"NTFF%d" % core)
    (folder / "executions.json").write_text(json.dumps(EXECUTIONS))
    return folder.relative_to(profile).as_posix()


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A profile with one session."""
    folder = tmp_path / "theirs"
    make_session(folder)
    return folder

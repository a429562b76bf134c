"""Tests of analyze/health.py: the status and the line over all checks of a run directory."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from src.analyze.check import Check
from src.analyze.health import Health, examine
from src.rundir import OperatorRow, Operators, Window
from src.schema import (
    CompileConfig,
    Config,
    InputConfig,
    ProfilerConfig,
    Spec,
    VariantConfig,
    WorkloadConfig,
)

SUFFIXES = ("", ".simulated.json")
RUNTIME = ("ntrace.pb", "trace_info.pb")
DEVICE = ("neff_0a1b_vnc_0.neff", "profile_nc_0_session_1.ntff")
REGION = OperatorRow("Torch-Compiled Region: 0/0", 1, 98.4, 98.4, 375.5)
MARK = OperatorRow("ProfilerStep*", 1, 10.0, 200.0, None, annotation=True)


def spec(compiled: bool = True, **profiler: Any) -> Spec:
    variant = VariantConfig("compiled", "naive", CompileConfig() if compiled else None)
    return Spec(
        Config(
            workload=WorkloadConfig("rms_norm"),
            variant=variant if compiled else VariantConfig("naive", "naive"),
            input=InputConfig("medium", [1, 2048, 4096]),
            profiler=ProfilerConfig(**{"name": "runtime", "repeats": 2, **profiler}),
        )
    )


def window(*rows: OperatorRow, **fields: Any) -> Window:
    asked = {"steps": 1, "self_cpu_total_us": 108.4, "executions": 1, **fields}
    return Window(operators=rows or (REGION, MARK), **asked)


def operators(*windows: Window, **fields: Any) -> Operators:
    source = fields.pop("device_time_source", "key_averages")
    return Operators(source, windows or (window(), window()), **fields)


def run_directory(
    root: Path,
    files: tuple[str, ...] = RUNTIME,
    sessions: int = 2,
    suffix: str = "",
    log: str | None = "USDT profiler_start\n0 trace events were dropped\n",
) -> Path:
    for number in range(sessions):
        for name in (*(f"{file}{suffix}" for file in files), "trace.json"):
            path = root / "profile" / "i-0abc_pid_7" / str(1776672348756756905 + number) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x")
    if log is not None:
        root.mkdir(parents=True, exist_ok=True)
        (root / "child.log").write_text(log)
    return root


def check(health: Health, name: str) -> Check:
    (found,) = [check for check in health.checks if check.name == name]
    return found


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_whole_capture_is_complete_and_says_so_in_one_line(tmp_path: Path, suffix: str) -> None:
    health = examine(run_directory(tmp_path, suffix=suffix), spec(), operators())
    assert health.status == "complete"
    assert {c.status for c in health.checks} == {"ok"}
    assert health.line == (
        "capture complete: 2 windows, 2 session folders, RUNTIME files present, nothing dropped, "
        "no compile in the window"
    )
    json.dumps(dataclasses.asdict(health), allow_nan=False)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_mode_at_once_is_complete(tmp_path: Path, suffix: str) -> None:
    files = (*RUNTIME, *DEVICE, "cpu_util.pb", "host_mem.pb")
    modes = ["DEVICE", "RUNTIME", "CPU_UTIL", "HOST_MEMORY"]
    health = examine(run_directory(tmp_path, files, suffix=suffix), spec(modes=modes), operators())
    assert health.status == "complete", health.line
    assert "DEVICE+RUNTIME+CPU_UTIL+HOST_MEMORY files present" in health.line


def test_no_profile_folder_fails_the_session_and_the_modes(tmp_path: Path) -> None:
    health = examine(run_directory(tmp_path, sessions=0), spec(), operators())
    assert health.status == "incomplete"
    assert check(health, "session_directory").status == "failed"
    assert "0 session folders for 2 windows" in check(health, "session_directory").message
    assert check(health, "mode_files").status == "failed"
    assert check(health, "empty_files").status == "ok"
    assert health.line.startswith("capture incomplete: profile/ has 0 session folders")
    assert "and 1 more in health.json" in health.line


def test_without_a_log_drops_cannot_be_ruled_out(tmp_path: Path) -> None:
    health = examine(run_directory(tmp_path, log=None), spec(), operators())
    assert check(health, "dropped_events").status == "warning"
    assert health.status == "suspicious"
    assert health.line.startswith("capture suspicious: There is no readable child.log")


def test_without_a_table_the_run_did_not_get_that_far(tmp_path: Path) -> None:
    health = examine(run_directory(tmp_path), spec(), None)
    assert check(health, "device_time").status == "failed"
    assert "operators.json" in check(health, "device_time").message
    assert {c.name for c in health.checks} == {
        "session_directory",
        "mode_files",
        "empty_files",
        "device_time",
        "dropped_events",
    }


def test_a_failure_outranks_a_warning_in_the_line(tmp_path: Path) -> None:
    asked = operators(window(compiles=1), dropped_keywords=("x",))
    health = examine(run_directory(tmp_path), spec(), asked)
    assert health.status == "incomplete"
    assert health.line.startswith("capture incomplete: 1 compile(s) inside the windows")
    assert "\n" not in health.line


def test_nothing_at_all_is_incomplete_and_not_an_error(tmp_path: Path) -> None:
    assert examine(tmp_path / "no such run", spec(), None).status == "incomplete"

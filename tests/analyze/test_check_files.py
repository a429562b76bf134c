"""Tests of analyze/check_files.py: each check with a directory that passes and one that fails."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from src.analyze.check_files import (
    dropped_events,
    empty_files,
    mode_files,
    scan,
    session_directory,
)
from src.schema import ProfilerConfig

SUFFIXES = ("", ".simulated.json")
RUNTIME = ("ntrace.pb", "trace_info.pb")
DEVICE = ("neff_0a1b_vnc_0.neff", "profile_nc_0_session_1.ntff")
PROFILER = ProfilerConfig("runtime")


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


def test_no_profile_folder_fails_the_session_and_the_modes(tmp_path: Path) -> None:
    found = scan(tmp_path / "no such run")
    assert "0 session folders for 2 windows" in session_directory(found, 2).message
    assert session_directory(found, 2).status == "failed"
    assert mode_files(found, PROFILER).status == "failed"
    assert empty_files(found).status == "ok"


def test_a_session_folder_that_stayed_empty_is_named(tmp_path: Path) -> None:
    run_directory(tmp_path, sessions=1)
    (tmp_path / "profile/i-0abc_pid_7/1776").mkdir()
    found = session_directory(scan(tmp_path), 2)
    assert found.status == "failed"
    assert "Empty: i-0abc_pid_7/1776." in found.message


def test_folders_are_found_by_their_files_whatever_their_names(tmp_path: Path) -> None:
    for folder in ("profile", "profile/somewhere else/deep"):
        for name in (*RUNTIME, "trace.json"):
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x")
    (tmp_path / "child.log").write_text("")
    assert session_directory(scan(tmp_path), 2).status == "ok"


def test_neffs_alone_are_a_cache_and_no_session(tmp_path: Path) -> None:
    path = tmp_path / "profile/neffs/graph_1.neff"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    found = session_directory(scan(tmp_path), 2)
    assert found.status == "failed"


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("mode", "files", "missing", "cure"),
    [
        ("RUNTIME", ("trace_info.pb",), "ntrace.pb is missing in 2 of 2", "NEURON_RT_INSPECT"),
        ("RUNTIME", ("ntrace.pb",), "trace_info.pb is missing in 2 of 2", "child.log"),
        ("CPU_UTIL", RUNTIME, "cpu_util.pb is missing in 2 of 2", "child.log"),
        ("HOST_MEMORY", RUNTIME, "host_mem.pb is missing in 2 of 2", "child.log"),
        ("DEVICE", RUNTIME, "no .ntff and no .neff", "profiler=runtime"),
        ("DEVICE", DEVICE[:1], "no .ntff.", "profiler=runtime"),
        ("DEVICE", DEVICE[1:], "no .neff", "profiler.neff_cache_dir="),
    ],
)
def test_a_mode_without_its_file_fails_and_says_the_cure(
    tmp_path: Path, suffix: str, mode: str, files: tuple[str, ...], missing: str, cure: str
) -> None:
    run_directory(tmp_path, files, suffix=suffix)
    found = mode_files(scan(tmp_path), ProfilerConfig(modes=[mode]))
    assert found.status == "failed"
    assert f"{mode} was asked for" in found.message
    assert missing in found.message
    assert cure in found.message


def test_a_mode_file_missing_in_one_window_names_the_folder(tmp_path: Path) -> None:
    run_directory(tmp_path)
    (tmp_path / "profile/i-0abc_pid_7/1776672348756756906/ntrace.pb").unlink()
    found = mode_files(scan(tmp_path), PROFILER)
    where = "1 of 2 session folders (i-0abc_pid_7/1776672348756756906)"
    assert f"ntrace.pb is missing in {where}" in found.message


def test_a_missing_trace_json_fails(tmp_path: Path) -> None:
    run_directory(tmp_path)
    (tmp_path / "profile/i-0abc_pid_7/1776672348756756905/trace.json").unlink()
    found = mode_files(scan(tmp_path), PROFILER)
    assert found.status == "failed"
    assert "trace.json is missing in 1 of 2 session folders" in found.message


@pytest.mark.parametrize(
    ("file", "cure"),
    [("profile_nc_1_session_1.ntff", "device.env.NEURON_RT_NUM_CORES="), ("x.pb", "free space")],
)
def test_an_empty_file_fails_with_its_own_cure(tmp_path: Path, file: str, cure: str) -> None:
    run_directory(tmp_path)
    (tmp_path / "profile/i-0abc_pid_7/1776672348756756905" / file).touch()
    found = empty_files(scan(tmp_path))
    assert found.status == "failed"
    assert f"i-0abc_pid_7/1776672348756756905/{file}" in found.message
    assert cure in found.message


@pytest.mark.parametrize(
    "level", ["1234 trace events were dropped", "1,234 Trace Events were dropped"]
)
def test_dropped_events_fail_and_say_the_larger_number_to_type(tmp_path: Path, level: str) -> None:
    run_directory(tmp_path, log=f"start\n[nrt] WARN {level} on nc 0\n")
    found = dropped_events(tmp_path, ProfilerConfig(max_events_per_nc=500_000))
    assert found.status == "failed"
    assert "1,234 trace events were dropped" in found.message
    assert "profiler.max_events_per_nc=1000000" in found.message


def test_the_default_buffer_is_doubled_and_the_log_may_hold_any_bytes(tmp_path: Path) -> None:
    run_directory(tmp_path)
    (tmp_path / "child.log").write_bytes(b"\xff\xfe\x00\n12 trace events were dropped\n")
    found = dropped_events(tmp_path, PROFILER)
    assert "profiler.max_events_per_nc=2000000" in found.message


def test_without_a_log_drops_cannot_be_ruled_out(tmp_path: Path) -> None:
    assert dropped_events(tmp_path, PROFILER).status == "warning"
    (tmp_path / "child.log").write_text("0 trace events were dropped")
    assert dropped_events(tmp_path, PROFILER).status == "ok"


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _link_loop(path: Path) -> None:
    path.symlink_to(path.parent, target_is_directory=True)


def _link_out(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def _odd_name(path: Path) -> None:
    path.with_name("ü |`\n.pb").write_bytes(b"x")


@pytest.mark.parametrize("make", [_pipe, _link_loop, _link_out, _dangling, _odd_name])
def test_odd_entries_in_the_profile_change_nothing(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    run_directory(tmp_path)
    make(tmp_path / "profile" / "i-0abc_pid_7" / "odd.pb")
    found = scan(tmp_path)
    assert session_directory(found, 2).status == "ok"
    assert mode_files(found, PROFILER).status == "ok"
    assert empty_files(found).status == "ok"


def test_a_link_under_a_published_name_is_no_such_file(tmp_path: Path) -> None:
    run_directory(tmp_path)
    path = tmp_path / "profile/i-0abc_pid_7/1776672348756756905/ntrace.pb"
    path.rename(tmp_path / "elsewhere.pb")
    path.symlink_to(tmp_path / "elsewhere.pb")
    assert mode_files(scan(tmp_path), PROFILER).status == "failed"


def test_a_log_that_is_a_pipe_does_not_block(tmp_path: Path) -> None:
    run_directory(tmp_path, log=None)
    os.mkfifo(tmp_path / "child.log")
    assert dropped_events(tmp_path, PROFILER).status == "warning"


def test_hundreds_of_files_are_one_short_message(tmp_path: Path) -> None:
    run_directory(tmp_path)
    folder = tmp_path / "profile/i-0abc_pid_7/1776672348756756905"
    for number in range(400):
        (folder / f"profile_nc_0_session_{number}.ntff").touch()
    message = empty_files(scan(tmp_path)).message
    assert message.startswith("400 empty files: ")
    assert len(message) < 500

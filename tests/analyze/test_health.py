"""Tests of analyze/health.py: each check with a run directory that passes and one that fails."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
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


def test_a_session_folder_that_stayed_empty_is_named(tmp_path: Path) -> None:
    run_directory(tmp_path, sessions=1)
    (tmp_path / "profile/i-0abc_pid_7/1776").mkdir()
    found = check(examine(tmp_path, spec(), operators()), "session_directory")
    assert found.status == "failed"
    assert "Empty: i-0abc_pid_7/1776." in found.message


def test_folders_are_found_by_their_files_whatever_their_names(tmp_path: Path) -> None:
    for folder in ("profile", "profile/somewhere else/deep"):
        for name in (*RUNTIME, "trace.json"):
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x")
    (tmp_path / "child.log").write_text("")
    assert examine(tmp_path, spec(), operators()).status == "complete"


def test_neffs_alone_are_a_cache_and_no_session(tmp_path: Path) -> None:
    path = tmp_path / "profile/neffs/graph_1.neff"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    found = check(examine(tmp_path, spec(), operators()), "session_directory")
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
    health = examine(run_directory(tmp_path, files, suffix=suffix), spec(modes=[mode]), operators())
    found = check(health, "mode_files")
    assert found.status == "failed"
    assert f"{mode} was asked for" in found.message
    assert missing in found.message
    assert cure in found.message


def test_a_mode_file_missing_in_one_window_names_the_folder(tmp_path: Path) -> None:
    run_directory(tmp_path)
    (tmp_path / "profile/i-0abc_pid_7/1776672348756756906/ntrace.pb").unlink()
    found = check(examine(tmp_path, spec(), operators()), "mode_files")
    where = "1 of 2 session folders (i-0abc_pid_7/1776672348756756906)"
    assert f"ntrace.pb is missing in {where}" in found.message


def test_a_missing_trace_json_fails(tmp_path: Path) -> None:
    run_directory(tmp_path)
    (tmp_path / "profile/i-0abc_pid_7/1776672348756756905/trace.json").unlink()
    found = check(examine(tmp_path, spec(), operators()), "mode_files")
    assert found.status == "failed"
    assert "trace.json is missing in 1 of 2 session folders" in found.message


@pytest.mark.parametrize(
    ("file", "cure"),
    [("profile_nc_1_session_1.ntff", "device.env.NEURON_RT_NUM_CORES="), ("x.pb", "free space")],
)
def test_an_empty_file_fails_with_its_own_cure(tmp_path: Path, file: str, cure: str) -> None:
    run_directory(tmp_path)
    (tmp_path / "profile/i-0abc_pid_7/1776672348756756905" / file).touch()
    found = check(examine(tmp_path, spec(), operators()), "empty_files")
    assert found.status == "failed"
    assert f"i-0abc_pid_7/1776672348756756905/{file}" in found.message
    assert cure in found.message


@pytest.mark.parametrize(
    "level", ["1234 trace events were dropped", "1,234 Trace Events were dropped"]
)
def test_dropped_events_fail_and_say_the_larger_number_to_type(tmp_path: Path, level: str) -> None:
    run_directory(tmp_path, log=f"start\n[nrt] WARN {level} on nc 0\n")
    found = check(examine(tmp_path, spec(max_events_per_nc=500_000), operators()), "dropped_events")
    assert found.status == "failed"
    assert "1,234 trace events were dropped" in found.message
    assert "profiler.max_events_per_nc=1000000" in found.message


def test_the_default_buffer_is_doubled_and_the_log_may_hold_any_bytes(tmp_path: Path) -> None:
    run_directory(tmp_path)
    (tmp_path / "child.log").write_bytes(b"\xff\xfe\x00\n12 trace events were dropped\n")
    found = check(examine(tmp_path, spec(), operators()), "dropped_events")
    assert "profiler.max_events_per_nc=2000000" in found.message


def test_without_a_log_drops_cannot_be_ruled_out(tmp_path: Path) -> None:
    health = examine(run_directory(tmp_path, log=None), spec(), operators())
    assert check(health, "dropped_events").status == "warning"
    assert health.status == "suspicious"
    assert health.line.startswith("capture suspicious: There is no readable child.log")


def table_check(
    tmp_path: Path, name: str, asked: Operators | None, of: Spec | None = None
) -> Check:
    return check(examine(run_directory(tmp_path), of or spec(), asked), name)


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


def test_a_table_without_windows_fails(tmp_path: Path) -> None:
    found = table_check(tmp_path, "device_time", Operators("key_averages", ()))
    assert found.status == "failed"
    assert "No window" in found.message


def test_nothing_executed_names_the_operators_that_fell_back(tmp_path: Path) -> None:
    quiet = window(OperatorRow("aten::sort", 1, 5.0, 5.0), MARK, executions=0)
    asked = operators(quiet, quiet, fallback_operators=("aten::sort",))
    found = table_check(tmp_path, "device_time", asked)
    assert found.status == "failed"
    assert "0 executions" in found.message
    assert "aten::sort" in found.message


@pytest.mark.parametrize(
    ("profiler", "dropped", "cure"),
    [
        ({"correlate_device_time": False}, (), "Type profiler.correlate_device_time=true"),
        ({}, ("correlate_device_time",), "newer torch-neuronx"),
        ({"modes": ["DEVICE"]}, (), "Type profiler=combined"),
        ({}, (), "neuron-explorer"),
    ],
)
def test_no_lawful_source_says_what_to_try(
    tmp_path: Path, profiler: dict[str, Any], dropped: tuple[str, ...], cure: str
) -> None:
    asked = operators(device_time_source=None, dropped_keywords=dropped)
    found = table_check(tmp_path, "device_time", asked, spec(**profiler))
    assert found.status == "failed"
    assert cure in found.message


def test_a_source_that_gave_no_time_fails(tmp_path: Path) -> None:
    bare = window(OperatorRow("aten::mul", 1, 5.0, 5.0), MARK, executions=None)
    found = table_check(tmp_path, "device_time", operators(bare, bare), spec(compiled=False))
    assert found.status == "failed"
    assert "no device time in any window" in found.message


def test_totals_by_core_are_device_time(tmp_path: Path) -> None:
    bare = window(OperatorRow("aten::mul", 1, 5.0, 5.0), MARK, self_neuron_by_core_us={"0": 12.0})
    asked = operators(bare, bare, device_time_source="neuron_explorer")
    assert table_check(tmp_path, "device_time", asked, spec(compiled=False)).status == "ok"


def test_a_window_without_device_time_is_suspicious(tmp_path: Path) -> None:
    bare = window(OperatorRow(REGION.name, 1, 5.0, 5.0), MARK, executions=0)
    found = table_check(tmp_path, "device_time", operators(window(), bare))
    assert found.status == "warning"
    assert "Only 1 of 2 windows" in found.message


def test_an_operator_with_device_time_in_some_windows_only_is_suspicious(tmp_path: Path) -> None:
    add = OperatorRow("aten::add", 1, 5.0, 5.0)
    timed = dataclasses.replace(add, self_neuron_us=3.0)
    asked = operators(window(REGION, MARK, add), window(REGION, MARK, timed))
    found = table_check(tmp_path, "device_time", asked)
    assert found.status == "warning"
    assert "aten::add" in found.message


@pytest.mark.parametrize(
    "compiling",
    [
        window(compiles=1),
        window(REGION, MARK, OperatorRow("build_guards (dynamo_timed)", 1, 9.0, 9.0)),
    ],
)
def test_a_compile_in_the_window_fails_unless_it_is_allowed(
    tmp_path: Path, compiling: Window
) -> None:
    asked = operators(window(), compiling)
    found = table_check(tmp_path, "compile_in_window", asked)
    assert found.status == "failed"
    assert "profiler.warmup" in found.message
    assert "profiler.allow_compile_in_window=true" in found.message
    allowed = examine(tmp_path, spec(allow_compile_in_window=True), asked)
    assert allowed.status == "complete"
    assert "accepted by profiler.allow_compile_in_window=true" in allowed.line


def test_steps_are_counted_in_both_spellings_of_the_mark(tmp_path: Path) -> None:
    two = [dataclasses.replace(MARK, name=f"ProfilerStep#{n}") for n in range(2)]
    asked = operators(
        window(REGION, *two, steps=2), window(REGION, dataclasses.replace(MARK, calls=2), steps=2)
    )
    assert table_check(tmp_path, "steps_marked", asked).status == "ok"


@pytest.mark.parametrize("rows", [(REGION,), (REGION, dataclasses.replace(MARK, calls=3))])
def test_missing_and_surplus_step_marks_fail(tmp_path: Path, rows: tuple[OperatorRow, ...]) -> None:
    found = table_check(tmp_path, "steps_marked", operators(window(*rows), window()))
    assert found.status == "failed"
    assert "window 0:" in found.message
    assert "for 1 steps" in found.message


def test_a_compiled_variant_without_a_region_ran_eager(tmp_path: Path) -> None:
    eager = window(OperatorRow("aten::mul", 3, 60.9, 60.9, 1164.5), MARK)
    found = table_check(tmp_path, "compiled_region_present", operators(window(), eager))
    assert found.status == "failed"
    assert "variant=compiled" in found.message
    assert "window 1" in found.message
    of = spec(compiled=False)
    assert table_check(tmp_path, "compiled_region_present", operators(eager), of).status == "ok"


def test_dropped_keywords_are_a_warning(tmp_path: Path) -> None:
    health = examine(
        run_directory(tmp_path), spec(), operators(dropped_keywords=("precache_node_info",))
    )
    assert check(health, "keywords_dropped").status == "warning"
    assert "precache_node_info" in health.line
    assert health.status == "suspicious"


@pytest.mark.parametrize(
    ("names", "status"), [(None, "ok"), ((), "ok"), (("aten::sort", "aten::acos"), "warning")]
)
def test_fallbacks_are_a_warning(
    tmp_path: Path, names: tuple[str, ...] | None, status: str
) -> None:
    found = table_check(tmp_path, "fallback", operators(fallback_operators=names))
    assert found.status == status
    assert ("aten::acos, aten::sort fell back" in found.message) == bool(names)


def test_a_failure_outranks_a_warning_in_the_line(tmp_path: Path) -> None:
    asked = operators(window(compiles=1), dropped_keywords=("x",))
    health = examine(run_directory(tmp_path), spec(), asked)
    assert health.status == "incomplete"
    assert health.line.startswith("capture incomplete: 1 compile(s) inside the windows")
    assert "\n" not in health.line


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
    assert examine(tmp_path, spec(), operators()).status == "complete"


def test_a_link_under_a_published_name_is_no_such_file(tmp_path: Path) -> None:
    run_directory(tmp_path)
    path = tmp_path / "profile/i-0abc_pid_7/1776672348756756905/ntrace.pb"
    path.rename(tmp_path / "elsewhere.pb")
    path.symlink_to(tmp_path / "elsewhere.pb")
    assert check(examine(tmp_path, spec(), operators()), "mode_files").status == "failed"


def test_a_log_that_is_a_pipe_does_not_block(tmp_path: Path) -> None:
    run_directory(tmp_path, log=None)
    os.mkfifo(tmp_path / "child.log")
    assert check(examine(tmp_path, spec(), operators()), "dropped_events").status == "warning"


def test_nothing_at_all_is_incomplete_and_not_an_error(tmp_path: Path) -> None:
    assert examine(tmp_path / "no such run", spec(), None).status == "incomplete"


def test_thousands_of_files_are_one_short_message(tmp_path: Path) -> None:
    run_directory(tmp_path)
    folder = tmp_path / "profile/i-0abc_pid_7/1776672348756756905"
    for number in range(3000):
        (folder / f"profile_nc_0_session_{number}.ntff").touch()
    health = examine(tmp_path, spec(), operators())
    assert "3000 empty files" in health.line
    assert len(health.line) < 600

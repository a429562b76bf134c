"""Tests of the checks that matter on hardware: doubled time, the NEFF cache, new NEFFs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from src.analyze.check_files import mode_files, scan
from src.analyze.check_table import compile_in_window, doubled_time, fallback, neff_cache
from src.rundir import (
    NeffCache,
    OperatorRow,
    Operators,
    Window,
    read_operators,
    write_json,
    write_operators,
)
from src.schema import ProfilerConfig

ROW = OperatorRow("aten::mul", 1, 10.0, 10.0, 400.0)
MARK = OperatorRow("ProfilerStep*", 1, 10.0, 200.0, 999.0, annotation=True)
WARM = NeffCache("/cache", "warm", 0, 12)
COMBINED = ProfilerConfig("combined", ["DEVICE", "RUNTIME"])


def operators(*executions_us: float | None, **fields: Any) -> Operators:
    windows = tuple(
        Window(1, (ROW, MARK), 108.4, executions=1, executions_us=length)
        for length in executions_us or (None,)
    )
    return Operators("key_averages", windows, **fields)


@pytest.mark.parametrize(
    ("lengths", "status"),
    [
        ((200.0, 200.0), "failed"),
        ((196.0,), "failed"),
        ((400.0,), "ok"),
        ((None,), "ok"),
        ((0.0,), "ok"),
        ((100.0,), "ok"),  # four times is another matter
        ((200.0, 400.0, 400.0), "ok"),
    ],
)
def test_twice_the_merged_executions_is_a_finding(
    lengths: tuple[float | None, ...], status: str
) -> None:
    assert doubled_time(operators(*lengths)).status == status


def test_doubled_time_says_how_much_why_and_what_to_do() -> None:
    said = doubled_time(operators(200.0)).message
    assert "2.00 times" in said
    assert "LNC2" in said
    assert "NEURON_RT_VIRTUAL_CORE_SIZE=1" in said


def test_new_neffs_are_a_compile_that_dynamo_does_not_count() -> None:
    window = dataclasses.replace(operators().windows[0], new_neffs=3)
    found = compile_in_window(Operators("key_averages", (window,)), ProfilerConfig("runtime"))
    assert found.status == "failed"
    assert "3 new in the NEFF cache" in found.message
    accepted = ProfilerConfig("runtime", allow_compile_in_window=True)
    assert compile_in_window(Operators("key_averages", (window,)), accepted).status == "ok"


def test_a_cache_that_is_not_watched_finds_nothing() -> None:
    assert compile_in_window(operators(), ProfilerConfig("runtime")).status == "ok"


def test_the_cache_is_called_cold_or_warm_with_its_misses() -> None:
    assert "not" not in neff_cache(operators(neff_cache=WARM)).message
    assert "all hits" in neff_cache(operators(neff_cache=WARM)).message
    cold = NeffCache("/cache", "cold", 6, 6)
    assert "cold: 6 compiled" in neff_cache(operators(neff_cache=cold)).message
    empty = NeffCache("/cache", "cold", 0, 0)
    assert "cannot be told" in neff_cache(operators(neff_cache=empty)).message
    assert "no NEFF cache" in neff_cache(operators()).message


def _session(root: Path, *names: str) -> Path:
    folder = root / "profile" / "i-1_pid_2" / "3"
    folder.mkdir(parents=True)
    for name in ("ntrace.pb", "trace_info.pb", "trace.json", *names):
        (folder / name).write_bytes(b"x")
    return root


@pytest.mark.parametrize(
    ("files", "cache", "status"),
    [
        (("profile_nc_0_session_1.ntff",), WARM, "warning"),
        (("profile_nc_0_session_1.ntff",), NeffCache("/cache", "cold", 6, 6), "failed"),
        (("profile_nc_0_session_1.ntff",), None, "failed"),
        ((), WARM, "failed"),
        (("neff_0a_vnc_0.neff", "profile_nc_0_session_1.ntff"), WARM, "ok"),
    ],
)
def test_only_a_warm_cache_explains_a_missing_neff(
    tmp_path: Path, files: tuple[str, ...], cache: NeffCache | None, status: str
) -> None:
    found = mode_files(scan(_session(tmp_path, *files)), COMBINED, cache)
    assert found.status == status
    assert ("/cache" in found.message) == (status == "warning")


def test_other_missing_files_fail_beside_a_warm_cache(tmp_path: Path) -> None:
    root = _session(tmp_path, "profile_nc_0_session_1.ntff")
    next(root.rglob("ntrace.pb")).unlink()
    assert mode_files(scan(root), COMBINED, WARM).status == "failed"


def test_one_trace_a_window_is_enough_where_a_window_has_more_sessions(tmp_path: Path) -> None:
    root = _session(tmp_path)
    second = root / "profile" / "i-1_pid_2" / "4"
    second.mkdir()
    for name in ("ntrace.pb", "trace_info.pb"):
        (second / name).write_bytes(b"x")
    assert mode_files(scan(root), ProfilerConfig("runtime", repeats=1)).status == "ok"
    assert mode_files(scan(root), ProfilerConfig("runtime", repeats=2)).status == "failed"


def test_how_a_fall_back_was_told_is_said() -> None:
    by_shape = operators(fallback_operators=("aten::sort",), fallback_source="trace")
    assert "shape of the trace" in fallback(by_shape).message
    listed = operators(fallback_operators=("aten::sort",), fallback_source="torch_neuronx")
    assert "shape of the trace" not in fallback(listed).message


def test_findings_come_back_from_the_file(tmp_path: Path) -> None:
    asked = operators(200.0, neff_cache=WARM, fallback_operators=(), fallback_source="trace")
    write_operators(tmp_path, asked)
    assert read_operators(tmp_path) == asked


def test_a_file_from_before_these_findings_is_read(tmp_path: Path) -> None:
    window = {"steps": 1, "operators": [], "self_cpu_total_us": 1.0}
    write_json(
        tmp_path / "operators.json",
        {
            "format": 1,
            "device_time_source": None,
            "windows": [window],
            "fallback_operators": None,
            "dropped_keywords": [],
        },
    )
    found = read_operators(tmp_path)
    assert found is not None
    assert (found.neff_cache, found.windows[0].new_neffs) == (None, None)

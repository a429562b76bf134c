"""Tests of analyze/executions.py: rows of the physical cores are merged, never added plain."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from src.analyze.executions import merge


def row(start: int, length: int, **more: Any) -> dict[str, Any]:
    fields = {"process_id": "9", "model_id": 1, "exec_id": 1, "nc_idx": 0, **more}
    return {"name": "nc_exec_running", "timestamp": start, "duration": length, **fields}


def test_two_physical_cores_are_one_execution_from_first_start_to_last_end() -> None:
    (one,) = merge([row(1000, 500, device_core_idx=0), row(1100, 600, device_core_idx=1)])
    assert (one.start_ns, one.end_ns, one.rows) == (1000, 1700, 2)
    assert one.length_us == 0.7


def test_flow_ids_start_again_for_each_model() -> None:
    rows = [row(0, 5, flow_id=["1"]), row(10, 5, flow_id=["1"], model_id=2)]
    assert len(merge(rows)) == 2


def test_logical_cores_and_processes_are_apart() -> None:
    assert len(merge([row(0, 5), row(0, 5, nc_idx=1), row(0, 5, process_id="10")])) == 3


def test_both_spellings_of_a_row_are_read() -> None:
    extra = json.dumps({"model_id": 3, "exec_id": 7})
    other = {
        "name": "nc_exec_running", "start_ts": 10, "duration_ns": 20, "nc_idx": 0,
        "process_id": 9, "extra_attributes_json": extra,
    }  # fmt: skip
    (one,) = merge([other])
    assert (one.model_id, one.length_us) == ("3", 0.02)


def test_rows_without_identity_start_or_length_are_left_out() -> None:
    broken = [
        row(0, 5, exec_id=None), row(0, -1), {"name": "nc_exec_running"}, None, "text",
        {**row(0, 5), "timestamp": "soon"}, {**row(0, 5), "name": "nrt_execute"},
        {**row(0, 5), "duration": None}, {**row(0, 5, exec_id=None), "extra_attributes_json": "{"},
    ]  # fmt: skip
    assert merge(broken) == []


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=20))
def test_doubling_each_row_changes_nothing(spans: list[tuple[int, int]]) -> None:
    rows = [row(start, length, exec_id=n) for n, (start, length) in enumerate(spans)]
    doubled = [{**one, "device_core_idx": core} for one in rows for core in (0, 1)]
    once, twice = merge(rows), merge(doubled)
    assert [(e.start_ns, e.end_ns) for e in once] == [(e.start_ns, e.end_ns) for e in twice]
    whole_us = sum(length for _, length in spans) / 1000
    assert math.isclose(sum(one.length_us for one in twice), whole_us, abs_tol=1e-6)

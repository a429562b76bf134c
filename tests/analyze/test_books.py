"""Tests of analyze/books.py and device_clock.py: sums of parts, worked out on paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.analyze import device_clock
from src.analyze.books import copy_operators, device_book, gaps, host_book
from src.analyze.device_clock import DeviceClock, Run

from .traces import event, kernel, mark, trace


def clock(*runs: Run) -> DeviceClock:
    return DeviceClock("by hand", False, runs)


def run(name: str, start_us: float, end_us: float, core: str = "0") -> Run:
    return Run(name, core, round(start_us * 1000), round(end_us * 1000))


def row(start: int, duration: int, **more: Any) -> dict[str, Any]:
    fields = {"process_id": "7", "model_id": 1, "flow_id": 1, "nc_idx": 0, **more}
    return {"name": "nc_exec_running", "timestamp": start, "duration": duration, **fields}


def profile(folder: Path, *rows: dict[str, Any], key: str = "trace_event") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "system_profile.json").write_text(json.dumps({key: list(rows)}))
    return folder


def test_one_core_idles_in_its_gaps() -> None:
    # 0-10 mul, gap of 5, 15-25 add, gap of 20, 45-50 mul: span 50, busy 25, idle 25
    runs = (run("mul", 0, 10), run("add", 15, 25), run("mul", 45, 50))
    book = device_book(clock(*runs), 1, 24.0)
    assert (book.span_us, book.busy_us, book.union_us, book.idle_us) == (50, 25, 25, 25)
    assert (book.overlap_us, book.residual_us) == (0, -1.0)  # 24 in the table, 25 executed
    assert (book.gaps, book.longest_gap_us, book.longest_gap_before) == (2, 20, "mul")
    assert book.gap_us_before == {"mul": 20.0, "add": 5.0}
    assert book.executions == 3


def test_overlapping_cores_are_busy_twice_but_idle_never() -> None:
    # core 0: 0-10, core 1: 5-20: union 20, busy 25, 5 of them side by side
    book = device_book(clock(run("a", 0, 10, "0"), run("b", 5, 20, "1")), 1, 25.0)
    assert (book.span_us, book.busy_us, book.union_us) == (20, 25, 20)
    assert (book.idle_us, book.overlap_us, book.residual_us) == (0, 5, 0)
    assert book.gaps == 0  # each core ran once


def test_a_gap_is_a_wait_of_one_core_even_while_another_works() -> None:
    runs = (run("a", 0, 10, "0"), run("b", 0, 50, "1"), run("c", 30, 40, "0"))
    assert [(g.before, g.core, g.start_ns, g.end_ns) for g in gaps(runs)] == [
        ("c", "0", 10_000, 30_000)
    ]
    assert device_book(clock(*runs), 1, None).idle_us == 0


def test_a_short_execution_inside_a_long_one_leaves_no_gap() -> None:
    assert gaps((run("a", 0, 50), run("b", 10, 20), run("c", 50, 60))) == []


def test_books_are_per_step_and_the_longest_gap_is_of_the_window() -> None:
    runs = (run("a", 0, 10), run("b", 20, 30), run("a", 40, 50), run("b", 90, 100))
    book = device_book(clock(*runs), 2, 20.0)
    # span 100, busy 40, idle 60 in two steps
    assert (book.span_us, book.busy_us, book.idle_us, book.executions) == (50, 20, 30, 2)
    assert book.gap_us_before == {"b": 25.0, "a": 5.0}  # (10 + 40) / 2 and 10 / 2
    assert book.longest_gap_us == 40
    assert book.residual_us == 0


def test_without_self_neuron_there_is_no_residual() -> None:
    assert device_book(clock(run("a", 0, 1)), 1, None).residual_us is None


cores = st.sampled_from("01")
random_runs = st.lists(
    st.builds(
        lambda core, start, size: Run(f"op{size}", core, start, start + size),
        cores,
        st.integers(0, 2000),
        st.integers(0, 400),
    ),
    min_size=1,
)


@given(random_runs, st.integers(1, 5), st.floats(0, 1e4))
def test_the_device_book_balances_for_any_executions(
    runs: list[Run], steps: int, self_neuron_us: float
) -> None:
    book = device_book(clock(*runs), steps, self_neuron_us)
    assert book.residual_us is not None
    assert self_neuron_us + book.idle_us == pytest.approx(
        book.span_us + book.overlap_us + book.residual_us, abs=1e-6
    )
    covered = {ns for one in runs for ns in range(one.start_ns, one.end_ns)}
    assert book.union_us == pytest.approx(len(covered) / 1000 / steps)
    assert min(book.idle_us, book.overlap_us) >= 0


@given(random_runs)
def test_gaps_of_one_core_add_up_to_its_idle_time(runs: list[Run]) -> None:
    runs = [Run(one.name, "0", one.start_ns, one.end_ns) for one in runs]
    book = device_book(clock(*runs), 1, None)
    assert sum(book.gap_us_before.values()) == pytest.approx(book.idle_us)


def test_the_host_book_counts_children_and_annotations_once() -> None:
    found = trace(
        mark(0, 0, 100),
        event("my code", 5, 80, "user_annotation"),
        event("aten::linear", 10, 40),
        event("inner note", 12, 30, "user_annotation"),
        event("aten::addmm", 20, 20),
        event("aten::mul", 60, 10),
        event("aten::mul", 95, 5),
        event("aten::mul", 200, 50),  # after the step
        event("aten::mul", 10, 90, tid=2),  # another thread
    )
    book = host_book(found)
    assert book is not None
    # 10-50, 60-70, 95-100 are operators: 40 + 10 + 5 = 55 of 100
    assert (book.span_us, book.operators_us, book.outside_us) == (100, 55, 45)
    assert book.residual_us == 0


def test_the_host_book_is_per_step_and_needs_marks() -> None:
    two = trace(mark(0, 0, 10), event("a", 0, 4), mark(1, 20, 30), event("a", 20, 10))
    book = host_book(two)
    assert book is not None
    assert (book.span_us, book.operators_us, book.outside_us) == (20, 7, 13)
    assert host_book(trace(event("a", 0, 4))) is None


def test_spans_that_cross_show_as_a_residual_of_the_host() -> None:
    crossed = trace(mark(0, 0, 100), event("a", 0, 50), event("b", 40, 20))
    book = host_book(crossed)
    assert book is not None
    # a 50 + b 20 = 70 for the 60 that they cover
    assert (book.operators_us, book.outside_us, book.residual_us) == (70, 40, -10)


host_spans = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 40)))


@given(host_spans)
def test_the_host_book_balances_for_any_spans(spans_: list[tuple[int, int]]) -> None:
    events = [event("a", ts, dur) for ts, dur in spans_]
    book = host_book(trace(mark(0, 0, 100), *events))
    assert book is not None
    assert book.span_us == 100
    assert book.operators_us + book.outside_us + book.residual_us == pytest.approx(100)


def test_rows_of_two_physical_cores_are_one_execution(tmp_path: Path) -> None:
    # LNC2: flow 1 on two cores 0-10 and 2-12, flow 2 once more 20-30 and 20-28 us
    session = profile(
        tmp_path,
        row(0, 10_000, device_core_idx=0),
        row(2_000, 10_000, device_core_idx=1),
        row(20_000, 10_000, flow_id=2),
        row(20_000, 8_000, flow_id=2),
    )
    found = device_clock.read(session, None, simulated=False)
    assert found is not None
    book = device_book(found, 1, None)
    assert (book.executions, book.busy_us, book.span_us, book.idle_us) == (2, 22, 30, 8)


def test_flow_ids_of_other_models_processes_and_cores_are_other_executions(tmp_path: Path) -> None:
    others = ({"model_id": 2}, {"process_id": "8"}, {"nc_idx": 1})
    rows = [row(0, 10_000), *(row(0, 10_000, **other) for other in others)]
    found = device_clock.read(profile(tmp_path, *rows, key="trace_events"), None, simulated=False)
    assert found is not None
    assert len(found.runs) == 4


def test_dispatch_rows_give_no_device_clock(tmp_path: Path) -> None:
    found = trace(
        event("nrta_execute_schedule", 0, 5000, "privateuse1_runtime", exec_id=1),
        event("nrta_execute_schedule", 0, 5000, "privateuse1_driver", exec_id=1),
    )
    assert device_clock.read(tmp_path, found, simulated=False) is None


def test_kernel_rows_share_the_hosts_clock_and_name_their_operator(tmp_path: Path) -> None:
    found = trace(
        event("aten::mul", 0, 5, **{"External id": 1}),
        kernel("neff_1", 10, 20, exec_id=4, **{"External id": 1}),
        kernel("neff_1", 12, 20, exec_id=4, **{"External id": 1}),  # the other physical core
        kernel("neff_2", 40, 5),
    )
    read = device_clock.read(tmp_path, found, simulated=False)
    assert read is not None
    assert read.shares_host_clock
    assert [(r.name, r.start_ns, r.end_ns) for r in read.runs] == [
        ("aten::mul", 10_000, 32_000),
        ("neff_2", 40_000, 45_000),
    ]


def simulated_session(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    ran = {"name": "nc_exec_running", "nc_idx": 0, "model_id": 3, "operator": "graph"}
    events = [
        {"name": "nrt_tensor_write", "nc_idx": 0, "start_ns": 900, "bytes": 4},
        {**ran, "start_ns": 1000, "duration_ns": 500, "exec_id": 1, "flow_id": 1},
        {"name": "nrt_tensor_read", "nc_idx": 0, "start_ns": 1500, "bytes": 8},
        {**ran, "start_ns": 1500, "duration_ns": 500, "exec_id": 2, "flow_id": 2},
    ]
    (folder / "ntrace.pb.simulated.json").write_text(json.dumps({"events": events}))
    (folder / "trace_info.pb.simulated.json").write_text(
        json.dumps({"cost_model": {"dispatch_us": 328.0}})
    )
    return folder


def test_simulated_executions_have_the_models_clock_only(tmp_path: Path) -> None:
    # In trace.json the simulator's kernel rows stand at host times: they give names, not times.
    rows = trace(kernel("k", 777, 9, model_id=3, operator="aten::mul", simulated=True))
    found = device_clock.read(simulated_session(tmp_path), rows, simulated=True)
    assert found is not None
    assert found.runs == (Run("aten::mul", "0", 1000, 1500), Run("aten::mul", "0", 1500, 2000))
    assert not found.shares_host_clock
    assert found.fixed_us == 328.0
    (tmp_path / "ntrace.pb.simulated.json").unlink()
    assert device_clock.read(tmp_path, rows, simulated=True) is None


def test_simulated_files_are_nothing_to_a_run_on_neuron(tmp_path: Path) -> None:
    rows = trace(kernel("k", 777, 9, simulated=True))
    assert device_clock.read(simulated_session(tmp_path), rows, simulated=False) is None


def test_a_write_is_for_the_execution_that_follows_and_a_read_is_not(tmp_path: Path) -> None:
    found = device_clock.read(simulated_session(tmp_path), None, simulated=True)
    assert found is not None
    assert found.copies is not None
    assert [(c.direction, c.bytes, c.before) for c in found.copies] == [
        ("host to device", 4, "graph"),
        ("device to host", 8, None),
    ]


def test_a_copy_is_counted_once_and_belongs_to_the_outermost_operator() -> None:
    found = trace(
        mark(0, 0, 100),
        mark(1, 100, 100),
        event("my code", 0, 50, "user_annotation"),
        event("aten::add", 0, 40),
        event("aten::to", 5, 30),
        event("aten::_to_copy", 6, 20),
        event("aten::copy_", 7, 10),
        event("aten::item", 60, 10),
        event("aten::_local_scalar_dense", 61, 5),
        event("aten::copy_", 300, 10),  # outside the steps
    )
    assert copy_operators(found) == {
        "aten::add": {"aten::copy_": 0.5},
        "aten::item": {"aten::_local_scalar_dense": 0.5},
    }

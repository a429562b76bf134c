"""Tests of analyze/trace.py: hand-made traces, and a real one against torch's averages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.analyze.trace import StepMark, read_operators, read_steps
from src.errors import UserError


def span(
    name: str, ts: float, dur: float, tid: int = 1, cat: str = "cpu_op", **fields: Any
) -> dict[str, Any]:
    event = {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": tid, "ts": ts, "dur": dur}
    return {**event, **fields}


def written(directory: Path, *events: Any, top: Any = None) -> Path:
    path = directory / "trace.json"
    path.write_text(json.dumps({"traceEvents": list(events)} if top is None else top))
    return path


def reduced(path: Path) -> dict[str, tuple[int, float, float]]:
    return {r.name: (r.calls, r.self_cpu_us, r.cpu_total_us) for r in read_operators(path)}


def test_self_time_is_the_span_without_its_children(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        span("aten::mean", 0, 10),
        span("aten::sum", 1, 4),
        span("aten::fill_", 2, 1),
        span("aten::div_", 6, 3),
    )
    assert reduced(path) == {
        "aten::mean": (1, 3.0, 10.0),  # 10 - 4 - 3
        "aten::sum": (1, 3.0, 4.0),  # 4 - 1
        "aten::fill_": (1, 1.0, 1.0),
        "aten::div_": (1, 3.0, 3.0),
    }


def test_threads_do_not_nest_in_each_other(tmp_path: Path) -> None:
    path = written(tmp_path, span("a", 0, 10, tid=1), span("b", 2, 3, tid=2))
    assert reduced(path) == {"a": (1, 10.0, 10.0), "b": (1, 3.0, 3.0)}


def test_processes_with_equal_thread_numbers_do_not_nest_in_each_other(tmp_path: Path) -> None:
    path = written(tmp_path, span("a", 0, 10, pid=1), span("b", 2, 3, pid=2))
    assert reduced(path) == {"a": (1, 10.0, 10.0), "b": (1, 3.0, 3.0)}


def test_repeated_names_are_one_row(tmp_path: Path) -> None:
    path = written(tmp_path, span("a", 0, 2), span("a", 5, 3), span("b", 6, 1), span("a", 9, 1, 2))
    assert reduced(path) == {"a": (3, 5.0, 6.0), "b": (1, 1.0, 1.0)}


def test_annotations_take_part_in_nesting_and_are_marked(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        span("ProfilerStep#0", 0, 10, cat="user_annotation"),
        span("aten::mul", 1, 4),
        span("ProfilerStep#1", 10, 5, cat="user_annotation"),
    )
    rows = {row.name: row for row in read_operators(path)}
    assert rows["ProfilerStep*"].annotation
    assert rows["ProfilerStep*"].calls == 2
    assert rows["ProfilerStep*"].self_cpu_us == 11.0  # 10 - 4 + 5
    assert not rows["aten::mul"].annotation
    assert rows["aten::mul"].self_neuron_us is None


def test_zero_length_spans_are_counted_and_cost_nothing(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        span("parent", 0, 10),
        span("at start", 0, 0),
        span("inside", 5, 0),
        span("at end", 10, 0),
        span("next", 10, 2),
    )
    assert reduced(path) == {
        "parent": (1, 10.0, 10.0),
        "at start": (1, 0.0, 0.0),
        "inside": (1, 0.0, 0.0),
        "at end": (1, 0.0, 0.0),
        "next": (1, 2.0, 2.0),
    }


def test_spans_that_overlap_in_part_are_not_parent_and_child(tmp_path: Path) -> None:
    # as torch has it: b ends after a, so it is no child, and c belongs to b
    path = written(tmp_path, span("a", 0, 10), span("b", 5, 10), span("c", 6, 2))
    assert reduced(path) == {"a": (1, 10.0, 10.0), "b": (1, 8.0, 10.0), "c": (1, 2.0, 2.0)}


def test_a_namesakes_only_child_is_the_same_call(tmp_path: Path) -> None:
    # torch: an only child of the same name is folded into its parent, however deep
    path = written(tmp_path, span("a", 0, 10), span("a", 1, 8), span("a", 2, 6), span("b", 3, 1))
    assert reduced(path) == {"a": (1, 9.0, 10.0), "b": (1, 1.0, 1.0)}
    two = written(tmp_path, span("a", 0, 10), span("a", 1, 2), span("a", 5, 2))
    assert reduced(two) == {"a": (3, 10.0, 14.0)}


def test_a_namesake_that_starts_when_the_other_ends_is_another_call(tmp_path: Path) -> None:
    path = written(tmp_path, span("a", 0, 10), span("a", 10, 0))
    assert reduced(path) == {"a": (2, 10.0, 10.0)}


def test_of_two_spans_that_start_together_the_longer_is_the_parent(tmp_path: Path) -> None:
    path = written(tmp_path, span("child", 0, 4), span("parent", 0, 10))
    assert reduced(path) == {"parent": (1, 6.0, 10.0), "child": (1, 4.0, 4.0)}


def test_large_time_stamps_keep_their_nanoseconds(tmp_path: Path) -> None:
    # near 5e12 us a float steps by 0.001 us: added as floats, the child would outlast its parent
    start = 5276365398256.827
    path = written(tmp_path, span("a", start, 2049.655), span("b", start + 0.001, 2049.654))
    assert reduced(path) == {"a": (1, 0.001, 2049.655), "b": (1, 2049.654, 2049.654)}


def test_rows_of_the_device_and_broken_rows_are_left_out(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        span("aten::mul", 0, 5),
        span("nc_exec", 1, 2, cat="kernel"),
        span("dispatch", 1, 2, cat="privateuse1_runtime"),
        {"ph": "i", "name": "instant", "ts": 1},
        {"ph": "X", "cat": "cpu_op", "name": "no duration", "ts": 1},
        {"ph": "X", "cat": "cpu_op", "ts": 1, "dur": 1},
        {"ph": "X", "cat": "cpu_op", "name": "text", "ts": "1", "dur": 1},
        {"ph": "M"},
        "not an event",
    )
    assert reduced(path) == {"aten::mul": (1, 5.0, 5.0)}


@pytest.mark.parametrize("top", [{}, [], {"traceEvents": None}, "text", 3, None])
def test_a_trace_without_events_has_no_operators_and_no_steps(tmp_path: Path, top: Any) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(top))
    assert read_operators(path) == []
    assert read_steps(path) == []


def test_a_bare_list_of_events_is_a_trace(tmp_path: Path) -> None:
    assert reduced(written(tmp_path, top=[span("a", 0, 1)])) == {"a": (1, 1.0, 1.0)}


def test_steps_are_given_in_order_of_time(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        span("ProfilerStep#1", 20, 5, cat="user_annotation"),
        span("ProfilerStep#0", 10, 6, cat="user_annotation"),
        span("ProfilerStep#0", 10, 6, cat="gpu_user_annotation"),
        span("mine", 12, 1, cat="user_annotation"),
    )
    assert read_steps(path) == [StepMark(0, 10.0, 6.0), StepMark(1, 20.0, 5.0)]


@pytest.mark.parametrize("content", [b"", b'{"traceEvents": [', b"\xff\xfe\x00"])
def test_a_cut_trace_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"trace\.json: not a trace"):
        read_operators(path)


def test_a_missing_trace_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"trace\.json: cannot be read"):
        read_steps(tmp_path / "trace.json")


@given(st.recursive(st.integers(0, 5), lambda kids: st.lists(kids, max_size=4), max_leaves=12))
def test_self_times_add_up_to_the_roots_whatever_the_nesting(
    tmp_path_factory: pytest.TempPathFactory, tree: Any
) -> None:
    events: list[dict[str, Any]] = []

    def lay(node: Any, start: int, name: str) -> int:
        """Lay a node out from `start`, with 1 us before each child, and return its end."""
        end = start + node if isinstance(node, int) else start + 1
        for place, kid in enumerate([] if isinstance(node, int) else node):
            end = lay(kid, end, f"{name}{place}") + 1
        events.append(span(name, start, end - start))
        return end

    length = lay(tree, 0, "root")
    path = written(tmp_path_factory.mktemp("tree"), *events)
    rows = read_operators(path)
    assert sum(row.self_cpu_us for row in rows) == pytest.approx(length)
    assert all(row.self_cpu_us >= 0 for row in rows)
    assert {row.name for row in rows} == {event["name"] for event in events}


REAL = """
import json, sys, torch
from torch.profiler import profile, schedule, record_function, ProfilerActivity

def rms_norm(x, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w

x, w = torch.randn(4, 64), torch.randn(64)
one = schedule(wait=0, warmup=1, active=2, repeat=1)
with profile(activities=[ProfilerActivity.CPU], schedule=one) as prof:
    for _ in range(3):
        rms_norm(x, w)
        with record_function("mine"):
            torch.nn.functional.softmax(x @ x.t(), -1).contiguous()
        (x.requires_grad_() * w).sum().backward()
        prof.step()
prof.export_chrome_trace(sys.argv[1])
rows = {
    row.key: [row.count, row.self_cpu_time_total, row.cpu_time_total, row.is_user_annotation]
    for row in prof.key_averages()
}
print("ROWS" + json.dumps(rows))
"""


def test_a_real_trace_gives_torchs_own_averages(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    done = subprocess.run(
        [sys.executable, "-c", REAL, str(path)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("ROWS"))
    averages = json.loads(line.removeprefix("ROWS"))
    ours = {
        row.name: [row.calls, row.self_cpu_us, row.cpu_total_us, row.annotation]
        for row in read_operators(path)
    }
    assert set(ours) == set(averages)
    assert "aten::mean" in ours
    assert "ProfilerStep*" in ours
    for name, (calls, self_us, total_us, annotation) in averages.items():
        assert ours[name] == [
            calls,
            pytest.approx(self_us, abs=0.01),
            pytest.approx(total_us, abs=0.01),
            annotation,
        ], name
    assert [mark.number for mark in read_steps(path)] == [1, 2]

"""Tests of analyze/spans.py: nesting, self times, links and unions, worked out on paper."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.analyze.spans import Span, length, nest, union
from src.analyze.trace import read_operators

from .traces import event, kernel, mark, trace, write


def test_self_time_is_without_the_enclosed_spans() -> None:
    found = trace(
        event("aten::linear", 0, 100),
        event("aten::t", 10, 20),
        event("aten::transpose", 15, 10),
        event("aten::addmm", 40, 50),
    )
    # linear 100 - 20 - 50 = 30; t 20 - 10; transpose 10; addmm 50
    assert {s.name: s.self_ns for s in found.spans} == {
        "aten::linear": 30_000,
        "aten::t": 10_000,
        "aten::transpose": 10_000,
        "aten::addmm": 50_000,
    }
    names = {s.name: found.spans[s.parent].name for s in found.spans if s.parent is not None}
    assert names == {
        "aten::t": "aten::linear",
        "aten::transpose": "aten::t",
        "aten::addmm": "aten::linear",
    }


def test_other_threads_and_partial_overlaps_are_not_children() -> None:
    found = trace(event("a", 0, 10), event("b", 5, 10), event("c", 1, 2, tid=2), event("d", 10, 5))
    assert [s.parent for s in found.spans if s.name != "d"] == [None, None, None]
    assert {s.name: s.self_ns for s in found.spans}["a"] == 10_000


def test_self_times_agree_with_the_reader_of_the_table(tmp_path: Path) -> None:
    events = [mark(0, 0, 100), event("a", 10, 50), event("a", 20, 10), event("b", 25, 5)]
    path = write(tmp_path, *events)
    table = {row.name: row.self_cpu_us for row in read_operators(path) if not row.annotation}
    own: dict[str, float] = {}
    for span in trace(*events).spans:
        if span.is_operator:
            own[span.name] = own.get(span.name, 0.0) + span.self_ns / 1000
    assert own == table == {"a": 45.0, "b": 5.0}


def test_a_kernel_is_linked_to_the_operator_with_its_external_id() -> None:
    found = trace(
        event("a", 0, 10, **{"External id": 7}),
        event("b", 20, 10, **{"External id": 8}),
        kernel("k", 30, 5, **{"External id": 8}),
        kernel("l", 40, 5, **{"External id": 99}),
        kernel("m", 50, 5),
    )
    owners = [None if k.owner is None else found.spans[k.owner].name for k in found.kernels]
    assert owners == ["b", None, None]


def test_dispatch_rows_are_no_kernels_and_no_host_operators() -> None:
    found = trace(
        event("nrta_execute_schedule", 0, 5000, "privateuse1_runtime"),
        event("nrta_execute_schedule", 0, 5000, "privateuse1_driver"),
        event("a", 0, 10),
    )
    assert [s.name for s in found.spans] == ["a"]
    assert found.kernels == ()
    assert len(found.dispatch) == 2


def test_steps_are_half_open_and_without_marks_all_counts() -> None:
    marks = (mark(0, 10, 10), mark(1, 30, 10))
    events = [event(f"at{ts}", ts, 1) for ts in (9, 10, 19, 20, 35, 40)]
    found = trace(*marks, *events)
    inside = [s.name for s in found.spans if s.is_operator and found.inside_steps(s)]
    assert inside == ["at10", "at19", "at35"]
    assert found.steps == 2
    without = trace(*events)
    assert all(map(without.inside_steps, without.spans))
    assert without.steps == 1


def test_input_shapes_leave_out_scalars_and_open_lists_of_tensors() -> None:
    shaped = {
        "Input Dims": [[2, 8], [], [[2, 3], [4]], [8]],
        "Input type": ["c10::BFloat16", "Scalar", "TensorList", "float"],
    }
    (span,) = trace(event("aten::cat", 0, 1, **shaped)).spans
    assert span.dims == "2x8, 2x3, 4, 8"
    assert span.types == "BFloat16, TensorList, TensorList, float"
    (bare,) = trace(event("aten::cat", 0, 1)).spans
    assert (bare.dims, bare.types) == (None, None)


@pytest.mark.parametrize(
    ("top", "args"), [({"simulated": True}, {}), ({}, {"simulated": True})], ids=["file", "row"]
)
def test_a_simulated_trace_is_known_as_one(top: dict[str, bool], args: dict[str, bool]) -> None:
    assert trace(kernel("k", 0, 1, **args), **top).simulated
    assert not trace(kernel("k", 0, 1)).simulated


intervals = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 20)).map(lambda pair: (pair[0], sum(pair)))
)


@given(intervals)
def test_a_union_covers_each_moment_once(given_intervals: list[tuple[int, int]]) -> None:
    joined = union(given_intervals)
    covered = {moment for start, end in given_intervals for moment in range(start, end)}
    assert length(joined) == len(covered)
    assert all(a[1] < b[0] for a, b in pairwise(joined))


@given(intervals)
def test_self_times_of_nested_spans_add_up_to_their_union(
    given_intervals: list[tuple[int, int]],
) -> None:
    spans = [Span("a", "cpu_op", ("1", "1"), start, end) for start, end in given_intervals]
    crossing = any(a.start_ns < b.start_ns < a.end_ns < b.end_ns for a in spans for b in spans)
    own = sum(span.self_ns for span in nest(spans))
    covered = length(union((span.start_ns, span.end_ns) for span in spans))
    if not crossing:
        assert own == covered
    assert own >= covered

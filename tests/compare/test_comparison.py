"""Lining runs up: groups, baselines, axes, the grid, and what runs can look like at worst."""

from __future__ import annotations

import json
import time
from html.parser import HTMLParser

import pytest

from src.analyze import comparison_json, comparison_text, gate
from src.analyze.comparison import Comparison, axis_of, compare, grid, operators
from src.analyze.measured import Measured
from src.analyze.page import page

from .making import measured

INPUTS = ("1x128x1024", "1x2048x4096", "8x2048x4096")
TIMES = {"naive": 1000.0, "fused": 400.0, "compiled": 350.0}


def nine(device: str = "neuron", **more: object) -> list[Measured]:
    return [
        measured(variant, us * (place + 1), params={"input.shape": shape}, device=device)
        for place, shape in enumerate(INPUTS)
        for variant, us in TIMES.items()
    ]


def words(comparison: Comparison) -> list[str]:
    return [comparison_text.word(row) for row in comparison.rows]


def test_nine_runs_are_three_groups_by_size_each_with_its_naive_baseline() -> None:
    found = compare(list(reversed(nine())))
    assert [group.title for group in found.groups] == [
        f"rms_norm {shape} bfloat16 cores 0" for shape in INPUTS
    ]
    for group in found.groups:
        assert [row.label for row in group.rows] == ["naive", "fused", "compiled"]
        assert [row.baseline and row.baseline.variant for row in group.rows] == ["naive"] * 3
        assert [row.speedup for row in group.rows] == pytest.approx([1.0, 2.5, 1 / 0.35])
    assert words(found) == ["baseline", "better", "better"] * 3


def test_the_grid_has_inputs_down_and_variants_across() -> None:
    laid = grid(compare(nine()))
    assert laid is not None
    assert laid.columns == ("naive", "fused", "compiled")
    assert [name for name, _ in laid.rows] == [f"{shape} bfloat16" for shape in INPUTS]
    cell = laid.rows[2][1][1]
    assert cell is not None
    assert cell.run.device_us == 1200.0


def test_a_named_baseline_of_another_sweep_is_shown_and_meets_its_own_variant() -> None:
    before = [measured(variant, us) for variant, us in TIMES.items()]
    after = [measured(variant, us * 1.2) for variant, us in TIMES.items()]
    found = compare(after, baselines=before)
    by_id = {row.run.run_id: row for row in found.rows}
    for old, new in zip(before, after, strict=True):
        row = by_id[new.run_id]
        assert row.baseline is not None
        assert row.baseline.run_id == old.run_id
        assert row.verdict.word == "worse"


def test_one_named_baseline_stands_for_every_variant() -> None:
    base = measured("fused", 400.0)
    found = compare([measured("naive", 1000.0), measured("compiled", 350.0)], baselines=[base])
    assert {row.label: row.verdict.word for row in found.rows} == {
        "naive": "worse",
        "fused": "identical",
        "compiled": "better",
    }


def test_of_several_baselines_the_newest_that_can_be_compared_is_taken() -> None:
    old, new = measured("naive", 1000.0), measured("naive", 1100.0)
    deep = measured("naive", 1200.0, params={"profiler.modes": "DEVICE+RUNTIME"})
    failed = measured("naive", None, status="FAILED")
    run = measured("fused", 500.0)
    found = compare([run], baselines=[old, new, deep, failed])
    row = next(row for row in found.rows if row.run is run)
    assert row.baseline is new


def test_a_run_without_a_baseline_of_its_input_says_so() -> None:
    found = compare(nine()[:3], baselines=nine()[3:4])
    assert {row.verdict.reason for row in found.rows if row.baseline is None} == {
        "no baseline run for rms_norm 1x128x1024 bfloat16 cores 0"
    }


def test_before_and_after_an_upgrade_line_up_by_variant_with_their_versions() -> None:
    newer: dict[str, str | None] = {"version.torch_neuronx": "2.14.0"}
    before = [measured(variant, us) for variant, us in TIMES.items()]
    after = [measured(variant, us * 0.8, tags=newer) for variant, us in TIMES.items()]
    found = compare([*after, *before], across="sdk")
    assert len(found.groups) == 3
    for group in found.groups:
        assert [row.label for row in group.rows] == [
            "torch_neuronx 2.13.0.2.1",
            "torch_neuronx 2.14.0",
        ]
        assert [comparison_text.word(row) for row in group.rows] == ["baseline", "better"]


def test_across_cores_each_group_starts_with_the_fewest() -> None:
    runs = [
        measured(us=us, params={"cores": cores}) for us, cores in ((500.0, "0-1"), (900.0, "0"))
    ]
    found = compare(runs, across="cores")
    assert [row.label for row in found.rows] == ["cores 0", "cores 0-1"]
    assert words(found) == ["baseline", "better"]


def test_across_inputs_times_stand_side_by_side_without_a_verdict() -> None:
    found = compare(nine(), across="input")
    assert [len(group.rows) for group in found.groups] == [3, 3, 3]
    assert set(words(found)) == {"baseline", "not comparable"}
    assert "other work" in comparison_text.text(found)


@pytest.mark.parametrize(
    ("runs", "axis"),
    [
        (nine(), "variant"),
        (nine()[::3], "input"),
        ([measured(), measured(params={"cores": "0-1"})], "cores"),
        ([measured(), measured()], "variant"),
        ([], "variant"),
    ],
)
def test_the_axis_is_what_varies(runs: list[Measured], axis: str) -> None:
    assert axis_of(runs) == axis


def test_the_fastest_of_a_group_is_shown_operator_by_operator() -> None:
    found = compare(nine()[:3])
    fastest = found.groups[0].fastest()
    assert fastest is not None
    assert fastest.label == "compiled"
    assert operators(fastest)[0].after == ("Torch-Compiled Region",)


ODD = {
    "no runs": [],
    "one run": [measured()],
    "one failed run": [measured(us=None, status="FAILED")],
    "nothing known": [Measured("0" * 32, "")],
    "mixed workloads": [measured(), measured(params={"workload": "softmax"})],
    "missing metrics": [measured(), measured("fused", None)],
    "zero times": [measured(us=0.0), measured("fused", 0.0)],
    "not a number": [measured(), measured("fused", float("nan"))],
    "infinite": [measured(us=float("inf")), measured("fused", 1.0)],
    "killed": [measured(), measured("fused", 10.0, status="KILLED")],
    "no shape": [measured(params={"input.shape": None, "input.dtype": None}), measured("fused")],
    "huge names": [
        measured("v" * 5000, params={"input.shape": "9" * 3000, "workload": "w" * 3000}),
        measured("<script>alert(1)</script>|`*_[x](y)$\\", 3.0),
    ],
    "mixed devices": [measured(), measured("fused", device="simulated")],
    "simulated": nine("simulated"),
}


class Tags(HTMLParser):
    """Counts what a browser would run or draw."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)


@pytest.mark.parametrize("runs", ODD.values(), ids=ODD)
@pytest.mark.parametrize("across", ["variant", "input", "cores", "sdk"])
def test_whatever_the_store_holds_is_shown_in_every_form(runs: list[Measured], across: str) -> None:
    found = compare(runs, across=across)
    assert len(found.rows) == len(runs)
    plain, marked = comparison_text.text(found), comparison_text.markdown(found)
    assert max(map(len, plain.splitlines())) < 500
    assert "<script" not in marked
    json.dumps(comparison_json.as_data(found), allow_nan=False)
    tags = Tags(page(found, "x <b>"))
    assert tags.seen.count("script") == 2
    assert "b" not in tags.seen
    if any(run.simulated for run in runs):
        assert plain.startswith("SIMULATED")
        assert marked.startswith("SIMULATED")
        assert all("sim " in comparison_text.group_table(group).rows[0][0]
                   for group in found.groups if group.rows[0].run.simulated)  # fmt: skip
    gate.check(found, 0.05, frozenset())


def test_a_page_asks_the_network_for_nothing() -> None:
    text = page(compare(nine()), "x")
    own = text.replace(text[text.index("<script>") : text.index("</script>")], "")
    assert "http" not in own
    assert "src=" not in own
    assert text.count("Plotly.newPlot") >= 1


def test_five_hundred_runs_take_no_more_than_seconds() -> None:
    runs = [
        measured(variant, 1000.0 + n, params={"input.shape": f"{n}x64"})
        for n in range(167)
        for variant in TIMES
    ]
    runs += [measured("naive", 1000.0, params={"input.shape": "1x64"}) for _ in range(300)]
    before = time.process_time()
    found = compare(runs)
    comparison_text.text(found)
    comparison_json.as_data(found)
    assert len(found.rows) == len(runs)
    assert time.process_time() - before < 20  # a quadratic slip takes minutes


def test_the_gate_passes_what_is_within_the_limit_and_names_a_regression() -> None:
    base = measured(us=1000.0)
    for us, code in ((1020.0, 0), (1100.0, 1), (800.0, 0)):
        found = compare([measured("fused", us)], baselines=[base])
        checked = gate.check(found, 0.05, frozenset([base.run_id]))
        assert checked.code == code, checked
    found = compare([measured("fused", 1100.0)], baselines=[base])
    (line,) = gate.check(found, 0.05, frozenset([base.run_id])).lines
    assert line.startswith("regression: rms_norm fused")
    assert "10.0% slower (1,100.0 against 1,000.0 us)" in line


@pytest.mark.parametrize(
    "run",
    [
        measured("fused", 900.0, device="simulated"),
        measured("fused", None, status="FAILED"),
        measured("fused", 900.0, (1.0,)),
        measured("fused", 1090.0, (1.0, 1.3, 0.7, 1.2, 0.8)),
        measured("fused", 900.0, metrics={"fallback_operators": 1.0}),
        measured("fused", 900.0, params={"input.shape": "1x1"}),
    ],
    ids=["simulated", "failed", "one window", "too noisy", "fall-back", "other input"],
)
def test_the_gate_passes_nothing_that_it_cannot_judge(run: Measured) -> None:
    base = measured(us=1000.0)
    checked = gate.check(compare([run], baselines=[base]), 0.05, frozenset([base.run_id]))
    assert checked.code == 3, checked
    assert checked.lines[0].startswith("cannot say: ")


def test_the_gate_of_a_baseline_alone_compares_it_with_itself() -> None:
    base = measured()
    checked = gate.check(compare([base], baselines=[base]), 0.05, frozenset([base.run_id]))
    assert checked.code == 0
    assert gate.check(compare([]), 0.05, frozenset()).code == 3


def test_two_sweeps_of_an_experiment_each_keep_to_their_own_baseline() -> None:
    first, second = (
        [measured(variant, us, tags={"sweep_id": sweep}) for variant, us in TIMES.items()]
        for sweep in ("s1", "s2")
    )
    by_id = {row.run.run_id: row for row in compare([*first, *second]).rows}
    for runs in (first, second):
        for run in runs[1:]:
            assert by_id[run.run_id].baseline is runs[0]
    assert by_id[second[0].run_id].baseline is first[0]
    assert by_id[second[0].run_id].verdict.word == "identical"


def test_only_one_run_of_a_group_is_called_the_baseline() -> None:
    other = measured("naive", 900.0, params={"profiler.modes": "DEVICE+RUNTIME"})
    found = compare([measured(), other])
    assert words(found) == ["baseline", "not comparable"]
    assert "profiler.modes" in found.rows[1].verdict.reason

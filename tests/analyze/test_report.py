"""Tests of analyze/report.py: the table and report.md, from the published naive table."""

from __future__ import annotations

import dataclasses
from typing import Any

from src.analyze.check import Check
from src.analyze.health import Health
from src.analyze.operators import summarize
from src.analyze.report import markdown, table
from src.rundir import OperatorRow, Operators, Window
from src.schema import (
    CompileConfig,
    Config,
    DeviceConfig,
    InputConfig,
    ProfilerConfig,
    Spec,
    TrackingConfig,
    VariantConfig,
    WorkloadConfig,
)

# The published naive table, with one operator that has no device time.
ROWS = (
    OperatorRow("aten::mul", 3, 60.9, 60.9, 1164.5),
    OperatorRow("aten::add", 1, 26.6, 26.6, 434.6),
    OperatorRow("aten::rsqrt", 1, 15.6, 15.6, 415.0),
    OperatorRow("aten::mean", 1, 21.1, 21.1, 340.9),
    OperatorRow("aten::to", 2, 5.0, 5.0),
)
ENVIRONMENT = {
    "device": "neuron",
    "chip": None,
    "device_name": "trn2",
    "versions": {"torch": "2.13.0", "torch_neuronx": "2.13.3"},
    "path": ["not", "shown"],
}
GOOD = Health("complete", (Check("mode_files", "ok", "RUNTIME files present"),), "capture complete")


def spec(device: str = "neuron", **fields: Any) -> Spec:
    config = Config(
        workload=WorkloadConfig("rms_norm"),
        variant=VariantConfig("compiled", "naive", CompileConfig()),
        input=InputConfig("medium", [1, 2048, 4096]),
        profiler=ProfilerConfig("runtime"),
        device=DeviceConfig(device),
        tracking=TrackingConfig("local"),
    )
    return Spec(config, **fields)


def operators(*rows: OperatorRow, source: str | None = "key_averages", steps: int = 1) -> Operators:
    return Operators(source, (Window(steps, rows or ROWS, 129.2, executions=6),))


def test_the_table_looks_like_the_published_one() -> None:
    laid = table(summarize(operators()))
    assert laid.header == ("Operator", "Calls", "Self CPU (us)", "Self NEURON (us)", "% NEURON")
    assert laid.rows == (
        ("aten::mul", "3", "60.9", "1,164.5", "49.4"),  # 1164.5 / 2355.0 = 49.448 %
        ("aten::add", "1", "26.6", "434.6", "18.5"),
        ("aten::rsqrt", "1", "15.6", "415.0", "17.6"),
        ("aten::mean", "1", "21.1", "340.9", "14.5"),
        ("aten::to", "2", "5.0", "—", "—"),
    )
    assert laid.totals == ("Total on the device", "6", "124.2", "2,355.0", "100.0")
    assert laid.note == ""


def test_a_short_table_says_how_much_it_leaves_out() -> None:
    laid = table(summarize(operators()), most=2)
    assert [row[0] for row in laid.rows] == ["aten::mul", "aten::add"]
    assert laid.totals[3] == "2,355.0"
    assert laid.note == "Not listed: 3 more in summary.json."


def test_an_operator_that_seldom_ran_is_only_counted() -> None:
    once, always = Window(1, ROWS, 1.0), Window(1, ROWS[:4], 1.0)
    laid = table(summarize(Operators("key_averages", (once, always, always))))
    assert "aten::to" not in [row[0] for row in laid.rows]
    assert laid.note == "Not listed: 1 that ran in fewer than half of the windows."


def test_missing_device_time_is_a_dash_everywhere_and_never_zero() -> None:
    laid = table(summarize(operators(source=None)))
    assert {cell for row in laid.rows for cell in row[3:]} == {"—"}
    assert laid.totals == ("Total on the device", "—", "—", "—", "—")


def test_calls_that_are_no_whole_number_keep_their_fraction() -> None:
    laid = table(summarize(operators(OperatorRow("a", 1, 1.0, 1.0, 2.0), steps=4)))
    assert laid.rows[0][1] == "0.25"


def test_the_report_says_what_was_run_and_what_came_out() -> None:
    text = markdown(
        spec(overrides=("variant=compiled", "cores=0")),
        summarize(operators()),
        GOOD,
        ENVIRONMENT,
        None,
    )
    first = text.splitlines()[0]
    assert first == "# rms_norm, compiled, 1x2048x4096 bfloat16"
    for line in (
        "**capture complete**",
        "- workload: rms_norm",
        "- variant: compiled (implementation naive, torch.compile(backend=neuron))",
        "- input: 1x2048x4096 bfloat16, seed 0",
        "- device: neuron, cores 0, execution default",
        "- profiler: runtime: RUNTIME",
        "- windows: 5 of 1 step(s), after 3 calls of warm-up",
        "- typed: variant=compiled cores=0",
        "| Self NEURON (us) | 2,355.0 |",
        "| Device executions (NEFF runs) | 6 |",
        "| `aten::mul` | 3 | 60.9 | 1,164.5 | 49.4 |",
        "| Total on the device | 6 | 124.2 | 2,355.0 | 100.0 |",
        "| mode_files | ok | RUNTIME files present |",
        "- torch: 2.13.0",
        "- torch_neuronx: 2.13.3",
    ):
        assert line in text.splitlines(), line
    assert "imulated" not in text
    assert "FAILED" not in text
    assert "chip" not in text


def test_a_simulated_report_says_so_first_and_names_where_its_times_come_from() -> None:
    summary = summarize(operators(source="simulated"))
    for report in (
        markdown(spec(), summary, GOOD, ENVIRONMENT, None),
        markdown(spec(device="simulated"), None, None, None, None),
        markdown(spec(), None, None, {"device": "simulated"}, None),
        markdown(spec(device="simulated"), summary, GOOD, ENVIRONMENT, "it broke"),
    ):
        lines = report.splitlines()
        assert lines[0].startswith("# SIMULATED (simulated device")
        assert "a cost model that was fitted to one published table" in lines[2]
        assert "this computer's Python" in lines[2]
    assert "## Result per step, simulated" in markdown(spec(), summary, GOOD, None, None)


def test_a_failed_run_says_failed_and_the_reason_first() -> None:
    error = "the result is wrong\nTraceback:\n    `x` | <b>y</b>"
    for device, start in (("neuron", "# FAILED: "), ("simulated", "# SIMULATED (simulated ")):
        text = markdown(spec(device=device), None, None, None, error)
        first = text.splitlines()[0]
        assert first.startswith(start)
        assert "FAILED: the result is wrong Traceback:" in first
        assert "    Traceback:\n        `x` | <b>y</b>\n" in text  # the whole reason, as it was
    assert text.index("**FAILED**") < text.index("## What was run")


def test_a_very_long_reason_is_cut_in_the_title_and_whole_below() -> None:
    text = markdown(spec(), None, None, None, "x" * 5000)
    assert len(text.splitlines()[0]) < 200
    assert "x" * 5000 in text


def test_names_from_elsewhere_cannot_break_the_page() -> None:
    evil = "op|`a`\n<script>_b_"
    health = Health(
        "suspicious", (Check("x", "warning", "a | b\n<img> *c* `d` [e](f)"),), "capture <b>_odd_"
    )
    text = markdown(
        spec(description="<i>\n# not a heading"),
        summarize(operators(OperatorRow(evil, 1, 1.0, 1.0, 2.0))),
        health,
        {"device_name": "<u>"},
        None,
    )
    assert "| `op\\|'a' <script>_b_` | 1 | 1.0 | 2.0 | 100.0 |" in text.splitlines()
    assert "| x | warning | a \\| b &lt;img&gt; \\*c\\* \\`d\\` [e\\](f) |" in text.splitlines()
    assert "**capture &lt;b&gt;\\_odd\\_**" in text
    assert "- description: &lt;i&gt; # not a heading" in text.splitlines()
    assert "- device_name: &lt;u&gt;" in text


def test_the_spread_over_the_windows_is_told() -> None:
    hot = dataclasses.replace(ROWS[0], self_neuron_us=1264.5)
    two = Operators("key_averages", (Window(1, ROWS, 1.0), Window(1, (hot, *ROWS[1:]), 1.0)))
    text = markdown(spec(), summarize(two), GOOD, None, None)
    assert "Self NEURON ranged from 2,355.0 to 2,455.0 us over the windows." in text


def test_a_run_without_device_time_says_why_there_is_no_self_neuron() -> None:
    text = markdown(spec(), summarize(operators(source=None)), GOOD, None, "No device time.")
    assert "Source of device time: none, so there is no Self NEURON." in text
    assert "\n| Self NEURON (us) |" not in text

"""Tests of analyze/deeper.py, window.py and sections.py, with traces made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from src import rundir
from src.analyze import deeper, window
from src.analyze.operators import summarize
from src.rundir import OperatorRow, Operators, Window
from src.schema import (
    Config,
    DeviceConfig,
    InputConfig,
    ProfilerConfig,
    Spec,
    VariantConfig,
    WorkloadConfig,
)

from .traces import event, kernel, mark, write

WORK = {"bytes_moved": 72_500_000, "flops": 158_000_000, "dtype": "bfloat16", "tokens": None}


def spec(device: str = "neuron") -> Spec:
    return Spec(
        Config(
            workload=WorkloadConfig("rms_norm", ["naive", "fused"]),
            variant=VariantConfig("naive", "naive"),
            input=InputConfig("small", [1, 2, 3]),
            profiler=ProfilerConfig("runtime"),
            device=DeviceConfig(device),
        )
    )


def one_window(session: str, neuron_us: float | None, **fields: Any) -> Window:
    rows = (
        OperatorRow("aten::mul", 1, 10.0, 10.0, neuron_us),
        OperatorRow("ProfilerStep*", 1, 5.0, 100.0, None, annotation=True),
    )
    return Window(1, rows, 15.0, session_dir=session, executions=2, **fields)


def host(number: int = 0) -> list[dict[str, Any]]:
    """A step of 100 us with 30 us in operators."""
    return [mark(number, 0, 100), event("aten::mul", 20, 30, **{"External id": 1})]


def system_profile(session: Path, *times: tuple[int, int]) -> None:
    """Executions by start and end in us, on two physical cores each."""
    rows = [
        {"name": "nc_exec_running", "timestamp": start * 1000, "duration": (end - start) * 1000,
         "process_id": "1", "model_id": 1, "exec_id": number, "nc_idx": 0, "pcore": core}
        for number, (start, end) in enumerate(times)
        for core in (0, 1)
    ]  # fmt: skip
    (session / "system_profile.json").write_text(json.dumps({"trace_event": rows}))


def look(
    root: Path, *windows: Window, asked: Spec | None = None, source: str | None = "key_averages"
) -> deeper.Deeper:
    operators = Operators(source, windows)
    return deeper.examine(root, asked or spec(), operators, summarize(operators))


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """Three windows on hardware, as neuron-explorer tells them."""
    for number, end in enumerate((900, 1000, 1300)):
        session = tmp_path / "profile" / f"s{number}"
        write(session, *host(number))
        system_profile(session, (0, 300), (end - 300, end))
    rundir.write_json(tmp_path / "work.json", WORK)
    rundir.write_json(tmp_path / "environment.json", {"device": "neuron", "chip": "trn2", "lnc": 2})
    return tmp_path


THREE = tuple(one_window(f"s{number}", us) for number, us in enumerate((590.0, 600.0, 640.0)))


def test_metrics_are_medians_of_books_that_balance(measured: Path) -> None:
    found = look(measured, *THREE).metrics
    assert found == {
        # spans 900, 1000, 1300; 600 busy in each; residuals -10, 0, 40; one gap a window
        "window/span_us": 1000.0,
        "window/busy_us": 600.0,
        "window/idle_us": 400.0,
        "window/residual_us": 0.0,
        "window/longest_gap_us": 400.0,
        "window/host_span_us": 100.0,
        "window/host_operators_us": 30.0,
        "window/host_outside_us": 70.0,
        "roofline/intensity_flops_per_byte": pytest.approx(158 / 72.5),
        "roofline/floor_us": 100.0,  # 72.5 MB at 725 GB/s, against 1 us of arithmetic
        "roofline/attained_fraction": pytest.approx(1 / 6),
        "spread/self_neuron_us_min": 590.0,
        "spread/self_neuron_us_max": 640.0,
        # mean 610, deviation sqrt(700), t(0.975, 2) = 4.303
        "spread/self_neuron_us_ci95_low": pytest.approx(610 - 65.73, abs=0.01),
        "spread/self_neuron_us_ci95_high": pytest.approx(610 + 65.73, abs=0.01),
    }


def test_the_files_show_the_median_window(measured: Path) -> None:
    look(measured, *THREE)
    tables = rundir.read_json(measured / "tables.json")
    assert (tables["window"], tables["windows_read"], tables["device"]) == (1, 3, "neuron")
    assert tables["device_book"]["span_us"] == 1000.0
    assert tables["host_book"]["outside_us"] == 70.0
    assert tables["by_operator_and_shape"][0]["operator"] == "aten::mul"
    limit = rundir.read_json(measured / "roofline.json")
    assert limit["bound"]["label"] == "dispatch-bound"  # 2 x 340 us for 600 us
    assert limit["chip"]["assumed"] is False
    assert limit["attained_fraction_of"] == "Self NEURON"
    picture = (measured / "timeline.svg").read_text()
    assert "SIMULATED" not in picture
    assert ElementTree.fromstring(picture).attrib["width"] == "1200"


def test_the_trace_is_not_touched(measured: Path) -> None:
    before = {path: path.read_bytes() for path in measured.rglob("trace.json")}
    look(measured, *THREE)
    assert {path: path.read_bytes() for path in measured.rglob("trace.json")} == before


def test_the_report_names_the_hot_operator_its_bound_and_what_to_try(measured: Path) -> None:
    text = "\n".join(look(measured, *THREE).sections)
    assert "![Host operators and device executions](timeline.svg)" in text
    assert "| **= span: first start to last end** | **1,000.0** |" in text
    assert "1 gap in 1 step, the longest 400.0 us" in text
    assert "| Floor as a part of Self NEURON | 16.7% |" in text
    assert "| `aten::mul` | 100 % | dispatch-bound |" in text
    assert "variant=fused" in text
    assert "simulated" not in text.lower()


def simulated_run(root: Path) -> Path:
    session = root / "profile" / "s0"
    rows = [
        {"name": "nc_exec_running", "nc_idx": 0, "start_ns": start, "duration_ns": 400_000,
         "exec_id": start, "flow_id": start, "model_id": 1, "operator": "graph"}
        for start in (0, 400_000)
    ]  # fmt: skip
    write(session, *host(), kernel("k", 70, 400, simulated=True, model_id=1), simulated=True)
    (session / "ntrace.pb.simulated.json").write_text(json.dumps({"events": rows}))
    rundir.write_json(root / "work.json", WORK)
    rundir.write_json(root / "environment.json", {"device": "simulated", "chip": None, "lnc": None})
    return root


def test_a_simulated_run_has_the_models_clock_the_word_and_no_advice(tmp_path: Path) -> None:
    found = look(simulated_run(tmp_path), one_window("s0", 800.0), source="simulated")
    # On the model's clock the two executions follow each other; the host's 100 us are not in it.
    assert (found.metrics["window/span_us"], found.metrics["window/idle_us"]) == (800.0, 0.0)
    assert found.metrics["window/host_span_us"] == 100.0
    assert found.metrics["roofline/attained_fraction"] == 100 / 800
    assert not any(key.startswith("spread/") for key in found.metrics)  # one window
    assert (tmp_path / "timeline.svg").read_text().count(">SIMULATED<") == 2
    limit = rundir.read_json(tmp_path / "roofline.json")
    assert (limit["bound"], limit["dispatch"]) == (None, None)
    assert (limit["device"], limit["attained_fraction_of"]) == ("simulated", "simulated time")
    tables = rundir.read_json(tmp_path / "tables.json")
    assert {row["device"] for row in tables["by_operator_and_shape"]} == {"simulated"}
    titles = [part.splitlines()[0] for part in found.sections]
    assert all(title.endswith(", simulated") for title in titles[:-1])
    assert found.sections[-1].startswith("## What would help next\n\nNone: the device time is")
    assert "assumed" in found.sections[-2]
    assert "variant=" not in "".join(found.sections)


def test_a_simulated_run_without_device_time_is_still_simulated(tmp_path: Path) -> None:
    found = look(simulated_run(tmp_path), one_window("s0", None), source=None)
    assert ">SIMULATED<" in (tmp_path / "timeline.svg").read_text()
    assert "window/residual_us" not in found.metrics
    assert "roofline/attained_fraction" not in found.metrics


def test_without_start_times_the_device_has_no_book_and_the_host_has(tmp_path: Path) -> None:
    dispatch = event("nrta_execute_schedule", 0, 5000, "privateuse1_driver", exec_id=1)
    write(tmp_path / "profile" / "s0", *host(), dispatch)
    found = look(tmp_path, one_window("s0", 600.0))
    assert set(found.metrics) == {
        "window/host_span_us",
        "window/host_operators_us",
        "window/host_outside_us",
    }
    assert "The device's book is missing" in "".join(found.sections)
    assert "not known when" in (tmp_path / "timeline.svg").read_text()
    assert not (tmp_path / "roofline.json").exists()  # nobody says what the work is


@pytest.mark.parametrize(("length", "accepted"), [(600, True), (631, True), (640, False)])
def test_kernel_rows_count_only_when_they_add_up_to_self_neuron(
    tmp_path: Path, length: float, accepted: bool
) -> None:
    row = kernel("neff", 60, length, exec_id=1, **{"External id": 1})
    write(tmp_path / "profile" / "s0", *host(), row)
    found = look(tmp_path, one_window("s0", 601.0))
    assert ("window/busy_us" in found.metrics) == accepted
    assert ("one clock for both" in (tmp_path / "timeline.svg").read_text()) == accepted


def test_missing_and_broken_traces_are_passed_over(measured: Path) -> None:
    (measured / "profile" / "s0" / "trace.json").unlink()
    (measured / "profile" / "s1" / "trace.json").write_text("{")
    windows = (*THREE, one_window("gone", 1.0), Window(1, (), 0.0))
    assert look(measured, *windows).metrics["window/span_us"] == 1300.0


def test_a_run_without_any_profile_still_has_its_roofline(tmp_path: Path) -> None:
    rundir.write_json(tmp_path / "work.json", WORK)
    found = look(tmp_path, one_window("gone", 600.0))
    assert found.metrics["roofline/floor_us"] == 100.0
    assert "assumed" in "".join(found.sections)
    assert not (tmp_path / "timeline.svg").exists()


def test_reading_stops_at_the_budget(measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (measured / "profile" / "s0" / "trace.json").stat().st_size
    monkeypatch.setattr(window, "MOST_BYTES", 2 * size + 10)
    look(measured, *THREE)
    assert rundir.read_json(measured / "tables.json")["windows_read"] == 2
    monkeypatch.setattr(window, "MOST_BYTES", 1)
    look(measured, *THREE)
    assert rundir.read_json(measured / "tables.json")["windows_read"] == 1
    monkeypatch.setattr(window, "LARGEST_BYTES", 1)
    assert not any("window/" in key for key in look(measured, *THREE).metrics)


def test_engine_metrics_of_neuron_explorer_go_before_the_model(measured: Path) -> None:
    engines = {"engine/tensor_active_fraction": 0.1, "engine/dma_active_fraction": 0.7}
    rundir.write_json(measured / rundir.EXPLORER, {"engines": engines})
    text = "".join(look(measured, *THREE).sections)
    assert "**memory-bound** (engine metrics): TensorE 10%, DMA or HBM 70% of the time." in text


def test_a_total_without_operators_is_said_to_be_one(measured: Path) -> None:
    windows = [
        Window(1, (), 15.0, session_dir="s0", executions=2, self_neuron_by_core_us={"0": 600.0})
    ]
    text = look(measured, *windows, source="neuron_explorer").sections[-1]
    assert "The device time is known as a total only." in text
    assert "2 device executions at about 340 us" in text


def test_there_are_few_metrics(measured: Path) -> None:
    assert len(look(measured, *THREE).metrics) <= 15

"""NeuronConfig's parameters do what is published, through the real torch.profiler."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity

from src.measure.simulator.profiling import NeuronConfig, NeuronProfiler, ProfileMode

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]


def _double() -> torch.Tensor:
    return torch.ones(4, device="neuron") * 2


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _load(folder: Path, name: str) -> dict[str, Any]:
    content = json.loads((folder / f"{name}.simulated.json").read_text())
    assert content["simulated"] is True
    return content  # type: ignore[no-any-return]


RUNTIME_FILES = {"trace_info.pb.simulated.json", "ntrace.pb.simulated.json"}


@pytest.mark.parametrize(
    ("modes", "files"),
    [
        ([ProfileMode.RUNTIME], RUNTIME_FILES),
        ([ProfileMode.CPU_UTIL], {"cpu_util.pb.simulated.json"}),
        ([ProfileMode.HOST_MEMORY], {"host_mem.pb.simulated.json"}),
        (
            [ProfileMode.RUNTIME, ProfileMode.CPU_UTIL],
            RUNTIME_FILES | {"cpu_util.pb.simulated.json"},
        ),
    ],
)
def test_the_modes_decide_which_files_appear(record: Any, modes: Any, files: set[str]) -> None:
    assert _names(record(_double, modes=modes).folder) == files | {"trace.json"}


def test_the_device_mode_leaves_a_neff_and_an_ntff_and_nothing_pretends_to_be_binary(
    record: Any,
) -> None:
    made = record(lambda: torch.ones(5, 3, device="neuron").cos(), modes=[ProfileMode.DEVICE])
    names = _names(made.folder)
    assert "profile_nc_0_session_1.ntff.simulated.json" in names
    assert sum(".neff." in name for name in names) == 2
    assert "ntrace.pb.simulated.json" not in names
    for name in names - {"trace.json"}:
        assert name.endswith(".simulated.json")
        assert json.loads((made.folder / name).read_text())["simulated"] is True
    assert made.rows().keys() == {"aten::ones", "aten::cos"}


def test_the_folder_has_the_published_layout(record: Any, tmp_path: Path) -> None:
    folder = record(_double, profile_output_dir=str(tmp_path / "out")).folder
    assert folder.parent.name == f"i-simulated_pid_{os.getpid()}"
    assert folder.parent.parent == tmp_path / "out"
    assert folder.name.isdigit()
    assert int(folder.name) > 10**18


def test_every_session_of_a_process_has_a_folder_of_its_own(record: Any, tmp_path: Path) -> None:
    for count in (1, 2, 3):
        assert len(record(_double, profile_output_dir=str(tmp_path / "out")).folders) == count


def test_the_ntrace_holds_the_executions_on_the_models_clock(record: Any) -> None:
    def work() -> None:
        x = torch.ones(1000, device="neuron")
        (x * x).cpu()

    events = _load(record(work).folder, "ntrace.pb")["events"]
    first, second, read = events
    assert [event["name"] for event in events] == [
        "nc_exec_running",
        "nc_exec_running",
        "nrt_tensor_read",
    ]
    assert (first["operator"], second["operator"]) == ("aten::ones", "aten::mul")
    assert second["start_ns"] == first["start_ns"] + first["duration_ns"]
    assert second["exec_id"] == first["exec_id"] + 1
    assert first["model_id"] != second["model_id"]
    assert first["nc_idx"] == 0
    assert "flow_id" in first
    # 4000 bytes in, 4000 out, at 1e12 bytes/s, after a dispatch of 100 us
    assert second["duration_ns"] == 100_008
    assert read["bytes"] == 4000
    assert "duration_ns" not in read


def test_only_captured_cores_are_recorded(record: Any, tmp_path: Path) -> None:
    def work() -> None:
        for index in (0, 1):
            torch.ones(8, device=f"neuron:{index}").mul_(2)
            torch.neuron.synchronize(index)

    both = record(work, profile_output_dir=str(tmp_path / "both"))
    one = record(work, capture_enabled_for_nc="3", profile_output_dir=str(tmp_path / "one"))
    none = record(work, capture_enabled_for_nc="1,5-7", profile_output_dir=str(tmp_path / "none"))
    cores = [
        {event["nc_idx"] for event in _load(made.folder, "ntrace.pb")["events"]}
        for made in (both, one, none)
    ]
    assert cores == [{0, 3}, {3}, set()]
    assert [made.rows().get("aten::mul_", (0, 0.0))[1] > 0 for made in (both, one, none)] == [
        True,
        True,
        False,
    ]
    assert both.rows()["aten::mul_"][1] == pytest.approx(2 * one.rows()["aten::mul_"][1])


def test_a_full_ring_drops_the_oldest_and_says_so(record: Any) -> None:
    def work() -> None:
        x = torch.ones(8, device="neuron")
        for _ in range(5):
            x = x.sin()
        x.cos()

    with pytest.warns(UserWarning, match=r"^4 trace events were dropped"):
        made = record(work, max_events_per_nc=3)
    trace = _load(made.folder, "ntrace.pb")
    assert [event["operator"] for event in trace["events"]] == [
        "aten::sin",
        "aten::sin",
        "aten::cos",
    ]
    assert trace["dropped"] == 4
    assert made.rows()["aten::sin"] == (5, pytest.approx(2 * 100.0, rel=1e-3))


def test_a_session_without_an_exporter_still_leaves_its_files_and_its_table(record: Any) -> None:
    made = record(_double, exporter=False)
    assert _names(made.folder) == RUNTIME_FILES
    assert made.rows().keys() == {"aten::ones", "aten::mul"}


def test_without_the_privateuse1_activity_there_is_no_session(record: Any, tmp_path: Path) -> None:
    made = record(_double, exporter=False, profiler={"activities": [ProfilerActivity.CPU]})
    assert made.folders == []


def test_a_warm_program_leaves_a_neff_only_with_a_cache(record: Any, tmp_path: Path) -> None:
    x = torch.ones(7, 11, device="neuron")
    program = torch.compile(lambda x: x * 3 + 1, backend="neuron", fullgraph=True, dynamic=False)
    program(x)
    bare = record(
        lambda: program(x), modes=[ProfileMode.DEVICE], profile_output_dir=str(tmp_path / "a")
    )
    assert not list(bare.folder.glob("*.neff*"))
    assert list(bare.folder.glob("*.ntff*"))
    cache = tmp_path / "cache"
    kept = record(
        lambda: program(x),
        modes=[ProfileMode.DEVICE],
        profile_output_dir=str(tmp_path / "b"),
        neff_cache_dir=str(cache),
    )
    (neff,) = kept.folder.glob("neff_*_vnc_0.neff.simulated.json")
    (cached,) = cache.iterdir()
    assert neff.read_bytes() == cached.read_bytes()
    assert json.loads(neff.read_text())["kind"] == "graph"


def test_a_compile_leaves_its_neff_in_the_cache_that_the_environment_names(tmp_path: Path) -> None:
    x = torch.ones(13, device="neuron")
    os.environ["TORCH_NEURONX_NEFF_CACHE_DIR"] = str(tmp_path)
    program = torch.compile(lambda x: x * 5 - 3, backend="neuron", fullgraph=True, dynamic=False)
    program(x)
    (cached,) = tmp_path.iterdir()
    assert cached.name.startswith("neff_")
    assert cached.name.endswith(".neff.simulated.json")


def test_the_first_call_of_an_eager_operator_leaves_its_neff_and_the_next_none(
    tmp_path: Path,
) -> None:
    x = torch.ones(21, device="neuron")
    os.environ["TORCH_NEURONX_NEFF_CACHE_DIR"] = str(tmp_path)
    for _ in range(2):
        torch.tan(x)
        assert len(list(tmp_path.iterdir())) == 1


def test_a_compile_inside_the_window_is_told_from_one_before_it(
    record: Any, tmp_path: Path
) -> None:
    program = torch.compile(lambda x: x * 7 - 9, backend="neuron", fullgraph=True, dynamic=False)
    x = torch.ones(17, device="neuron")
    graphs = []
    for name in ("cold", "warm"):
        folder = record(lambda: program(x), profile_output_dir=str(tmp_path / name)).folder
        graphs += [
            model for model in _load(folder, "trace_info.pb")["models"] if model["kind"] == "graph"
        ]
    assert [graph["compiled_in_window"] for graph in graphs] == [True, False]


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"capture_enabled_for_nc": [0, 1]}, TypeError, "give a string"),
        ({"capture_enabled_for_nc": "0;1"}, ValueError, "0,2-5"),
        ({"capture_enabled_for_nc": "3-1"}, ValueError, "0,2-5"),
        ({"modes": ["RUNTIME"]}, TypeError, "ProfileMode"),
        ({"modes": []}, TypeError, "ProfileMode"),
        ({"max_events_per_nc": 0}, ValueError, "at least 1"),
        ({"max_events_per_nc": "many"}, TypeError, "whole number"),
        ({"profile_output_dir": 3}, TypeError, "string"),
        ({"unknown": 1}, TypeError, "unexpected keyword"),
    ],
)
def test_a_wrong_parameter_is_refused(
    wrong: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        NeuronConfig(**wrong)


def test_the_parameters_are_the_published_ones_and_keyword_only() -> None:
    import inspect

    parameters = inspect.signature(NeuronConfig).parameters
    published = "modes max_events_per_nc capture_enabled_for_nc profile_output_dir neff_cache_dir"
    assert list(parameters) == [*published.split(), "precache_node_info", "correlate_device_time"]
    assert {parameter.kind for parameter in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    config = NeuronConfig()
    assert isinstance(config, torch._C._profiler._ExperimentalConfig)
    assert config.modes == (ProfileMode.DEVICE, ProfileMode.RUNTIME)
    assert config.max_events_per_nc == 1_000_000
    assert config.precache_node_info is True


def test_a_folder_that_cannot_be_written_does_not_take_the_program_down(
    record: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = record(_double, exporter=False, profile_output_dir=str(tmp_path / "file"))
    assert made.rows().keys() == {"aten::ones", "aten::mul"}
    assert any("could not be written" in str(one.message) for one in caught)


def test_exporting_a_profile_without_a_session_says_what_is_missing() -> None:
    exporter = NeuronProfiler(NeuronConfig())
    with torch.profiler.profile(activities=BOTH) as prof:
        pass
    with pytest.raises(RuntimeError, match="experimental_config"):
        exporter.export_trace(prof)

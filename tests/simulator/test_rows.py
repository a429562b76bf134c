"""Device time in the rows and the trace: whose it is, and when it is visible."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity

from src.measure.simulator.profiling import NeuronConfig, NeuronProfiler, ProfileMode

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]


def _double() -> torch.Tensor:
    return torch.ones(4, device="neuron") * 2


def _load(folder: Path, name: str) -> dict[str, Any]:
    content = json.loads((folder / f"{name}.simulated.json").read_text())
    assert content["simulated"] is True
    return content  # type: ignore[no-any-return]


def test_nothing_is_visible_before_synchronize(record: Any) -> None:
    made = record(_double, synchronize=False)
    assert _load(made.folder, "ntrace.pb")["events"] == []
    assert made.rows() == {}
    assert {row.key for row in made.prof.key_averages()} >= {"aten::ones", "aten::mul"}


def test_what_is_launched_after_the_last_synchronize_stays_invisible(record: Any) -> None:
    def work() -> None:
        torch.ones(3, device="neuron")
        torch.neuron.synchronize()
        torch.ones(3, device="neuron").mul(2)

    assert record(work, synchronize=False).rows() == {
        "aten::ones": (2, pytest.approx(100.0, rel=1e-3))
    }


def test_work_from_before_the_window_is_not_in_it(record: Any) -> None:
    torch.ones(3, device="neuron").exp()
    assert record(_double).rows().keys() == {"aten::ones", "aten::mul"}


def test_without_correlation_neither_table_nor_trace_has_device_time(record: Any) -> None:
    made = record(_double, correlate_device_time=False)
    assert made.rows() == {}
    assert len(_load(made.folder, "ntrace.pb")["events"]) == 2
    trace = json.loads((made.folder / "trace.json").read_text())
    assert not [event for event in trace["traceEvents"] if event.get("cat") == "kernel"]


def test_the_table_has_self_neuron_columns_and_a_total(record: Any) -> None:
    table = record(_double).prof.key_averages().table()
    assert "Self NEURON" in table
    assert "Self NEURON time total: 200.0" in table
    assert "simulated neuron execution" not in table


def test_the_exported_trace_agrees_with_the_table(record: Any) -> None:
    def work() -> None:
        x = torch.ones(64, 64, device="neuron")
        torch.nn.functional.linear(x, x)
        x.softmax(-1)

    made = record(work)
    events = json.loads((made.folder / "trace.json").read_text())["traceEvents"]
    assert not [event for event in events if "simulated neuron execution" in str(event.get("name"))]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    per_operator: dict[str, float] = {}
    for kernel in kernels:
        assert kernel["args"]["simulated"] is True
        owner = kernel["args"]["operator"]
        per_operator[owner] = per_operator.get(owner, 0.0) + kernel["dur"]
        (row,) = [
            event
            for event in events
            if event.get("cat") == "cpu_op"
            and event["args"]["External id"] == kernel["args"]["External id"]
        ]
        assert row["name"] == owner
    assert per_operator == {name: pytest.approx(time) for name, (_, time) in made.rows().items()}


@pytest.mark.parametrize("python_export", [False, True])
def test_a_trace_that_is_exported_by_hand_is_rewritten_too(
    record: Any, tmp_path: Path, python_export: bool
) -> None:
    path = tmp_path / "mine.json.gz"
    made = record(_double, exporter=False)
    made.prof.export_chrome_trace(str(path), use_python_export=python_export)
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    assert sum(event.get("cat") == "kernel" for event in events) == 2
    assert not [event for event in events if "neuron execution" in str(event.get("name"))]


def test_device_time_belongs_to_the_innermost_row(record: Any) -> None:
    x = torch.ones(8, 8, device="neuron")
    made = record(lambda: torch.nn.functional.linear(x, x, x[0]))
    assert made.rows().keys() == {"aten::addmm"}
    (outer,) = [row for row in made.prof.key_averages() if row.key == "aten::linear"]
    assert outer.self_device_time_total == 0
    assert outer.device_time_total == pytest.approx(made.rows()["aten::addmm"][1])


def test_steps_and_a_schedule_give_one_folder_a_cycle_and_keep_their_rows(tmp_path: Path) -> None:
    seen = []

    def work() -> None:
        for _ in range(6):
            _double()
            torch.neuron.synchronize()
            made_by.step()

    schedule = torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=2)
    config = NeuronConfig(
        modes=[ProfileMode.RUNTIME],
        correlate_device_time=True,
        profile_output_dir=str(tmp_path / "cycles"),
    )
    exporter = NeuronProfiler(config)

    def ready(prof: Any) -> None:
        exporter.export_trace(prof)
        seen.append(
            {row.key: row.count for row in prof.key_averages() if row.self_device_time_total}
        )

    with torch.profiler.profile(
        activities=BOTH, experimental_config=config, schedule=schedule, on_trace_ready=ready
    ) as made_by:
        work()
    folders = sorted((tmp_path / "cycles").glob("*/*"))
    assert len(folders) == 2
    assert seen == [{"aten::ones": 2, "aten::mul": 2}] * 2
    for folder in folders:
        names = [
            event.get("name")
            for event in json.loads((folder / "trace.json").read_text())["traceEvents"]
        ]
        assert sum(str(name).startswith("ProfilerStep#") for name in names) >= 2
        assert len(_load(folder, "ntrace.pb")["events"]) == 4


@pytest.mark.parametrize(
    "arguments",
    [
        {"with_stack": True, "record_shapes": True},
        {"profile_memory": True, "with_flops": True},
        {"with_modules": True, "acc_events": True},
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_torch_profilers_own_arguments_work(record: Any, arguments: dict[str, Any]) -> None:
    made = record(_double, profiler=arguments)
    assert made.rows() == {
        "aten::ones": (1, pytest.approx(100.0, rel=1e-3)),
        "aten::mul": (1, pytest.approx(100.0, rel=1e-3)),
    }
    assert (made.folder / "trace.json").exists()


def test_accumulated_cycles_keep_the_device_time_of_each(tmp_path: Path) -> None:
    config = NeuronConfig(
        modes=[ProfileMode.RUNTIME], correlate_device_time=True, profile_output_dir=str(tmp_path)
    )
    with torch.profiler.profile(
        activities=BOTH,
        experimental_config=config,
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=3),
        acc_events=True,
    ) as prof:
        for _ in range(6):
            _double()
            torch.neuron.synchronize()
            prof.step()
    (row,) = [one for one in prof.key_averages() if one.key == "aten::mul"]
    assert (row.count, row.self_device_time_total) == (3, pytest.approx(300.0, rel=1e-3))


def test_a_compiled_training_step_is_two_executions(record: Any) -> None:
    weight = torch.ones(8, 8, device="neuron", requires_grad=True)
    x = torch.ones(4, 8, device="neuron")

    def loss(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x, weight).relu().sum()

    program = torch.compile(loss, backend="neuron", fullgraph=True, dynamic=False)
    program(x, weight).backward()
    rows = record(lambda: program(x, weight).backward()).rows()
    assert rows["Torch-Compiled Region: 0/0"][0] == 1
    assert rows["CompiledFunctionBackward"][0] == 1
    assert not rows.keys() & {"aten::mm", "aten::linear", "aten::relu"}


def test_a_plain_profile_is_left_alone(tmp_path: Path) -> None:
    with torch.profiler.profile(activities=BOTH) as prof:
        _double()
        torch.neuron.synchronize()
    assert not [row for row in prof.key_averages() if row.self_device_time_total]
    assert {row.key for row in prof.key_averages()} >= {"aten::ones", "aten::mul"}


def test_an_exception_in_the_window_leaves_what_was_synchronized(
    record: Any, tmp_path: Path
) -> None:
    def work() -> None:
        _double()
        torch.neuron.synchronize()
        raise KeyError("planned")

    with pytest.raises(KeyError, match="planned"):
        record(work)
    (folder,) = (tmp_path / "profile").glob("*/*")
    assert len(_load(folder, "ntrace.pb")["events"]) == 2
    assert (folder / "trace.json").exists()
    assert len(record(_double).folders) == 2  # and the next session works


SCRIPT = """
import sys; sys.path.insert(0, {root!r})
import torch
from src.measure.simulator import CostModel, install
from src.measure.simulator.profiling import NeuronConfig, ProfileMode
install(CostModel(10.0, 1e11, {{"float32": 1e12}}, 1e11))
where = {{"modes": [ProfileMode.RUNTIME], "profile_output_dir": sys.argv[1]}}
c = NeuronConfig(correlate_device_time=True, **where)
g = lambda x: (x @ x).softmax(-1)
f = torch.compile(g, backend="neuron", fullgraph=True, dynamic=False)
x = torch.ones(32, 32, device="neuron")
f(x)
A = torch.profiler.ProfilerActivity
with torch.profiler.profile(activities=[A.CPU, A.PrivateUse1], experimental_config=c) as prof:
    f(x); g(x); torch.neuron.synchronize()
rows = [(r.key, r.count, r.self_device_time_total) for r in prof.key_averages()]
print(sorted(row for row in rows if row[2]))
"""


@pytest.mark.slow
def test_device_time_is_the_same_in_every_process(tmp_path: Path) -> None:
    script = SCRIPT.format(root=str(Path(__file__).parents[2]))
    outputs, hashes = [], []
    for name in ("a", "b"):
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / name)],
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(done.stdout.splitlines()[-1])
        (info,) = (tmp_path / name).rglob("trace_info.pb.simulated.json")
        hashes.append([model["hash"] for model in json.loads(info.read_text())["models"]])
    assert outputs[0] == outputs[1]
    assert "Torch-Compiled Region: 0/0" in outputs[0]
    assert hashes[0] == hashes[1]

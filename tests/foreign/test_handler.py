"""docs/examples/neuron_handler.py in scripts that are not as tidy as the example."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from src import rundir
from src.track import foreign
from tests import running
from tests.foreign.conftest import EXAMPLES, run_script

HANDLER = EXAMPLES / "neuron_handler.py"
HEAD = f"""
import sys, torch
sys.path.insert(0, {str(EXAMPLES)!r})
from neuron_handler import saving
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler
out = sys.argv[1]
x = torch.randn(16, 16)
"""
CPU = "activities=[ProfilerActivity.CPU]"


def run_plain(code: str, out: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A script on a computer without any Neuron device."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + code, str(out)],
        env=running.environment(**variables),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done


def tables(out: Path) -> list[rundir.Operators]:
    folders = sorted(path.parent for path in out.rglob("operators.json"))
    found = [rundir.read_operators(folder) for folder in folders]
    return [one for one in found if one is not None]


def test_it_needs_nothing_but_torch_and_is_small() -> None:
    tree = ast.parse(HANDLER.read_text())
    modules = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert modules <= {*sys.stdlib_module_names, "torch"}
    assert len(HANDLER.read_text().splitlines()) <= 120


def test_without_a_handler_of_its_own_the_trace_is_exported(tmp_path: Path) -> None:
    code = f"""
with profile({CPU}, on_trace_ready=saving(None, out, correlate_device_time=True, steps=4)):
    for _ in range(4):
        x @ x
"""
    run_plain(code, tmp_path / "out")
    (table,) = tables(tmp_path / "out")
    assert table.windows[0].steps == 4
    assert len(list((tmp_path / "out").rglob("trace.json"))) == 1


def test_a_computer_without_neuron_has_no_self_neuron(tmp_path: Path) -> None:
    handler = "saving(None, out, correlate_device_time=True)"
    run_plain(f"\nwith profile({CPU}, on_trace_ready={handler}):\n    x @ x\n", tmp_path / "out")
    (table,) = tables(tmp_path / "out")
    assert table.device_time_source is None
    found = foreign.read(tmp_path / "out")
    assert found is not None
    assert found.device is None


def test_each_cycle_of_a_schedule_is_a_window_of_its_own(tmp_path: Path) -> None:
    code = f"""
steps = schedule(wait=1, warmup=1, active=3, repeat=2)
handler = saving(tensorboard_trace_handler(out), out, correlate_device_time=False)
with profile({CPU}, schedule=steps, on_trace_ready=handler) as prof:
    for _ in range(10):
        x @ x
        prof.step()
"""
    run_plain(code, tmp_path / "out")
    found = foreign.read(tmp_path / "out")
    assert found is not None
    assert [window.steps for window in found.operators.windows] == [3, 3]
    calls = [
        {row.name: row.calls for row in window.operators} for window in found.operators.windows
    ]
    assert [call["aten::mm"] for call in calls] == [3, 3]


def test_an_error_inside_it_does_not_stop_the_script(tmp_path: Path) -> None:
    blocked = tmp_path / "out"
    blocked.write_text("a file where the folder should be")
    code = f"""
with profile({CPU}, on_trace_ready=saving(None, out, correlate_device_time=True)):
    x @ x
print("went on")
"""
    done = run_plain(code, blocked)
    assert "went on" in done.stdout
    assert "Traceback" in done.stderr


def test_without_the_correlation_device_time_is_not_lawful(tmp_path: Path) -> None:
    script = tmp_path / "profile_mlp.py"
    text = (EXAMPLES / "profile_mlp.py").read_text()
    script.write_text(
        text.replace("correlate_device_time=True)  # added", "correlate_device_time=False)")
    )
    (tmp_path / "neuron_handler.py").write_text(HANDLER.read_text())
    run_script(script, str(tmp_path / "out"))
    found = tables(tmp_path / "out")
    assert len(found) == 3
    assert {table.device_time_source for table in found} == {None}


@pytest.mark.parametrize("rank", ["0", "3"])
def test_the_rank_is_noted(rank: str, tmp_path: Path) -> None:
    handler = "saving(None, out, correlate_device_time=False)"
    code = f"\nwith profile({CPU}, on_trace_ready={handler}):\n    x @ x\n"
    run_plain(code, tmp_path / "out", RANK=rank)
    (path,) = (tmp_path / "out").rglob("environment.json")
    assert json.loads(path.read_text())["rank"] == rank

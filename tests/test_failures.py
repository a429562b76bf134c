"""What is left when a run cannot come to its end: the status, the reason, the files."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from src import rundir

from . import running

SLOW_STEP = ("variant=naive", "input=large", "profiler.repeats=3")  # each stage takes a while
STAGES = {
    "ready": "device ready",
    "compiling": "first call",
    "warming_up": "warming up",
    "profiling": "profiling window 1",
}


def wait_for(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"{words!r} was never said")


def only_run(root: Path) -> Any:
    (run,) = running.tracked(root)
    return run


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_child_killed_in_any_stage_leaves_a_failed_run(stage: str, tmp_path: Path) -> None:
    root = tmp_path / "mlruns"
    process = running.start(root, *SLOW_STEP)
    wait_for(process, STAGES[stage])
    child = running.only_child(process.pid)
    assert child is not None
    os.kill(child, signal.SIGKILL)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "SIGKILL" in said
    assert "Traceback" not in said
    run = only_run(root)
    assert run.info.status == "FAILED"
    assert "SIGKILL" in run.data.tags["error"]
    assert "self_neuron_us" not in run.data.metrics
    directory = running.artifacts(run)
    assert "SIGKILL" in (directory / rundir.ERROR).read_text()
    assert {rundir.SPEC, rundir.ENVIRONMENT, rundir.CHILD_LOG} <= {
        path.name for path in directory.iterdir()
    }
    assert list((root / "pending").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["compiling", "profiling"])
def test_a_killed_parent_takes_its_child_along_and_the_next_run_closes_its_run(
    stage: str, tmp_path: Path
) -> None:
    root = tmp_path / "mlruns"
    process = running.start(root, *SLOW_STEP)
    wait_for(process, STAGES[stage])
    if stage == "compiling":
        wait_for(process, STAGES["warming_up"])  # the run is open by then
    child = running.only_child(process.pid)
    assert child is not None
    process.kill()
    process.communicate()
    for _ in range(300):
        if not Path(f"/proc/{child}").exists():
            break
        time.sleep(0.1)
    else:
        raise AssertionError("the child outlived its parent")
    assert only_run(root).info.status == "RUNNING"
    assert running.run(root, "input=small").returncode == 0
    abandoned, finished = running.tracked(root)
    assert abandoned.info.status == "FAILED"
    assert "python -m src.ingest" in abandoned.data.tags["error"]
    assert finished.info.status == "FINISHED"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_run_that_is_stopped_is_killed_and_keeps_its_files(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    root = tmp_path / "mlruns"
    process = running.start(root, *SLOW_STEP)
    wait_for(process, STAGES["profiling"])
    child = running.only_child(process.pid)
    process.send_signal(number)
    out, said = process.communicate(timeout=120)
    assert process.returncode == code
    assert "Traceback" not in out + said
    run = only_run(root)
    assert run.info.status == "KILLED"
    assert run.data.metrics == {}
    assert (running.artifacts(run) / rundir.SPEC).is_file()
    assert not Path(f"/proc/{child}").exists()


def test_a_wrong_implementation_is_failed_and_has_no_timing(tmp_path: Path) -> None:
    home = tmp_path / "product"
    for name in ("src", "conf"):
        shutil.copytree(running.REPOSITORY / name, home / name)
    workload = home / "src/measure/workloads/rms_norm.py"
    right = "return torch.rms_norm(x, (x.shape[-1],), weight, EPS)"
    text = workload.read_text()
    assert right in text
    workload.write_text(text.replace(right, right + " * 1.05"))
    root = tmp_path / "mlruns"
    done = running.run(root, "variant=fused", "input=small", home=home)
    assert done.returncode == 1
    assert "wrong result" in done.stderr
    run = only_run(root)
    assert run.info.status == "FAILED"
    assert "wrong result" in run.data.tags["error"]
    assert run.data.metrics == {}
    directory = running.artifacts(run)
    assert rundir.read_json(directory / rundir.NUMERICS)["passed"] is False
    assert not (directory / rundir.OPERATORS).exists()
    assert list((directory / rundir.PROFILE).rglob("*.json")) == []


def test_an_untracked_run_says_where_it_is_and_ingest_tracks_it(tmp_path: Path) -> None:
    root = tmp_path / "mlruns"
    done = running.run(root, "input=small", "tracking=none")
    assert done.returncode == 0, done.stderr
    assert not (root / "mlflow.db").exists()
    (directory,) = (root / "pending").iterdir()
    assert str(directory) in done.stdout
    ingest = [*running.command(root, door="ingest")[:3], str(directory)]
    tracked = subprocess.run(
        ingest, env=running.environment(), cwd=tmp_path, capture_output=True, text=True
    )
    assert tracked.returncode == 0, tracked.stderr
    run = only_run(root)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["self_neuron_us"] > 0
    assert not directory.exists()


def test_a_refused_run_leaves_nothing_at_all(tmp_path: Path) -> None:
    root = tmp_path / "mlruns"
    done = running.run(root, "device=neuron")
    assert done.returncode == 2
    assert "torch_neuronx is not installed" in done.stderr
    assert "device=simulated" in done.stderr
    assert not root.exists()


def test_a_store_that_cannot_be_written_is_refused_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("")
    done = running.run(tmp_path / "a-file" / "mlruns", cwd=tmp_path)
    assert done.returncode == 2
    assert "tracking.root=" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_eight_first_runs_at_once_on_an_empty_root_all_succeed(tmp_path: Path) -> None:
    root = tmp_path / "mlruns"
    processes = [running.start(root, "input=small", "profiler.repeats=1") for _ in range(8)]
    said = [process.communicate(timeout=500) for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, said
    runs = running.tracked(root)
    assert [run.info.status for run in runs] == ["FINISHED"] * 8
    assert len({run.info.experiment_id for run in runs}) == 1

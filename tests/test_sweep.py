"""Sweeps through the whole product: nine runs, a failing job, resume, preview, workers."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from . import running

FAST = ("profiler.repeats=1", "profiler.warmup=0")


def rows_of_end_table(said: str) -> list[list[str]]:
    """The numbered rows of the end table, a list of cells each."""
    cells = [line.split("│")[1:-1] for line in said.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in row] for row in cells if row[0].strip().isdigit()]


@pytest.mark.slow
def test_three_variants_and_three_inputs_leave_nine_flat_runs_of_one_sweep(tmp_path: Path) -> None:
    root = tmp_path / "mlruns"
    axes = ("variant=naive,fused,compiled", "input=small,medium,large")
    done = running.run(root, "-m", *axes, *FAST)
    assert done.returncode == 0, done.stderr
    runs = [run for run in running.tracked(root) if run.data.tags.get("kind") == "profile"]
    assert len(runs) == 9
    assert len({run.info.run_name for run in runs}) == 9
    assert len({run.data.tags["sweep_id"] for run in runs}) == 1
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert not any("mlflow.parentRunId" in run.data.tags for run in runs)
    assert all(run.data.tags["mlflow.note.content"] for run in runs)
    rows = rows_of_end_table(done.stdout)
    assert [row[0] for row in rows] == [str(number) for number in range(9)]
    assert {row[2] for row in rows} == {"FINISHED"}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Three jobs, of which the one in the middle computes a wrong result."""
    root = tmp_path_factory.mktemp("broken") / "mlruns"
    varying = "workload.tolerance=null,1e-12,2e-2"
    done = running.run(root, "-m", varying, "input.shape=8x8", "variant=naive", *FAST)
    return root, done


def test_a_failing_job_does_not_stop_the_others_and_the_exit_code_is_1(broken: Any) -> None:
    root, done = broken
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    runs = running.tracked(root)
    assert [run.info.status for run in runs] == ["FINISHED", "FAILED", "FINISHED"]
    assert "wrong result" in runs[1].data.tags["error"]


def test_the_end_table_has_every_job_with_status_time_and_metrics(broken: Any) -> None:
    _, done = broken
    rows = rows_of_end_table(done.stdout)
    assert [row[0] for row in rows] == ["0", "1", "2"]
    assert rows[0][2] == rows[2][2] == "FINISHED"
    assert rows[1][2].startswith("FAILED")
    assert rows[0][4] == "1,968.0"
    assert rows[1][4] == "—"
    assert all(float(row[3]) > 0 for row in rows)
    assert "2 of 3 jobs are fine" in done.stdout


def test_resume_skips_what_is_measured_and_says_which_run_and_how_old(broken: Any) -> None:
    root, _ = broken
    again = running.run(
        root, "-m", "workload.tolerance=null,5e-2", "input.shape=8x8", "variant=naive", *FAST,
        "sweep.resume=true",
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    first = running.tracked(root)[0]
    skipped, ran = rows_of_end_table(again.stdout)
    assert skipped[2].startswith("SKIPPED: measured")
    assert first.info.run_id in again.stdout
    assert "ago" in again.stdout
    assert ran[2] == "FINISHED"
    assert len(running.tracked(root)) == 4


@pytest.mark.parametrize(
    "change",
    [{"OMP_NUM_THREADS": "2"}, {"NEURON_RT_EXEC_TIMEOUT": "7"}],
    ids=lambda c: next(iter(c)),
)
@pytest.mark.slow
def test_a_changed_timing_variable_is_another_measurement(broken: Any, change: Any) -> None:
    root, _ = broken
    extra = ("device=simulated", "input.shape=8x8", "variant=naive", "sweep.resume=true", *FAST)
    again = running.run(root, "-m", "input.seed=0", *extra, **change)
    assert again.returncode == 0, again.stderr
    assert "SKIPPED" not in again.stdout


def test_preview_lists_the_jobs_and_touches_nothing(tmp_path: Path) -> None:
    root = tmp_path / "mlruns"
    done = running.run(root, "-m", "variant=naive,fused", "input=small,large", "sweep.preview=true")
    assert done.returncode == 0, done.stderr
    assert "4 jobs" in done.stdout
    assert "variant=fused input=large" in done.stdout
    assert "Disk: about" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_combination_that_can_never_work_is_refused_before_job_1(tmp_path: Path) -> None:
    done = running.run(tmp_path / "mlruns", "-m", "variant=naive,fused", "input.shape=8x8,0x8")
    assert done.returncode == 2
    assert "input.shape=0x8" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_jobs_at_once_that_would_share_a_neuron_core_are_refused(tmp_path: Path) -> None:
    workers = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    done = running.run(tmp_path / "m", "-m", "device=neuron", "variant=naive,fused", *workers)
    assert done.returncode == 2
    assert "sweep.pool=0-1" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_four_workers_on_an_empty_store_track_all_of_24_jobs(tmp_path: Path) -> None:
    root = tmp_path / "mlruns"
    shapes = "input.shape=" + ",".join(f"{8 * n}x{64 * n}" for n in range(1, 9))
    workers = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=4")
    done = running.run(root, "-m", "variant=naive,fused,compiled", shapes, *workers, *FAST)
    assert done.returncode == 0, done.stdout + done.stderr
    runs = [run for run in running.tracked(root) if run.data.tags.get("kind") == "profile"]
    assert len(runs) == 24
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert {run.data.params["concurrent_jobs"] for run in runs} == {"4"}
    assert len({run.info.run_name for run in runs}) == 24
    assert len(rows_of_end_table(done.stdout)) == 24


@pytest.mark.slow
def test_ctrl_c_in_a_sweep_ends_it_with_the_table_of_what_was_done(tmp_path: Path) -> None:
    root = tmp_path / "mlruns"
    process = running.start(root, "-m", "input.seed=1,2,3,4", "input=small", *FAST)
    assert process.stderr is not None
    for line in process.stderr:
        if "job 2 of 4: warming up" in line:
            break
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    statuses = [row[2].partition(":")[0] for row in rows_of_end_table(out)]
    assert statuses == ["FINISHED", "KILLED", "NOT RUN", "NOT RUN"]
    assert [run.info.status for run in running.tracked(root)] == ["FINISHED", "KILLED"]


def test_from_run_repeats_a_run_with_overrides_and_names_its_origin(broken: Any) -> None:
    root, _ = broken
    first = running.tracked(root)[0]
    time.sleep(0.01)
    again = running.run(root, f"from_run={first.info.run_id}", "profiler=combined", "input.seed=5")
    assert again.returncode == 0, again.stderr
    run = running.tracked(root)[-1]
    assert run.data.tags["from_run"] == first.info.run_id
    assert run.data.params["input.shape"] == "8x8"
    assert run.data.params["variant"] == "naive"
    assert run.data.params["input.seed"] == "5"
    assert run.data.params["profiler"] == "combined"
    assert run.data.params["profiler.modes"] == "DEVICE+RUNTIME"


@pytest.mark.parametrize("origin", ["0" * 32, "", "a,b"])
def test_from_run_of_an_unknown_run_is_refused(broken: Any, origin: str) -> None:
    root, _ = broken
    before = len(running.tracked(root))
    done = running.run(root, f"from_run={origin}")
    assert done.returncode == 2
    assert "from_run=" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(running.tracked(root)) == before

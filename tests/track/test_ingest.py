"""The door for directories: tracked again or at last, and never at the price of the only copy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from src import ingest, rundir
from src.schema import Spec
from src.track import notes, outcome, runs
from src.track.store import Store
from tests.track.making import READY, manifest_agrees, operators, run_directory, spec, web_server


@pytest.fixture
def asked(local_store: Store) -> Spec:
    return spec(local_store.root, tracking_name="none")


def only_run(client: Any) -> Any:
    experiments = [e.experiment_id for e in client.search_experiments()]
    found = client.search_runs(experiments)
    assert len(found) == 1
    return found[0]


def test_an_untracked_run_is_tracked_at_last(
    client: Any, local_store: Store, asked: Spec, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = run_directory(local_store.pending, asked)
    assert ingest.main([str(directory)]) == 0
    run = only_run(client)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["self_neuron_us"] == 5.0
    assert run.data.tags["ingested"] == "true"
    assert run.info.run_name.startswith("sim ")
    assert "simulated run" in capsys.readouterr().out
    assert not directory.exists()
    assert manifest_agrees(Path(run.info.artifact_uri))


def test_all_that_is_pending_is_tracked_and_a_bad_one_does_not_stop_the_rest(
    client: Any, local_store: Store, asked: Spec, capsys: pytest.CaptureFixture[str]
) -> None:
    (local_store.pending / "0-empty").mkdir()
    directory = run_directory(local_store.pending, asked)
    assert ingest.main(["--pending", "--root", str(local_store.root)]) == 2
    assert "spec.json" in capsys.readouterr().err
    assert only_run(client).info.status == "FINISHED"
    assert not directory.exists()
    assert (local_store.pending / "0-empty").is_dir()


def test_nothing_pending_is_said(local_store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert ingest.main(["--pending", "--root", str(local_store.root)]) == 0
    assert "nothing is left" in capsys.readouterr().out


def test_a_directory_outside_pending_is_copied_and_stays_as_it_was(
    client: Any, local_store: Store, asked: Spec, tmp_path: Path
) -> None:
    directory = run_directory(tmp_path / "mine", asked)
    (directory / "profile" / "link").symlink_to("/etc/hostname")
    before = {p: p.lstat().st_mtime_ns for p in directory.rglob("*")}
    assert ingest.main([str(directory), "--root", str(local_store.root)]) == 0
    assert {p: p.lstat().st_mtime_ns for p in directory.rglob("*")} == before
    assert manifest_agrees(Path(only_run(client).info.artifact_uri))
    assert list(local_store.pending.iterdir()) == []


def test_a_tracked_run_can_be_tracked_again_and_names_its_first(
    client: Any, local_store: Store, asked: Spec
) -> None:
    assert ingest.main([str(run_directory(local_store.pending, asked))]) == 0
    first = only_run(client)
    code = ingest.main([first.info.artifact_uri, "--root", str(local_store.root)])
    assert code == 0
    both = client.search_runs([first.info.experiment_id])
    again = next(run for run in both if run.info.run_id != first.info.run_id)
    assert again.data.tags["earlier_run_id"] == first.info.run_id
    assert "manifest_changed" not in again.data.tags
    assert manifest_agrees(Path(first.info.artifact_uri))


def test_a_changed_file_is_named_and_tracked_with_a_tag(
    client: Any, local_store: Store, asked: Spec, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = run_directory(local_store.pending, asked)
    rundir.write_manifest(directory)
    trace = directory / "profile" / "i-1_pid_2" / "trace.simulated.json"
    trace.write_text('{"simulated": "yes"}')
    (directory / rundir.CHILD_LOG).unlink()
    assert ingest.main([str(directory)]) == 0
    said = capsys.readouterr().err
    assert "trace.simulated.json" in said
    assert "child.log (missing)" in said
    assert "trace.simulated.json" in only_run(client).data.tags["manifest_changed"]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({}, "no spec.json"),
        ({"spec.json": "{"}, "not a JSON file"),
        ({"spec.json": "{}"}, "not a specification"),
        ({"spec.json": "[]"}, "not a specification"),
        ({"run-1/spec.json": "{}"}, "Did you mean"),
    ],
)
def test_a_directory_that_is_no_run_is_a_user_error(
    tmp_path: Path, made: dict[str, str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in made.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert ingest.main([str(tmp_path), "--root", str(tmp_path / "store")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


def test_a_path_that_does_not_exist_and_no_path_are_user_errors(tmp_path: Path) -> None:
    assert ingest.main([str(tmp_path / "nowhere")]) == 2
    assert ingest.main([]) == 2


def test_a_directory_still_being_measured_is_left_alone(
    local_store: Store, asked: Spec, capsys: pytest.CaptureFixture[str]
) -> None:
    from src.track import identity

    directory = run_directory(local_store.pending, asked)
    notes.update(directory, process=identity.this_process())
    assert ingest.main([str(directory)]) == 2
    assert "still at work" in capsys.readouterr().err
    assert directory.is_dir()


@pytest.mark.parametrize(
    "sign", ["device_time_source", "file", "environment", "run.json", "spec.json"]
)
def test_any_sign_of_the_simulator_makes_the_run_simulated(
    client: Any, local_store: Store, sign: str
) -> None:
    device = "simulated" if sign == "spec.json" else "auto"
    asked = spec(local_store.root, device=device)
    source = "simulated" if sign == "device_time_source" else "key_averages"
    directory = run_directory(local_store.pending, asked, operators(source=source))
    if sign != "file":
        trace = directory / "profile" / "i-1_pid_2" / "trace.simulated.json"
        trace.rename(trace.with_name("trace.json"))
    if sign == "environment":
        rundir.write_json(directory / rundir.ENVIRONMENT, {"device": "simulated"})
    if sign == "run.json":
        notes.update(directory, ready=READY)
    assert ingest.main([str(directory)]) == 0
    run = only_run(client)
    assert run.data.params["device"] == "simulated"
    assert client.get_experiment(run.info.experiment_id).name.endswith("(simulated)")


def test_a_simulated_directory_goes_to_no_server_unasked(
    local_store: Store, asked: Spec, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = run_directory(local_store.pending, asked)
    with web_server(200) as (address, seen):
        uri = address.replace("//", "//me:hunter2@")
        assert ingest.main([str(directory), "--uri", uri]) == 2
    said = capsys.readouterr().err
    assert "simulated" in said
    assert "hunter2" not in said
    assert seen == []
    assert directory.is_dir()


def test_a_failed_run_stays_failed_with_its_reason(
    client: Any, local_store: Store, asked: Spec
) -> None:
    directory = run_directory(local_store.pending, asked)
    outcome.conclude(directory, asked, "killed by SIGSEGV")
    assert ingest.main([str(directory)]) == 0
    run = only_run(client)
    assert (run.info.status, run.data.tags["error"]) == ("FAILED", "killed by SIGSEGV")
    assert run.data.metrics == {}


def test_a_killed_run_stays_killed(client: Any, local_store: Store, asked: Spec) -> None:
    directory = run_directory(local_store.pending, asked)
    outcome.conclude(directory, asked, killed=True)
    assert ingest.main([str(directory)]) == 0
    assert only_run(client).info.status == "KILLED"


def test_a_run_whose_analysis_failed_gets_another_chance(
    client: Any, local_store: Store, asked: Spec
) -> None:
    directory = run_directory(local_store.pending, asked)
    good = (directory / rundir.OPERATORS).read_text()
    (directory / rundir.OPERATORS).write_text("{")
    assert outcome.conclude(directory, asked).status == "FAILED"
    (directory / rundir.OPERATORS).write_text(good)
    assert ingest.main([str(directory)]) == 0
    run = only_run(client)
    assert run.info.status == "FINISHED"
    assert not (Path(run.info.artifact_uri) / rundir.ERROR).exists()


def test_a_store_that_fails_leaves_the_directory_for_another_try(
    client: Any,
    local_store: Store,
    asked: Spec,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    directory = run_directory(local_store.pending, asked)
    real = runs._log_metrics

    def broken(*_: Any) -> Any:
        raise runs.StoreError("the store is full")

    monkeypatch.setattr(runs, "_log_metrics", broken)
    assert ingest.main([str(directory)]) == 1
    assert f"python -m src.ingest {directory}" in capsys.readouterr().err
    monkeypatch.setattr(runs, "_log_metrics", real)
    assert ingest.main([str(directory)]) == 0
    statuses = {run.info.status for run in client.search_runs(["1"])}
    assert statuses == {"FAILED", "FINISHED"}


def test_a_directory_that_cannot_be_copied_is_one_message(
    local_store: Store,
    asked: Spec,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    directory = run_directory(tmp_path / "mine", asked)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", "x")

    monkeypatch.setattr(shutil, "copy2", full)
    assert ingest.main([str(directory), "--root", str(local_store.root)]) == 1
    assert "No space left" in capsys.readouterr().err
    assert list(local_store.pending.iterdir()) == []


def test_a_store_that_fails_on_a_copy_leaves_the_original_only(
    local_store: Store, asked: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = run_directory(tmp_path / "mine", asked)

    def broken(*_: Any) -> Any:
        raise runs.StoreError("the store is full")

    monkeypatch.setattr(runs, "_log_metrics", broken)
    assert ingest.main([str(directory), "--root", str(local_store.root)]) == 1
    assert (directory / rundir.OPERATORS).is_file()
    assert list(local_store.pending.iterdir()) == []


@pytest.mark.slow
def test_the_command_works_from_any_working_directory(
    client: Any, local_store: Store, asked: Spec, tmp_path: Path
) -> None:
    directory = run_directory(local_store.pending, asked)
    done = subprocess.run(
        [sys.executable, "-m", "src.ingest", str(directory)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert only_run(client).info.run_id in done.stdout
    assert {p.name for p in tmp_path.iterdir()} == {local_store.root.name}


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no second file system here")
def test_a_store_on_another_file_system_gets_an_upload(
    local_store: Store, asked: Spec, schema_file: Path
) -> None:
    from src.track import connect, store

    root = Path("/dev/shm") / f"test-store-{os.getpid()}"
    other = spec(root)
    try:
        (root / "pending").mkdir(parents=True)
        shutil.copy(schema_file, root / "mlflow.db")
        target = store.locate(other.config.tracking, root, root)
        here = run_directory(local_store.pending, asked)
        run = runs.open_run(connect.connect(target), target, other, READY, here)
        where = runs.close_run(run, outcome.conclude(here, other))
        same = local_store.root.stat().st_dev == root.stat().st_dev
        manifest = rundir.read_json(Path(where) / rundir.MANIFEST)
        assert not here.exists()
        assert manifest["where"]["how"] == ("moved" if same else "uploaded")
        assert manifest_agrees(Path(where))
    finally:
        shutil.rmtree(root, ignore_errors=True)

"""A run directory becomes an MLflow run: what is logged, and what a failing store costs."""

from __future__ import annotations

import getpass
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from src import rundir
from src.errors import StoreError, UserError
from src.schema import Spec, TrackingConfig
from src.track import artifacts, facts, outcome, runs
from src.track.store import Store, locate
from tests.track.making import (
    READY,
    manifest_agrees,
    operators,
    retracked,
    run_directory,
    spec,
)


@pytest.fixture
def asked(local_store: Store) -> Spec:
    return spec(local_store.root)


def tracked(
    client: Any, store: Store, asked: Spec, directory: Path, error: str | None = None, **more: Any
) -> Any:
    run = runs.open_run(client, store, asked, more.pop("ready", READY), directory)
    runs.close_run(run, outcome.conclude(directory, asked, error, **more))
    return client.get_run(run.run_id)


def test_a_measured_run_is_finished_with_its_metrics_params_and_tags(
    client: Any, local_store: Store, asked: Spec
) -> None:
    directory = run_directory(local_store.pending, asked)
    run = tracked(client, local_store, asked, directory)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "sim rms_norm naive 1x2x3 bfloat16 nc0"
    assert run.data.metrics["self_neuron_us"] == 5.0
    assert run.data.metrics["self_neuron_us/aten::mul"] == 5.0
    expected = {"workload": "rms_norm", "variant": "naive", "input": "small", "dim2": "3"}
    expected |= {"device": "simulated", "device_time_source": "simulated", "cores": "0"}
    expected |= {"input.shape": "1x2x3", "profiler.modes": "RUNTIME", "profiler.warmup": "3"}
    assert expected.items() <= run.data.params.items()
    assert not [key for key in run.data.params if key.startswith("tracking")]
    tags = {"kind": "profile", "device": "simulated", "version.torch": "2.13.0"}
    tags |= {"overrides": "variant=naive", "device_time_source": "simulated"}
    assert tags.items() <= run.data.tags.items()
    assert "simulated" in run.data.tags["mlflow.note.content"]
    assert run.data.tags["capture_health"]
    assert client.get_experiment(run.info.experiment_id).name == "rms_norm (simulated)"


def test_the_directory_is_moved_and_agrees_with_its_manifest(
    client: Any, local_store: Store, asked: Spec
) -> None:
    directory = run_directory(local_store.pending, asked)
    trace = directory / "profile" / "i-1_pid_2" / "trace.simulated.json"
    inode = trace.stat().st_ino
    run = tracked(client, local_store, asked, directory)
    kept = Path(run.info.artifact_uri)
    assert not directory.exists()
    assert manifest_agrees(kept)
    assert (kept / trace.relative_to(directory)).stat().st_ino == inode
    manifest = rundir.read_json(kept / rundir.MANIFEST)
    assert manifest["where"]["run_id"] == run.info.run_id
    assert manifest["where"]["how"] == "moved"
    listed = artifacts.listed(client, run.info.run_id)
    assert set(listed) == {*manifest["files"], rundir.MANIFEST}


def test_a_failed_run_says_why_and_keeps_all_but_the_metrics(
    client: Any, local_store: Store, asked: Spec
) -> None:
    directory = run_directory(local_store.pending, asked)
    run = tracked(client, local_store, asked, directory, "killed by SIGSEGV, token=hunter2")
    assert run.info.status == "FAILED"
    assert run.data.metrics == {}
    assert run.data.tags["error"] == "killed by SIGSEGV, token=***"
    kept = Path(run.info.artifact_uri)
    assert (kept / rundir.ERROR).read_text() == "killed by SIGSEGV, token=***\n"
    assert manifest_agrees(kept)


def test_a_run_that_the_user_stopped_is_killed(
    client: Any, local_store: Store, asked: Spec
) -> None:
    directory = rundir.create(local_store.pending, 0)
    rundir.write_json(directory / rundir.SPEC, asked.to_json())
    run = tracked(client, local_store, asked, directory, killed=True)
    assert run.info.status == "KILLED"
    assert run.info.end_time
    assert run.data.metrics == {}


def test_without_device_time_a_run_is_failed_and_has_no_such_metric(
    client: Any, local_store: Store, asked: Spec
) -> None:
    row = rundir.OperatorRow("aten::mul", 3, 10.0, 12.0, None)
    found = operators(row, source=None)
    directory = run_directory(local_store.pending, asked, found)
    run = tracked(client, local_store, asked, directory)
    assert run.info.status == "FAILED"
    assert "self_neuron_us" not in run.data.metrics
    assert run.data.metrics["self_cpu_total_us"] == 22.0
    assert "no device time" in run.data.tags["error"]
    assert run.data.tags["device_time_source"] == "none"


def test_a_cut_operators_file_fails_the_run_and_keeps_the_profile(
    client: Any, local_store: Store, asked: Spec
) -> None:
    directory = run_directory(local_store.pending, asked)
    (directory / rundir.OPERATORS).write_text('{"format": 1, "windows": [{"st')
    run = tracked(client, local_store, asked, directory)
    assert run.info.status == "FAILED"
    assert "operators.json" in run.data.tags["error"]
    assert manifest_agrees(Path(run.info.artifact_uri))


def test_numbers_that_are_none_are_dropped_and_counted(
    client: Any, local_store: Store, asked: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = run_directory(local_store.pending, asked)
    result = outcome.conclude(directory, asked)
    result.metrics.update(ratio=float("inf"), other=float("nan"), third=float("-inf"))
    run = runs.open_run(client, local_store, asked, READY, directory)
    runs.close_run(run, result)
    data = client.get_run(run.run_id).data
    assert data.tags["dropped_nonfinite"] == "3"
    assert not {"ratio", "other", "third"} & set(data.metrics)


def test_awkward_operator_names_are_all_tracked(
    client: Any, local_store: Store, asked: Spec
) -> None:
    odd = ["f<1>", "f[1]", "ProfilerStep*", "x" * 300, "aten::mul", "Foo", "foo", "../up", "🙂"]
    rows = [rundir.OperatorRow(name, 1, 1.0, 1.0, float(n + 1)) for n, name in enumerate(odd)]
    directory = run_directory(local_store.pending, asked, operators(*rows))
    data = tracked(client, local_store, asked, directory).data
    times = [v for k, v in data.metrics.items() if k.startswith("self_neuron_us/")]
    assert sorted(times) == [float(n + 1) for n in range(len(odd))]


def test_two_thousand_operators_become_few_metrics(
    client: Any, local_store: Store, asked: Spec
) -> None:
    rows = [rundir.OperatorRow(f"op{n}", 1, 1.0, 1.0, float(n)) for n in range(2000)]
    directory = run_directory(local_store.pending, asked, operators(*rows))
    run = tracked(client, local_store, asked, directory)
    assert len(run.data.metrics) <= 45
    kept = rundir.read_json(Path(run.info.artifact_uri) / rundir.OPERATORS)
    assert len(kept["windows"][0]["operators"]) == 2000


def refusing(client: Any, monkeypatch: pytest.MonkeyPatch, refused: str) -> None:
    """Make the client refuse each batch that holds a metric with `refused` in its name."""
    from mlflow.exceptions import RestException

    real = client.log_batch

    def log_batch(run_id: str, **items: Any) -> Any:
        if any(refused in metric.key for metric in items.get("metrics", ())):
            raise RestException({"error_code": "INVALID_PARAMETER_VALUE", "message": refused})
        return real(run_id, **items)

    monkeypatch.setattr(client, "log_batch", log_batch)


def test_one_refused_metric_does_not_lose_the_others(
    client: Any,
    local_store: Store,
    asked: Spec,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusing(client, monkeypatch, "aten::mul")
    directory = run_directory(local_store.pending, asked)
    with caplog.at_level(logging.WARNING):
        run = tracked(client, local_store, asked, directory)
    assert run.data.metrics["self_neuron_us"] == 5.0
    assert "self_neuron_us/aten::mul" not in run.data.metrics
    assert "self_neuron_us/aten::mul" in run.data.tags["refused_names"]
    assert "strict_names=true" in caplog.text


def test_strict_names_pass_where_a_colon_is_refused(
    client: Any, local_store: Store, asked: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing(client, monkeypatch, ":")
    strict = retracked(asked, strict_names=True)
    directory = run_directory(local_store.pending, strict)
    run = tracked(client, local_store, strict, directory)
    assert run.data.metrics["self_neuron_us/aten__mul"] == 5.0


@pytest.mark.parametrize("step", ["log_batch", "set_terminated"])
@pytest.mark.usefixtures("no_waiting")
def test_a_store_that_fails_midway_never_loses_the_directory(
    client: Any, local_store: Store, asked: Spec, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    directory = run_directory(local_store.pending, asked)
    run = runs.open_run(client, local_store, asked, READY, directory)
    result = outcome.conclude(directory, asked)
    before = {p.relative_to(directory) for p in directory.rglob("*")}

    def broken(*_: Any, **__: Any) -> None:
        raise OSError("the disk of http://me:hunter2@host is full")

    monkeypatch.setattr(client, step, broken)
    with pytest.raises(StoreError) as caught:
        runs.close_run(run, result)
    assert f"python -m src.ingest {directory}" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert before <= {p.relative_to(directory) for p in directory.rglob("*")}
    monkeypatch.undo()
    assert client.get_run(run.run_id).info.status in ("RUNNING", "FAILED")


@pytest.mark.usefixtures("no_waiting")
def test_a_store_that_does_not_answer_is_not_asked_again(
    client: Any, local_store: Store, asked: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = run_directory(local_store.pending, asked)
    run = runs.open_run(client, local_store, asked, READY, directory)
    calls: list[str] = []

    def silent(*_: Any, **__: Any) -> None:
        calls.append("call")
        raise ConnectionError("HTTPConnectionPool: Max retries exceeded")

    monkeypatch.setattr(client, "log_batch", silent)
    monkeypatch.setattr(client, "set_terminated", silent)
    with pytest.raises(StoreError):
        runs.close_run(run, outcome.conclude(directory, asked))
    assert calls == ["call"]


def test_a_directory_that_cannot_be_moved_stays_and_the_run_is_failed(
    client: Any, local_store: Store, asked: Spec
) -> None:
    directory = run_directory(local_store.pending, asked)
    run = runs.open_run(client, local_store, asked, READY, directory)
    in_the_way = Path(run.artifact_uri)
    in_the_way.mkdir(parents=True)
    (in_the_way / "stale").write_text("from before")
    with pytest.raises(StoreError):
        runs.close_run(run, outcome.conclude(directory, asked))
    assert (directory / rundir.OPERATORS).is_file()
    found = client.get_run(run.run_id)
    assert found.info.status == "FAILED"
    assert str(directory) in found.data.tags["error"]


def test_ctrl_c_while_closing_keeps_the_directory_and_kills_the_run(
    client: Any, local_store: Store, asked: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = run_directory(local_store.pending, asked)
    run = runs.open_run(client, local_store, asked, READY, directory)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(artifacts, "_same_file_system", interrupted)
    with pytest.raises(KeyboardInterrupt):
        runs.close_run(run, outcome.conclude(directory, asked))
    assert (directory / rundir.OPERATORS).is_file()
    assert client.get_run(run.run_id).info.status == "KILLED"


def test_a_simulated_run_is_refused_by_a_server_before_anything_is_written(
    client: Any, local_store: Store, asked: Spec, tmp_path: Path
) -> None:
    server = locate(TrackingConfig(name="local", uri="http://h"), tmp_path, tmp_path)
    with pytest.raises(UserError, match=r"tracking\.allow_simulated=true"):
        runs.open_run(client, server, asked, READY, tmp_path)
    assert client.get_experiment_by_name("rms_norm (simulated)") is None


def test_a_measured_run_has_no_simulated_mark(client: Any, local_store: Store) -> None:
    asked = spec(local_store.root, device="neuron")
    directory = run_directory(local_store.pending, asked, operators(source="key_averages"))
    ready = {**READY, "device": "neuron", "chip": "trn2", "lnc": 2}
    run = tracked(client, local_store, asked, directory, ready=ready)
    assert run.info.run_name == "rms_norm naive 1x2x3 bfloat16 nc0"
    assert run.data.tags["chip"] == "trn2"
    assert "mlflow.note.content" not in run.data.tags
    assert client.get_experiment(run.info.experiment_id).name == "rms_norm"


def test_the_user_tag_can_be_replaced(client: Any, local_store: Store, asked: Spec) -> None:
    ready = dict(READY)
    assert facts.tags(asked, ready, "d")["mlflow.user"] == getpass.getuser()
    asked = retracked(asked, user="team")
    directory = run_directory(local_store.pending, asked)
    assert tracked(client, local_store, asked, directory).data.tags["mlflow.user"] == "team"


def test_no_secret_reaches_the_store_or_the_artifacts(
    client: Any, local_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    asked = spec(
        local_store.root,
        env={"API_TOKEN": "hunter2secret", "NEURON_PROXY": "http://me:hunter2pass@proxy"},
        overrides=("device.env.API_TOKEN=hunter2secret",),
        description="see http://me:hunter2pass@wiki",
        tags={"password": "hunter2tag"},
    )
    directory = run_directory(local_store.pending, asked)
    (directory / rundir.CHILD_LOG).write_text("sent hunter2secret to http://me:hunter2pass@proxy")
    variables = {"NEURON_KEY": "hunter2env", "NEURON_PROXY": "http://me:hunter2pass@proxy"}
    rundir.write_json(directory / rundir.ENVIRONMENT, {"variables": variables})
    run = tracked(client, local_store, asked, directory)
    for folder, _, files in os.walk(local_store.root):
        for name in files:
            assert b"hunter2" not in (Path(folder) / name).read_bytes(), name
    assert "hunter2" not in json.dumps([run.data.tags, run.data.params]) + caplog.text


def test_long_values_are_cut_and_kept_whole_in_the_artifact(
    client: Any, local_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRUNCATE_LONG_VALUES", "false")
    long = "x" * 7000
    asked = spec(
        local_store.root,
        env={"LONG": long},
        overrides=(f"device.env.LONG={long}",),
        description=long * 2,
    )
    directory = run_directory(local_store.pending, asked)
    run = tracked(client, local_store, asked, directory, "e" * 9000)
    assert run.data.params["device.env.LONG"].endswith("x ...")
    assert run.data.tags["error"].endswith("e ...")
    kept = rundir.read_json(Path(run.info.artifact_uri) / rundir.SPEC)
    assert kept["config"]["device"]["env"]["LONG"] == long


def test_five_hundred_variables_and_tags_are_logged_in_batches(
    client: Any, local_store: Store
) -> None:
    env = {f"V{n}": str(n) for n in range(500)}
    asked = spec(local_store.root, env=env, tags={f"t{n}": "x" for n in range(250)})
    run = tracked(client, local_store, asked, run_directory(local_store.pending, asked))
    assert run.data.params["device.env.V499"] == "499"
    assert run.data.tags["t249"] == "x"


def test_a_refused_run_is_taken_back(client: Any, local_store: Store, asked: Spec) -> None:
    directory = run_directory(local_store.pending, asked)
    run = runs.open_run(client, local_store, asked, READY, directory)
    runs.withdraw(run)
    assert client.search_runs([run.experiment_id]) == []
    assert client.get_run(run.run_id).info.status == "FAILED"


def test_a_full_disk_while_the_report_is_written_fails_the_run_and_keeps_the_directory(
    client: Any, local_store: Store, asked: Spec
) -> None:
    directory = run_directory(local_store.pending, asked)
    run = runs.open_run(client, local_store, asked, READY, directory)
    error = runs.unwritten(run, directory, OSError(28, "No space left on device"))
    assert f"make room, then send it with: python -m src.ingest {directory}" in str(error)
    closed = client.get_run(run.run_id)
    assert closed.info.status == "FAILED"
    assert "No space left on device" in closed.data.tags["error"]
    assert (directory / rundir.OPERATORS).exists()


def test_numbers_that_json_cannot_hold_do_not_stop_a_run(
    client: Any, local_store: Store, asked: Spec
) -> None:
    directory = run_directory(local_store.pending, asked)
    text = (directory / rundir.OPERATORS).read_text()
    (directory / rundir.OPERATORS).write_text(text.replace("10.0", "Infinity"))
    run = tracked(client, local_store, asked, directory)
    assert "self_cpu_us" not in run.data.metrics
    assert run.data.metrics["self_neuron_us"] == 5.0
    assert rundir.read_json(Path(run.info.artifact_uri) / rundir.SUMMARY)


def test_a_full_disk_fails_the_run_and_is_said(
    local_store: Store, asked: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = run_directory(local_store.pending, asked)

    def full(path: Path, data: Any) -> None:
        if path.name == rundir.SUMMARY:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(outcome.rundir, "write_json", full)
    result = outcome.conclude(directory, asked)
    assert result.status == "FAILED"
    assert "No space left" in (result.error or "")

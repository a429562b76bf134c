"""Against a real MLflow server, started once."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from src import ingest, rundir
from src.errors import StoreError
from src.track import artifacts, connect, janitor, outcome, runs, store
from tests.track.making import READY, operators, run_directory, spec

pytestmark = pytest.mark.slow
PATIENCE_S = 120
MEASURED = {**READY, "device": "neuron"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, schema_file: Path) -> Iterator[str]:
    home = tmp_path_factory.mktemp("server")
    (home / "server.db").write_bytes(schema_file.read_bytes())
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--backend-store-uri", f"sqlite:///{home}/server.db"]
    command += ["--artifacts-destination", str(home / "files")]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=home, start_new_session=True
        )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(PATIENCE_S):
            try:
                urllib.request.urlopen(f"{address}/health", timeout=2).close()
                break
            except OSError:
                time.sleep(1)
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def opened(server: str, root: Path, **more: Any) -> tuple[Any, store.Store, Any]:
    asked = spec(root, device="neuron", tracking_uri=server, **more)
    target = store.locate(asked.config.tracking, root, root)
    store.check(target, simulated=False)
    return asked, target, connect.connect(target)


def test_a_run_is_uploaded_byte_for_byte(server: str, tmp_path: Path) -> None:
    asked, target, client = opened(server, tmp_path)
    directory = run_directory(target.pending, asked, operators(source="key_averages"))
    profile = directory / rundir.PROFILE
    odd = {
        "a b": b"1",
        "ü 中": b"2",
        "a%2fb": b"3",
        "#x&y": b"4",
        "#?/y": b"5",
        "deep/er": b"\x00\xff" * 999,
    }
    for name, data in odd.items():
        (profile / name).parent.mkdir(exist_ok=True)
        (profile / name).write_bytes(data)
    (profile / "dead").symlink_to("/nonexistent")
    run = runs.open_run(client, target, asked, MEASURED, directory)
    where = runs.close_run(run, outcome.conclude(directory, asked))
    found = client.get_run(run.run_id)
    assert found.info.status == "FINISHED"
    assert found.data.metrics["self_neuron_us/aten::mul"] == 5.0
    assert where.startswith("mlflow-artifacts:")
    assert not directory.exists()
    assert run.link.startswith(f"{server}/#/experiments/")
    copy = Path(client.download_artifacts(run.run_id, "", str(tmp_path)))
    manifest = rundir.read_json(copy / rundir.MANIFEST)
    assert manifest["where"]["how"] == "uploaded"
    assert "profile/dead" in manifest["skipped"]
    stored = {facts.get("stored_as", name) for name, facts in manifest["files"].items()}
    assert stored | {rundir.MANIFEST} == set(artifacts.listed(client, run.run_id))
    for name, facts in manifest["files"].items():
        assert rundir.sha256_of(copy / facts.get("stored_as", name)) == facts["sha256"], name
    assert {n for n, f in manifest["files"].items() if "stored_as" in f} == {
        "profile/a%2fb",
        "profile/#x&y",
        "profile/#?/y",
    }


def test_a_simulated_directory_is_sent_when_it_is_allowed(server: str, tmp_path: Path) -> None:
    asked = spec(tmp_path)
    directory = run_directory(tmp_path / "pending", asked)
    assert ingest.main([str(directory), "--uri", server]) == 2
    assert ingest.main([str(directory), "--uri", server, "--allow-simulated"]) == 0
    assert not directory.exists()
    client = connect.connect(store.locate(asked.config.tracking, tmp_path, tmp_path))
    assert client.get_experiment_by_name("rms_norm (simulated)") is None  # not in the local store


def test_an_abandoned_run_on_a_server_is_closed(server: str, tmp_path: Path) -> None:
    asked, target, client = opened(server, tmp_path)
    directory = run_directory(target.pending, asked)
    run = runs.open_run(client, target, asked, MEASURED, directory)
    client.set_tag(run.run_id, "process.started", "another boot/1")
    assert janitor.close_abandoned(client, target) == [run.run_id]
    assert client.get_run(run.run_id).info.status == "FAILED"


def test_a_server_that_goes_away_costs_seconds_and_not_the_directory(
    server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    asked, target, client = opened(server, tmp_path)
    directory = run_directory(target.pending, asked, operators(source="key_averages"))
    run = runs.open_run(client, target, asked, MEASURED, directory)
    # the same client, on a port where nobody listens
    monkeypatch.setattr(
        client._tracking_client.store,
        "get_host_creds",
        lambda: type(client._tracking_client.store.get_host_creds())(
            "http://me:hunter2@127.0.0.1:1"
        ),
    )
    start = time.monotonic()
    with pytest.raises(StoreError) as caught:
        runs.close_run(run, outcome.conclude(directory, asked))
    assert time.monotonic() - start < 60  # MLflow's own patience is four minutes a call
    assert f"python -m src.ingest {directory}" in str(caught.value)
    assert "hunter2" not in str(caught.value) + caplog.text + "".join(capfd.readouterr())
    assert (directory / rundir.OPERATORS).is_file()


def test_a_thousand_small_files_arrive(
    server: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked, target, client = opened(server, tmp_path)
    directory = run_directory(target.pending, asked, operators(source="key_averages"))
    for number in range(1000):
        (directory / rundir.PROFILE / f"f{number}").write_bytes(b"x" * number)
    run = runs.open_run(client, target, asked, MEASURED, directory)
    runs.close_run(run, outcome.conclude(directory, asked))
    assert len(artifacts.listed(client, run.run_id)) > 1000
    assert "may take minutes" in caplog.text

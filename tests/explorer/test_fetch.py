"""A tracked run's files come back whole, under their own names, or not at all."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from src import fetch, ingest, rundir
from src.schema import TrackingConfig
from src.track import connect, fetched, runs
from src.track.outcome import conclude
from src.track.store import Store, locate
from tests import running
from tests.explorer.test_runs import hardware_run
from tests.track import test_server
from tests.track.making import READY, manifest_agrees, run_directory, spec

server = test_server.server
ODD = "neff_a#1%2_vnc_0.neff"  # a name that MLflow cannot send as it is


@pytest.fixture
def run(client: Any, local_store: Store) -> Any:
    assert ingest.main([str(hardware_run(local_store))]) == 0
    ids = [experiment.experiment_id for experiment in client.search_experiments()]
    (found,) = client.search_runs(ids)
    return found


def get(local_store: Store, run: Any, target: Path) -> int:
    return fetch.main([run.info.run_id, str(target), "--root", str(local_store.root)])


def test_the_whole_directory_comes_back(run: Any, local_store: Store, tmp_path: Path) -> None:
    assert get(local_store, run, tmp_path / "mine" / "back") == 0
    back, kept = tmp_path / "mine" / "back", Path(run.info.artifact_uri)
    assert manifest_agrees(back)
    names = {p.relative_to(kept): p.read_bytes() for p in kept.rglob("*") if p.is_file()}
    found = {p.relative_to(back): p.read_bytes() for p in back.rglob("*") if p.is_file()}
    assert found == names
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["back"]


def test_what_came_back_can_be_tracked_again(run: Any, local_store: Store, tmp_path: Path) -> None:
    assert get(local_store, run, tmp_path / "back") == 0
    assert ingest.main([str(tmp_path / "back"), "--root", str(local_store.root)]) == 0


def test_without_a_destination_it_is_the_id_here(
    run: Any, local_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert fetch.main([run.info.run_id[:10], "--root", str(local_store.root)]) == 0
    assert manifest_agrees(tmp_path / run.info.run_id)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("changed", "its sha256 is another"),
        ("cut", "bytes; its manifest says"),
        ("gone", "is not in"),
    ],
)
def test_a_file_that_is_not_as_tracked_stops_it_and_leaves_nothing(
    harm: str,
    said: str,
    run: Any,
    local_store: Store,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = next(Path(run.info.artifact_uri).rglob("ntrace.pb"))
    data = path.read_bytes()
    path.unlink()
    if harm != "gone":
        path.write_bytes(b"\x02" + data[1:] if harm == "changed" else data[:-1])
    (tmp_path / "mine").mkdir()
    assert get(local_store, run, tmp_path / "mine" / "back") == 1
    error = capsys.readouterr().err
    assert said in error
    assert "ntrace.pb" in error
    assert list((tmp_path / "mine").iterdir()) == []


def test_a_place_that_is_taken_is_left_alone(
    run: Any, local_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    assert get(local_store, run, tmp_path / "mine") == 2
    assert "is there already" in capsys.readouterr().err
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep me"


def test_a_manifest_cannot_write_elsewhere(
    run: Any, local_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(run.info.artifact_uri) / rundir.MANIFEST
    manifest = rundir.read_json(path)
    manifest["files"]["../outside.txt"] = {"size_bytes": 1, "sha256": "0"}
    rundir.write_json(path, manifest)
    assert get(local_store, run, tmp_path / "back") == 1
    assert "outside of the run" in capsys.readouterr().err


def test_a_run_without_a_manifest_says_so(
    run: Any, local_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (Path(run.info.artifact_uri) / rundir.MANIFEST).unlink()
    assert get(local_store, run, tmp_path / "back") == 2
    assert "no manifest.json" in capsys.readouterr().err


@pytest.mark.parametrize("run_id", ["0123abcd", "../x", "0" * 32])
def test_an_unknown_run_is_one_message(
    run_id: str,
    client: Any,
    local_store: Store,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = ["--root", str(local_store.root)]
    assert fetch.main([run_id, str(tmp_path / "back"), *root]) == 2
    assert run_id in capsys.readouterr().err


def test_a_folder_without_a_store_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetch.main(["0123abcd", "--root", str(tmp_path / "none")]) == 2
    assert "there is no store" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_the_script_does_the_same(run: Any, local_store: Store, tmp_path: Path) -> None:
    home = tmp_path / "checkout"
    for folder in ("scripts", ".venv/bin"):
        (home / folder).mkdir(parents=True)
    shutil.copy(running.REPOSITORY / "scripts" / "fetch_profile", home / "scripts")
    (home / "src").symlink_to(running.REPOSITORY / "src")
    for name, text in {
        "scripts/setup": "#!/bin/sh\n",
        ".venv/bin/python": f'#!/bin/sh\nexec "{sys.executable}" "$@"\n',
    }.items():
        (home / name).write_text(text)
        (home / name).chmod(0o755)
    done = subprocess.run(
        [
            str(home / "scripts" / "fetch_profile"),
            run.info.run_id,
            "back",
            "--root",
            str(local_store.root),
        ],
        cwd=tmp_path,
        env=running.environment(home),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "each as its manifest.json says" in done.stdout
    assert manifest_agrees(tmp_path / "back")


@pytest.mark.slow
def test_names_that_an_upload_had_to_change_are_restored(server: str, tmp_path: Path) -> None:
    store = locate(
        TrackingConfig("local", root=str(tmp_path / "r"), uri=server), tmp_path, tmp_path
    )
    store.pending.mkdir(parents=True)
    asked = spec(store.root, tracking_uri=server, tracking_allow_simulated=True)
    directory = run_directory(store.pending, asked)
    (directory / "profile" / "i-1_pid_2" / ODD).write_bytes(b"odd")
    client = connect.connect(store)
    opened = runs.open_run(client, store, asked, READY, directory)
    runs.close_run(opened, conclude(directory, asked))
    run = fetched.find(client, store, opened.run_id)
    assert fetch.main([opened.run_id, str(tmp_path / "back"), "--uri", server]) == 0
    assert (tmp_path / "back" / "profile" / "i-1_pid_2" / ODD).read_bytes() == b"odd"
    assert manifest_agrees(tmp_path / "back")
    assert run.info.status == "FINISHED"

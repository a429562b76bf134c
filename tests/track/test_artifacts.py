"""Run directories with odd things in them, moved and uploaded."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from src import rundir
from src.errors import StoreError
from src.track import artifacts, runs
from src.track.store import Store
from tests.track.making import READY, manifest_agrees, run_directory, spec


@pytest.fixture
def run(client: Any, local_store: Store) -> runs.Run:
    asked = spec(local_store.root)
    directory = run_directory(local_store.pending, asked)
    return runs.open_run(client, local_store, asked, READY, directory)


def keep(run: runs.Run) -> artifacts.Kept:
    return artifacts.keep(run.client, run.store, run.run_id, run.artifact_uri, run.directory)


@pytest.fixture(params=["moved", "uploaded"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "uploaded":
        monkeypatch.setattr(artifacts, "_same_file_system", lambda *_: False)
    return str(request.param)


def test_links_pipes_and_sockets_are_left_out_and_named(
    run: runs.Run, way: str, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "private").write_text("not yours")
    profile = run.directory / rundir.PROFILE
    (profile / "dead").symlink_to("/nonexistent")
    (profile / "file link").symlink_to(outside / "private")
    (profile / "folder link").symlink_to(outside)
    (profile / "loop").symlink_to(profile)
    (profile / "empty").mkdir()
    os.mkfifo(profile / "pipe")
    short = os.open(profile, os.O_RDONLY)
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"/proc/self/fd/{short}/s")
    keep(run).settle()
    server.close()
    os.close(short)
    kept = Path(run.artifact_uri)
    manifest = rundir.read_json(kept / rundir.MANIFEST)
    odd = {"dead", "file link", "folder link", "loop", "empty", "pipe", "s"}
    assert {f"profile/{name}" for name in odd} <= set(manifest["skipped"])
    assert manifest["where"]["how"] == way
    assert manifest_agrees(kept)
    assert not [path for path in kept.rglob("*") if path.is_symlink()]
    assert set(artifacts.listed(run.client, run.run_id)) == {*manifest["files"], rundir.MANIFEST}
    assert (outside / "private").read_text() == "not yours"


def test_odd_file_names_and_bytes_arrive_as_they_were(run: runs.Run, way: str) -> None:
    profile = run.directory / rundir.PROFILE
    contents = {
        "a b": b"\x00\xff",
        "ü 中": b"",
        "a:b": b"1",
        "a%2fb": b"2",
        "#x?y=1&z": b"3",
        "deep/er/and/deeper": b"4",
        "..dots": b"5",
        "-dash": b"6",
        "quote'\"": b"7",
    }
    for name, data in contents.items():
        (profile / name).parent.mkdir(parents=True, exist_ok=True)
        (profile / name).write_bytes(data)
    keep(run).settle()
    kept = Path(run.artifact_uri)
    assert manifest_agrees(kept)
    for name, data in contents.items():
        assert (kept / rundir.PROFILE / name).read_bytes() == data
    assert not run.directory.exists()


def test_a_directory_that_is_gone_is_a_store_error(run: runs.Run, way: str) -> None:
    run.directory.rename(run.directory.with_name("elsewhere"))
    with pytest.raises(StoreError, match=str(run.directory.name)):
        keep(run)


def test_a_file_that_does_not_arrive_is_noticed_and_the_directory_stays(
    run: runs.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "_same_file_system", lambda *_: False)
    real = run.client.log_artifact

    def lossy(run_id: str, path: str, folder: str | None) -> None:
        if not path.endswith(rundir.OPERATORS):
            real(run_id, path, folder)

    monkeypatch.setattr(run.client, "log_artifact", lossy)
    with pytest.raises(StoreError, match=rundir.OPERATORS):
        keep(run)
    assert (run.directory / rundir.OPERATORS).is_file()


def test_a_file_that_arrives_cut_is_noticed(run: runs.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "_same_file_system", lambda *_: False)
    real = run.client.log_artifact

    def cutting(run_id: str, path: str, folder: str | None) -> None:
        real(run_id, path, folder)
        if path.endswith(rundir.OPERATORS):
            (Path(run.artifact_uri) / rundir.OPERATORS).write_text("{")

    monkeypatch.setattr(run.client, "log_artifact", cutting)
    with pytest.raises(StoreError, match="did not arrive whole"):
        keep(run)


def test_a_move_can_be_undone(run: runs.Run) -> None:
    before = sorted(path.relative_to(run.directory) for path in run.directory.rglob("*"))
    keep(run).undo()
    after = sorted(path.relative_to(run.directory) for path in run.directory.rglob("*"))
    assert set(before) | {Path(rundir.MANIFEST)} == set(after)


def test_what_an_earlier_attempt_left_out_stays_noted(run: runs.Run) -> None:
    (run.directory / rundir.PROFILE / "dead").symlink_to("/nonexistent")
    keep(run).undo()
    keep(run)
    manifest = rundir.read_json(Path(run.artifact_uri) / rundir.MANIFEST)
    assert "profile/dead" in manifest["skipped"]


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("/a/b c#d", "/a/b c#d"),
        ("file:///a/b%20c", "/a/b c"),
        ("file://localhost/a", "/a"),
        ("mlflow-artifacts:/1/2/artifacts", None),
        ("s3://bucket/x", None),
        ("file://other/share", None),
    ],
)
def test_only_a_local_artifact_uri_has_a_path(uri: str, expected: str | None) -> None:
    found = artifacts.local_path(uri)
    assert found == (None if expected is None else Path(expected))

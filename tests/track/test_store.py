"""A store is found and checked before any device work, and a bad one is named in one message."""

from __future__ import annotations

import socket
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from src.errors import UserError
from src.schema import TrackingConfig
from src.track import probe
from src.track.store import check, discard_empty, locate
from tests.track.making import web_server


def at(cwd: Path, name: str = "local", **fields: Any) -> Any:
    return locate(TrackingConfig(name=name, **fields), cwd, cwd / "repository")


def refusal(store: Any, **more: Any) -> str:
    with pytest.raises(UserError) as caught:
        check(store, simulated=False, **more)
    return str(caught.value)


def test_the_default_store_is_the_repositorys(tmp_path: Path) -> None:
    store = at(tmp_path)
    assert store.root == tmp_path / "repository" / "mlruns"
    assert store.uri == f"sqlite:///{store.root}/mlflow.db"
    assert store.local


def test_a_relative_root_starts_where_the_command_was_typed(tmp_path: Path) -> None:
    assert at(tmp_path, root="here/../there").root == tmp_path / "there"
    assert at(tmp_path, uri="sqlite:///x.db").uri == f"sqlite:///{tmp_path}/x.db"


def test_home_and_variables_in_a_path_are_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert at(tmp_path / "x", root="~/runs").root == tmp_path / "runs"
    assert at(tmp_path / "x", root="$HOME/runs").root == tmp_path / "runs"


def test_the_environments_tracking_uri_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://elsewhere")
    assert at(tmp_path, root="x").uri.startswith("sqlite")


def test_no_tracking_has_a_spool_only(tmp_path: Path) -> None:
    store = at(tmp_path, name="none", root="x")
    check(store, simulated=True)
    assert store.uri is None
    assert store.pending.is_dir()


@pytest.mark.parametrize("root", ["a?b", "a#b", "a%20b", "a\nb"])
def test_a_path_that_mlflow_would_misread_is_refused(tmp_path: Path, root: str) -> None:
    with pytest.raises(UserError, match="does not work as an MLflow store"):
        at(tmp_path, root=root)


@pytest.mark.parametrize(
    "uri", ["sqlite://", "sqlite:///:memory:", "mlruns", "file:///x", "ftp://x"]
)
def test_an_address_that_keeps_nothing_is_refused(tmp_path: Path, uri: str) -> None:
    with pytest.raises(UserError, match=r"tracking\.uri"):
        at(tmp_path, uri=uri)


@pytest.mark.parametrize("root", ["/proc/x", "/dev/null/x", "/sys/x"])
def test_an_unwritable_root_is_one_quick_message(tmp_path: Path, root: str) -> None:
    start = time.monotonic()
    assert f"tracking.root={root}" in refusal(at(tmp_path, root=root))
    assert time.monotonic() - start < 20  # MLflow itself tries for 100 s


def test_an_unopenable_database_is_one_quick_message(tmp_path: Path) -> None:
    assert "tracking.uri=/proc/x.db" in refusal(at(tmp_path, root="r", uri="sqlite:////proc/x.db"))


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in refusal(at(tmp_path, root="file"))


def test_a_failed_check_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "pending").write_text("in the way")
    refusal(at(tmp_path, root="db"))
    assert [p.name for p in tmp_path.rglob("*")] == ["db", "pending"]


def test_a_refused_run_can_take_its_empty_folders_away(tmp_path: Path) -> None:
    store = at(tmp_path, root="new")
    check(store, simulated=False)
    assert store.pending.is_dir()
    discard_empty(store)
    assert not store.root.exists()


def test_a_database_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("hello " * 500)
    assert "no sqlite database" in refusal(at(tmp_path, root="."))


def test_a_folder_in_place_of_the_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").mkdir()
    assert "is not a file" in refusal(at(tmp_path, root="."))


def test_a_dead_link_in_place_of_the_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").symlink_to("/nonexistent/x.db")
    assert "is not a file" in refusal(at(tmp_path, root="."))


def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "mlflow.db") as connection:
        connection.execute("CREATE TABLE recipes (x)")
    assert "recipes" in refusal(at(tmp_path, root="."))


def test_a_database_in_use_is_no_fault(tmp_path: Path, schema_file: Path) -> None:
    (tmp_path / "mlflow.db").write_bytes(schema_file.read_bytes())
    connection = sqlite3.connect(tmp_path / "mlflow.db")
    connection.execute("BEGIN EXCLUSIVE")
    check(at(tmp_path, root="."), simulated=False)
    connection.close()


@pytest.mark.parametrize("value", ["11", "-1", "many", "1.5", ""])
def test_retries_that_mlflow_would_refuse_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", value)
    assert "MLFLOW_HTTP_REQUEST_MAX_RETRIES" in refusal(at(tmp_path, root="r"))


@pytest.mark.parametrize(
    "uri",
    ["http://h", "https://h", "databricks", "databricks://p", "postgresql://h/d", "HTTP://h"],
)
def test_a_simulated_run_goes_to_no_server_unasked(tmp_path: Path, uri: str) -> None:
    with pytest.raises(UserError, match="simulated"):
        check(at(tmp_path, root="r", uri=uri), simulated=True)
    assert not (tmp_path / "r").exists()


SECRET = "me:hunter2@"


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, b"", "401"),
        (403, b"", "403"),
        (404, b"", "404"),
        (408, b"", "408"),
        (429, b"", "429"),
        (500, b"", "500"),
        (503, b"", "503"),
        (302, b"", "sends us on"),
        (200, b"<html>", "not as MLflow"),
        (200, b"", "not as MLflow"),
        (200, b"[1]", "not as MLflow"),
        (204, b"", "204"),
    ],
)
def test_a_server_that_will_not_do_is_named_without_the_password(
    tmp_path: Path, status: int, body: bytes, words: str
) -> None:
    location = {"Location": "http://me:hunter2@127.0.0.1/loop"}
    with web_server(status, body, location) as (address, seen):
        uri = address.replace("http://", f"http://{SECRET}")
        said = refusal(at(tmp_path, root="r", uri=uri))
    assert words in said
    assert "hunter2" not in said
    assert len(seen) == 1


def test_a_server_that_answers_is_taken_and_gets_the_password(tmp_path: Path) -> None:
    with web_server(200, b'{"experiments": []}') as (address, seen):
        uri = address.replace("http://", f"http://{SECRET}") + "/"
        store = at(tmp_path, root="r", uri=uri)
        check(store, simulated=False)
    assert seen[0][0].startswith("/api/2.0/mlflow/experiments/search")
    assert seen[0][1]["Authorization"].startswith("Basic ")
    assert store.shown_uri == address


@pytest.mark.parametrize(
    "uri",
    [
        f"http://{SECRET}127.0.0.1:1",
        f"http://{SECRET}no-such-host.invalid",
        f"http://{SECRET}",
        f"http://{SECRET}host:port",
        f"https://{SECRET}127.0.0.1:1",
        f"postgresql://{SECRET}127.0.0.1:1/db",
        f"mysql+pymysql://{SECRET}no-such-host.invalid/db",
    ],
)
def test_an_address_where_nobody_answers_is_one_message(tmp_path: Path, uri: str) -> None:
    said = refusal(at(tmp_path, root="r", uri=uri))
    assert "hunter2" not in said
    assert "leave it out" in said
    assert "\n" not in said


def test_a_server_that_accepts_and_says_nothing_is_left_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "TIMEOUTS_S", (0.3, 0.3))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://{SECRET}127.0.0.1:{silent.getsockname()[1]}"
        assert "did not answer" in refusal(at(tmp_path, root="r", uri=uri))


def test_a_server_that_sends_byte_by_byte_is_left_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "DEADLINE_S", 1.0)
    stop = threading.Event()

    def drip() -> None:
        connection, _ = server.accept()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not stop.wait(0.1):
            connection.sendall(b"x")
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=drip, daemon=True).start()
        uri = f"http://{SECRET}127.0.0.1:{server.getsockname()[1]}"
        said = refusal(at(tmp_path, root="r", uri=uri))
        stop.set()
    assert "did not answer within" in said
    assert "hunter2" not in said

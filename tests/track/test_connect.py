"""Opening a store: new, half-made, locked or shared by many; and its experiments."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from src.errors import StoreError, UserError
from src.schema import TrackingConfig
from src.track import connect
from src.track.store import Store, locate

REPOSITORY = Path(__file__).parents[2]
FIRST_RUN = """
import sys
from pathlib import Path
from src.schema import TrackingConfig
from src.track import connect, store
root = Path(sys.argv[1])
found = store.locate(TrackingConfig(name="local", root=str(root)), root, root)
store.check(found, simulated=True)
client = connect.connect(found)
print(connect.experiment_id(client, found, "one name"))
"""


def test_simulated_runs_have_an_experiment_of_their_own() -> None:
    assert connect.experiment_name(None, "rms_norm", simulated=False) == "rms_norm"
    assert connect.experiment_name(None, "rms_norm", simulated=True) == "rms_norm (simulated)"
    assert connect.experiment_name("mine (simulated)", "x", simulated=True) == "mine (simulated)"


@pytest.mark.parametrize("name", ["   ", "x" * 501])
def test_an_experiment_name_that_mlflow_refuses_is_a_user_error(name: str) -> None:
    with pytest.raises(UserError, match=r"tracking\.experiment"):
        connect.experiment_name(name, "rms_norm", simulated=False)


def test_experiments_of_different_names_have_different_folders() -> None:
    every = ["a", "a b", "a/b", "a_b", "..", "ü", "x" * 300, "x" * 301, "A (simulated)"]
    folders = [connect.folder_name(name) for name in every]
    assert len(set(folders)) == len(every)
    assert all("/" not in folder and folder.strip(".") for folder in folders)


def test_an_experiment_keeps_its_artifacts_under_the_root_for_every_working_directory(
    client: Any, local_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = connect.experiment_id(client, local_store, "rms_norm")
    monkeypatch.chdir("/")
    assert connect.experiment_id(client, local_store, "rms_norm") == first
    location = client.get_experiment(first).artifact_location
    assert location == str(local_store.root / "artifacts" / "rms_norm")


def test_an_experiment_made_elsewhere_is_used_with_a_warning(
    client: Any, local_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    made = client.create_experiment("moved", "/old/place")
    with caplog.at_level(logging.WARNING):
        assert connect.experiment_id(client, local_store, "moved") == made
    assert "/old/place" in caplog.text


def test_a_deleted_experiment_is_a_user_error_with_the_ways_out(
    client: Any, local_store: Store
) -> None:
    client.delete_experiment(connect.experiment_id(client, local_store, "gone"))
    with pytest.raises(UserError) as caught:
        connect.experiment_id(client, local_store, "gone")
    for way in ("mlflow experiments restore", "mlflow gc", "tracking.experiment=<another name>"):
        assert way in str(caught.value)


def test_two_runs_that_make_one_experiment_at_once_share_it(
    client: Any, local_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = client.create_experiment("raced", str(local_store.artifacts / "raced"))
    real, answers = client.get_experiment_by_name, [None]
    monkeypatch.setattr(
        client, "get_experiment_by_name", lambda n: answers.pop() if answers else real(n)
    )
    assert connect.experiment_id(client, local_store, "raced") == made


@pytest.mark.usefixtures("no_waiting")
def test_a_lock_that_passes_is_waited_for_and_one_that_stays_is_a_store_error(
    local_store: Store,
) -> None:
    answers: list[Any] = [sqlite3.OperationalError("database is locked"), "done"]

    def action() -> Any:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert connect.patiently(local_store, action) == "done"
    answers[:] = [sqlite3.OperationalError("database is locked")]
    with pytest.raises(StoreError, match="network drive"):
        connect.patiently(local_store, action)


def test_other_errors_are_not_tried_again(local_store: Store) -> None:
    calls = []

    def action() -> None:
        calls.append(1)
        raise ValueError("no http://me:hunter2@host today")

    with pytest.raises(StoreError) as caught:
        connect.patiently(local_store, action)
    assert len(calls) == 1
    assert "hunter2" not in str(caught.value)


def test_a_real_lock_of_a_few_seconds_is_survived(client: Any, local_store: Store) -> None:
    held = sqlite3.connect(local_store.database or "", check_same_thread=False)
    held.execute("BEGIN EXCLUSIVE")
    timer = threading.Timer(1.0, held.rollback)
    timer.start()
    assert connect.experiment_id(client, local_store, "after the lock")
    timer.join()
    held.close()


def half_made(schema_file: Path, root: Path) -> Store:
    """A database whose making was cut short: later tables there, the version an early one."""
    database = root / "mlflow.db"
    database.write_bytes(schema_file.read_bytes())
    with sqlite3.connect(database) as connection:
        connection.execute("DROP TABLE trace_tags")
        connection.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")
    return locate(TrackingConfig(name="local", root=str(root)), root, root)


def test_a_half_made_database_is_named_with_what_to_delete(
    schema_file: Path, tmp_path: Path
) -> None:
    store = half_made(schema_file, tmp_path)
    with pytest.raises(StoreError) as caught:
        connect.connect(store)
    assert f"Delete {store.database}" in str(caught.value)


def test_a_database_of_another_mlflow_is_named_with_what_to_run(
    schema_file: Path, tmp_path: Path
) -> None:
    database = tmp_path / "mlflow.db"
    database.write_bytes(schema_file.read_bytes())
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'from_the_future'")
    with pytest.raises(StoreError, match="mlflow db upgrade"):
        connect.connect(locate(TrackingConfig(name="local", root="."), tmp_path, tmp_path))


@pytest.mark.slow
def test_eight_first_runs_at_once_all_succeed(tmp_path: Path) -> None:
    root = tmp_path / "new"
    command = [sys.executable, "-c", FIRST_RUN, str(root)]
    running = [
        subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(8)
    ]
    said = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0] * 8, said
    assert len({out for out, _ in said}) == 1


def test_the_client_does_not_follow_the_environments_uri(
    local_store: Store, monkeypatch: pytest.MonkeyPatch, no_waiting: Callable[[], None]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")
    client = connect.connect(local_store)
    assert client.get_experiment_by_name("Default") is not None

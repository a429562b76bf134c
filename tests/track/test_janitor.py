"""Runs whose process is gone are closed; all others are left alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from src import rundir
from src.track import identity, janitor, runs
from src.track.store import Store
from tests.track.making import READY, run_directory, spec

KILLED_PARENT = """
import os, signal, sys
from pathlib import Path
from src.track import connect, runs, store
from tests.track.making import READY, run_directory, spec
root = Path(sys.argv[1])
asked = spec(root)
found = store.locate(asked.config.tracking, root, root)
directory = run_directory(found.pending, asked)
run = runs.open_run(connect.connect(found), found, asked, READY, directory)
print(run.run_id, directory, sep="\\n", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_run_whose_process_was_killed_is_closed_with_the_way_on(
    client: Any, local_store: Store
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED_PARENT, str(local_store.root)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    run_id, directory = done.stdout.splitlines()
    assert client.get_run(run_id).info.status == "RUNNING"
    assert janitor.close_abandoned(client, local_store) == [run_id]
    run = client.get_run(run_id)
    assert run.info.status == "FAILED"
    assert f"python -m src.ingest {directory}" in run.data.tags["error"]
    assert janitor.close_abandoned(client, local_store) == []


@pytest.fixture
def run(client: Any, local_store: Store) -> runs.Run:
    asked = spec(local_store.root)
    directory = run_directory(local_store.pending, asked)
    return runs.open_run(client, local_store, asked, READY, directory)


def test_a_run_of_a_living_process_is_left_alone(run: runs.Run) -> None:
    assert janitor.close_abandoned(run.client, run.store) == []
    assert run.client.get_run(run.run_id).info.status == "RUNNING"


def test_a_pid_that_another_process_has_now_is_not_mistaken_for_ours(run: runs.Run) -> None:
    run.client.set_tag(run.run_id, "process.started", "another boot/1")
    assert janitor.close_abandoned(run.client, run.store) == [run.run_id]


@pytest.mark.parametrize(
    ("tag", "value"),
    [("process.machine", "another"), ("process.started", "unknown"), ("process.pid", "x")],
)
def test_a_run_that_cannot_be_judged_is_left_alone(run: runs.Run, tag: str, value: str) -> None:
    run.client.set_tag(run.run_id, "process.started", "another boot/1")
    run.client.set_tag(run.run_id, tag, value)
    assert janitor.close_abandoned(run.client, run.store) == []


def test_a_directory_that_was_moved_before_the_end_is_named_where_it_is(run: runs.Run) -> None:
    kept = Path(run.artifact_uri)
    kept.parent.mkdir(parents=True)
    run.directory.rename(kept)
    run.client.set_tag(run.run_id, "process.started", "another boot/1")
    janitor.close_abandoned(run.client, run.store)
    assert f"src.ingest {kept}" in run.client.get_run(run.run_id).data.tags["error"]
    assert (kept / rundir.SPEC).is_file()


def test_a_store_that_fails_the_janitor_does_not_fail_the_run(
    run: runs.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run.client, "search_experiments", lambda: 1 / 0)
    assert janitor.close_abandoned(run.client, run.store) == []


def test_a_process_is_known_by_pid_and_start() -> None:
    mine = identity.this_process()
    assert not identity.has_ended(mine)
    assert identity.has_ended({**mine, "started": "then"})
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    theirs = {**mine, "pid": str(child.pid), "started": identity.start_time(child.pid) or ""}
    assert not identity.has_ended(theirs)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert identity.has_ended(theirs)  # a zombie, not reaped yet
    child.communicate()
    assert identity.has_ended(theirs)

"""NEFF cache, disk, store, server and what was left behind, with real files and databases."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from src import rundir
from src.diagnose import disk, tracking
from src.diagnose.finding import NOT_APPLICABLE, OK, PROBLEM, WARNING, Machine
from src.schema import TrackingConfig
from src.track import connect, identity, notes

from . import planting
from .planting import LAPTOP, WORKING

GONE = {"pid": "4194305", "machine": identity.machine(), "started": "long ago"}


def test_a_neff_cache_is_counted(tmp_path: Path) -> None:
    (found,) = disk.neff_cache(planting.trainium(tmp_path), WORKING)
    assert (found.status, found.found) == (OK, "/tmp/neff_cache: 1 NEFF, 2.0 kB")


def test_a_neff_cache_not_yet_made_is_no_trouble(tmp_path: Path) -> None:
    machine = planting.trainium(tmp_path, TORCH_NEURONX_NEFF_CACHE_DIR="/data/cache")
    (found,) = disk.neff_cache(machine, WORKING)
    assert (found.status, found.found) == (OK, "/data/cache: made by the first compile")


def test_a_neff_cache_of_somebody_else_and_a_file_in_its_place_are_problems(
    tmp_path: Path,
) -> None:
    machine = planting.trainium(tmp_path)
    (closed,) = disk.neff_cache(replace(machine, may_use=lambda path: False), WORKING)
    shutil.rmtree(machine.path("/tmp/neff_cache"))
    planting.write(machine.path("/tmp/neff_cache"))
    (file,) = disk.neff_cache(machine, WORKING)
    for found in (closed, file):
        assert found.status == PROBLEM
        assert "export TORCH_NEURONX_NEFF_CACHE_DIR=" in str(found.cure)


def test_the_default_cache_is_the_one_that_runs_use() -> None:
    from src.measure.devices import neuron

    assert neuron.DEFAULT_NEFF_CACHE == disk.DEFAULT_NEFF_CACHE


class _Usage(NamedTuple):
    free: float


@pytest.mark.parametrize(
    ("free", "neuron", "status"),
    [
        (0.1e9, False, PROBLEM),
        (0.5e9, False, WARNING),
        (2e9, False, OK),
        (0.5e9, True, PROBLEM),
        (6e9, True, WARNING),
        (50e9, True, OK),
    ],
)
def test_a_full_disk_depends_on_what_profiles_take(
    free: float, neuron: bool, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda place: _Usage(free))
    assert disk.free_space(tmp_path / "not/yet/there", neuron).status == status


def test_a_store_that_does_not_exist_is_made_by_a_run_and_not_by_looking(tmp_path: Path) -> None:
    machine = planting.laptop(tmp_path)
    (found,) = tracking.tracking_store(machine, LAPTOP)
    assert (found.status, "made by the first run" in found.found) == (OK, True)
    assert not (tmp_path / "store").exists()


def test_an_empty_root_stays_empty(tmp_path: Path) -> None:
    machine = planting.laptop(tmp_path)
    (tmp_path / "store").mkdir()
    assert tracking.tracking_store(machine, LAPTOP)[0].status == OK
    assert list((tmp_path / "store").iterdir()) == []


def test_a_root_below_a_file_and_a_database_of_something_else_are_problems(
    tmp_path: Path,
) -> None:
    machine = planting.laptop(tmp_path)
    planting.write(tmp_path / "store")
    (below,) = tracking.tracking_store(machine, LAPTOP)
    (tmp_path / "store").unlink()
    planting.write(tmp_path / "store/mlflow.db", "no database at all, but long enough to be read")
    (other,) = tracking.tracking_store(machine, LAPTOP)
    for found in (below, other):
        assert found.status == PROBLEM
        assert "Type tracking.root=" in str(found.cure)


@pytest.fixture(scope="module")
def real_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with MLflow's own schema; tests copy it."""
    folder = tmp_path_factory.mktemp("real")
    connect.connect(tracking.located(planting.laptop(folder)))
    return folder / "store"


def _copied(real_store: Path, folder: Path) -> Machine:
    shutil.copytree(real_store, folder / "store")
    return planting.laptop(folder)


def _execute(machine: Machine, sql: str, *values: str) -> None:
    connection = sqlite3.connect(Path(str(machine.tracking.root)) / "mlflow.db")
    with connection:
        connection.execute(sql, values)
    connection.close()


def test_a_real_store_opens_with_the_current_schema(real_store: Path, tmp_path: Path) -> None:
    (found,) = tracking.tracking_store(_copied(real_store, tmp_path), LAPTOP)
    assert found.status == OK
    assert found.found.endswith("(current)")


def test_an_older_schema_and_an_unknown_one_are_problems(real_store: Path, tmp_path: Path) -> None:
    machine = _copied(real_store, tmp_path)
    first = "451aebb31d03"  # MLflow's first schema version
    _execute(machine, "UPDATE alembic_version SET version_num = ?", first)
    (old,) = tracking.tracking_store(machine, LAPTOP)
    assert old.status == PROBLEM
    assert str(old.cure).startswith("mlflow db upgrade sqlite:///")
    _execute(machine, "UPDATE alembic_version SET version_num = ?", "ffffffffffff")
    (new,) = tracking.tracking_store(machine, LAPTOP)
    assert new.status == PROBLEM
    assert "pip install --upgrade mlflow" in str(new.cure)


def test_runs_left_in_pending_are_reported_but_not_the_one_being_measured(tmp_path: Path) -> None:
    machine = planting.laptop(tmp_path)
    assert tracking.pending_runs(machine, LAPTOP)[0].status == OK
    pending = tmp_path / "store/pending"
    notes.update(rundir.create(pending, 0), process=identity.this_process())
    assert tracking.pending_runs(machine, LAPTOP)[0].status == OK
    notes.update(rundir.create(pending, 1), process=GONE)
    (found,) = tracking.pending_runs(machine, LAPTOP)
    assert found.status == WARNING
    assert found.found.startswith("1 run not tracked yet")
    assert f"--pending --root {tmp_path}/store" in str(found.cure)


def _running(machine: Machine, run_id: str, process: dict[str, str]) -> None:
    sql = "INSERT INTO runs (run_uuid, status, experiment_id) VALUES (?, 'RUNNING', '0')"
    _execute(machine, sql, run_id)
    for key, value in process.items():
        sql = "INSERT INTO tags (run_uuid, key, value) VALUES (?, ?, ?)"
        _execute(machine, sql, run_id, f"process.{key}", value)


def test_running_runs_whose_process_is_gone_are_reported(real_store: Path, tmp_path: Path) -> None:
    machine = _copied(real_store, tmp_path)
    _running(machine, "a" * 32, identity.this_process())
    (alive,) = tracking.abandoned_runs(machine, LAPTOP)
    assert (alive.status, alive.found) == (OK, "none (1 run RUNNING)")
    _running(machine, "b" * 32, GONE)
    (found,) = tracking.abandoned_runs(machine, LAPTOP)
    assert found.status == WARNING
    assert "b" * 32 in found.found
    assert "a" * 32 not in found.found


def test_no_database_has_no_abandoned_runs(tmp_path: Path) -> None:
    (found,) = tracking.abandoned_runs(planting.laptop(tmp_path), LAPTOP)
    assert found.status == NOT_APPLICABLE


def test_a_server_that_is_down_is_a_problem_without_its_password(tmp_path: Path) -> None:
    tracked = TrackingConfig(name="local", root=str(tmp_path / "store"))
    tracked.uri = "http://someone:hunter22@127.0.0.1:1"
    (found,) = tracking.tracking_store(replace(planting.laptop(tmp_path), tracking=tracked), LAPTOP)
    assert (found.name, found.status) == ("server", PROBLEM)
    assert "hunter22" not in found.found + str(found.cure)
    assert "Type tracking.uri=" in str(found.cure)

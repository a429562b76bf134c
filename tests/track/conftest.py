"""A store for each test: real sqlite, its schema copied from one made once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from src.schema import TrackingConfig
from src.track import connect
from src.track.store import Store, locate


@pytest.fixture(scope="session")
def schema_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("schema")
    store = locate(TrackingConfig(name="local", root=str(root)), root, root)
    connect.connect(store)
    assert store.database is not None
    return store.database


@pytest.fixture
def local_store(tmp_path: Path, schema_file: Path) -> Store:
    """A local store with its schema in place, in a folder of its own."""
    root = tmp_path / "runs of ü's"
    (root / "pending").mkdir(parents=True)
    shutil.copy(schema_file, root / "mlflow.db")
    return locate(TrackingConfig(name="local", root=str(root)), tmp_path, tmp_path)


@pytest.fixture
def client(local_store: Store) -> Any:
    return connect.connect(local_store)


@pytest.fixture(autouse=True)
def no_user_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests must not depend on the MLflow settings of whoever runs them."""
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Take the pauses out of retries."""
    monkeypatch.setattr(connect, "LOCKED_PAUSES_S", (0.0, 0.0, 0.0))
    return lambda: None

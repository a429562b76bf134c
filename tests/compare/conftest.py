"""A store with hand-made runs, tracked as a user would: through the door of ingest."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from src.schema import TrackingConfig
from src.track import connect
from src.track.store import locate

from . import making


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("empty")
    connect.connect(locate(TrackingConfig("local", root=str(root)), root, root))
    return root / "mlflow.db"


@pytest.fixture
def root(tmp_path: Path, empty_store: Path) -> Path:
    """A tracking root whose store has its schema and nothing else."""
    folder = tmp_path / "runs"
    folder.mkdir()
    shutil.copy(empty_store, folder / "mlflow.db")
    return folder


@pytest.fixture
def send(root: Path, tmp_path: Path) -> Callable[..., Path]:
    """Make one run directory, track it, and return the directory."""

    def make(*args: object, **more: object) -> Path:
        made = making.directory(tmp_path / "made", *args, **more)  # type: ignore[arg-type]
        code = making.ingest.main([str(made), "--root", str(root)])
        assert code == 0
        return made

    return make

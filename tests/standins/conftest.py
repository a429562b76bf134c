"""The nursery for this folder's tests: one process with torch, from which children are forked."""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from src.schema import Spec
from src.track import child

from . import asking

SOURCE = Path(child.__file__).resolve().parents[1]
Measure = Callable[..., asking.Result]


@pytest.fixture(scope="session")
def nursery() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        script = str(Path(__file__).with_name("nursery.py"))
        environ = asking.environment(Path(folder), PYTHONPATH="")
        with subprocess.Popen(
            [sys.executable, script, "serve", path],
            env={**environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        ) as process:
            end = time.monotonic() + 120
            while not Path(path).exists():
                assert process.poll() is None, "the nursery did not start"
                assert time.monotonic() < end
                time.sleep(0.05)
            yield path
            process.kill()


@pytest.fixture(scope="session")
def measure_anywhere(nursery: str) -> Measure:
    """Measure through the stand-in with a mood, in a forked child, under `root`."""

    def run(
        mood: str = "",
        asked: Spec | None = None,
        *,
        root: Path,
        source: Path = SOURCE,
        product: Path = asking.CURRENT,
        **variables: str,
    ) -> asking.Result:
        environ = asking.environment(root, mood, product, **variables)
        script = str(Path(__file__).with_name("nursery.py"))
        command = [sys.executable, "-S", script, "ask", nursery, str(source), child.BOOT]
        return asking.measure(root, asked=asked, environ=environ, command=command)

    return run


@pytest.fixture
def measure(measure_anywhere: Measure, tmp_path: Path) -> Measure:
    """The same in the test's own folder."""
    return functools.partial(measure_anywhere, root=tmp_path)

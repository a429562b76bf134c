"""Profiles that other scripts captured, made once by running such scripts."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from src.track.store import Store
from tests import running
from tests.track import conftest as track

EXAMPLES = running.REPOSITORY / "docs" / "examples"
schema_file = track.schema_file
local_store = track.local_store
client = track.client

PLAIN = """
import sys
import torch
from torch.profiler import ProfilerActivity, profile, schedule
x = torch.randn(16, 16)
def ready(prof):
    print(sum(row.self_cpu_time_total for row in prof.key_averages()))
    prof.export_chrome_trace(sys.argv[1] + "/trace.json")
steps = schedule(wait=0, warmup=1, active=2, repeat=1)
with profile(activities=[ProfilerActivity.CPU], schedule=steps, on_trace_ready=ready) as prof:
    for _ in range(3):
        torch.relu(x @ x) + 1
        prof.step()
"""


def run_script(script: Path, *arguments: str, **variables: str) -> str:
    """Run a script against the simulated device; its stdout."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.foreign.on_simulator", str(script), *arguments],
        cwd=running.REPOSITORY,
        env=running.environment(**variables),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def _handled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("handled")
    cache = {
        "TORCH_NEURONX_NEFF_CACHE_DIR": str(folder / "cache"),
        "NEURON_RT_LOG_TOKEN": "hunter22",
    }
    run_script(EXAMPLES / "profile_mlp.py", str(folder / "out"), **cache)
    return folder / "out"


@pytest.fixture
def handled(_handled: Path, tmp_path: Path) -> Path:
    """What docs/examples/profile_mlp.py leaves."""
    return Path(shutil.copytree(_handled, tmp_path / "handled"))


@pytest.fixture(scope="session")
def _plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    folder = tmp_path_factory.mktemp("plain")
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, str(folder)],
        env=running.environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder, float(done.stdout.split()[-1])


@pytest.fixture
def plain(_plain: tuple[Path, float], tmp_path: Path) -> tuple[Path, float]:
    """A directory with nothing but torch's own trace.json of two steps, and its Self CPU total."""
    return Path(shutil.copytree(_plain[0], tmp_path / "plain")), _plain[1]


def only_run(client: Any, store: Store) -> Any:
    """The single run of a store."""
    ids = [experiment.experiment_id for experiment in client.search_experiments()]
    found = client.search_runs(ids)
    assert len(found) == 1
    return found[0]

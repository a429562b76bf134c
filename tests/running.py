"""Runs the product as a user does, in a process of its own, and reads back what it tracked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
HOME = REPOSITORY  # where `python -m src.run` finds the package


def environment(home: Path = HOME, **more: str) -> dict[str, str]:
    """The environment of a laptop: without what this machine may say of Neuron."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("NEURON_", "TORCH_NEURONX"))}
    return {**plain, "PYTHONPATH": str(home), "OMP_NUM_THREADS": "1", **more}


def command(root: Path, *overrides: str, door: str = "run") -> list[str]:
    return [sys.executable, "-m", f"src.{door}", f"tracking.root={root}", *overrides]


def run(
    root: Path, *overrides: str, home: Path = HOME, cwd: Path | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    """One run of `python -m src.run`; its output is in the result."""
    return subprocess.run(
        command(root, *overrides),
        cwd=cwd or root.parent,
        env=environment(home, **more),
        capture_output=True,
        text=True,
        timeout=400,
    )


def start(root: Path, *overrides: str, **more: str) -> subprocess.Popen[str]:
    """The same in the background, with its stages to be read from stderr."""
    return subprocess.Popen(
        command(root, *overrides),
        cwd=root.parent,
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def tracked(root: Path) -> list[Any]:
    """All profile runs of a local store, oldest first; no summaries of sweeps."""
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{root}/mlflow.db")
    ids = [experiment.experiment_id for experiment in client.search_experiments()]
    runs = [run for run in client.search_runs(ids) if run.data.tags.get("kind") != "summary"]
    return sorted(runs, key=lambda run: run.info.start_time)


def artifacts(run_: Any) -> Path:
    return Path(run_.info.artifact_uri.removeprefix("file://"))


def only_child(pid: int) -> int | None:
    """The pid of the measuring child of a running command; None while there is none."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            words = path.with_name("cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == pid and b"_neuron_job" in words:
            return int(path.parent.name)
    return None

"""What neuron-explorer told of a run that is tracked already: metrics, tags, explorer.json.

Called by explore.py. Status, headline metrics and the other files stay as they were.
"""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import rundir
from ..analyze import explored
from ..analyze.explored import Explored
from . import facts, names
from .connect import patiently
from .store import Store

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient


def add(client: MlflowClient, store: Store, run: Any, directory: Path, found: Explored) -> int:
    """Add to the run, and bring its manifest in step; returns the number of metrics."""
    from mlflow.entities import Metric, RunTag

    operators = rundir.read_operators(directory)
    metrics = explored.metrics(operators, found) if operators else dict(found.engines)
    strict = not any(":" in name for name in run.data.metrics)
    keys = names.keys_of(metrics, strict)
    now_ms, run_id = int(time.time() * 1000), run.info.run_id
    said = {
        "explorer": found.mode,
        "explorer_version": found.version,
        "explorer_warnings": "; ".join(found.warnings) or None,
    }
    explored.write(directory, found)
    manifest = rundir.read_json(directory / rundir.MANIFEST)
    path = directory / rundir.EXPLORER
    manifest["files"][rundir.EXPLORER] = {
        "size_bytes": path.stat().st_size,
        "sha256": rundir.sha256_of(path),
    }
    rundir.write_json(directory / rundir.MANIFEST, manifest)
    if str(directory) != str(_own(run)):
        for name in (rundir.EXPLORER, rundir.MANIFEST):
            send = functools.partial(client.log_artifact, run_id, str(directory / name))
            patiently(store, send)
    items = [Metric(keys[name], float(value), now_ms, 0) for name, value in metrics.items()]
    tags = [RunTag(name, value) for name, value in facts.as_tags(said).items()]
    patiently(store, lambda: client.log_batch(run_id, metrics=items, tags=tags, synchronous=True))
    return len(items)


def _own(run: Any) -> Path | None:
    from .fetched import local_directory

    return local_directory(run)

"""How long comparing takes beyond imports, for stores with 2, 50 and 500 runs.

    python benchmarks/compare.py --rounds 5

Runs are written straight into a local sqlite store, with the parameters, tags and metrics of real
ones. Each round reads the store with one search and lays out text, JSON and the HTML page, in a
process that has its imports behind it. Prints the median and the slowest; exit code 1 when the
median for 50 runs is over the limit.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mlflow.entities import Metric, Param, RunTag

from src import compare
from src.schema import TrackingConfig
from src.track import connect, store
from tests.compare.making import measured

LIMIT_S = 1.0
SIZES = (2, 50, 500)
VARIANTS = ("naive", "fused", "compiled")


def fill(root: Path, runs: int) -> None:
    target = store.locate(TrackingConfig("local", root=str(root)), root, root)
    client = connect.connect(target)
    experiment = connect.experiment_id(client, target, "rms_norm")
    for number in range(runs):
        shape = f"{1 + number // len(VARIANTS)}x2048x4096"
        one = measured(
            VARIANTS[number % len(VARIANTS)], 1000.0 + number, params={"input.shape": shape}
        )
        padding = {f"device.setting{n}": str(n) for n in range(30)}
        params = [Param(key, value) for key, value in {**one.params, **padding}.items()]
        tags = [RunTag(key, value) for key, value in {**one.tags, "sweep_id": "s"}.items()]
        metrics = [Metric(key, value, 0, 0) for key, value in one.metrics.items()]
        made = client.create_run(experiment, run_name=one.name)
        client.log_batch(made.info.run_id, metrics, params, tags)
        client.set_terminated(made.info.run_id)


def seconds(root: Path, *flags: str) -> float:
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        code = compare.main(["--root", str(root), "--sweep", "s", *flags])
    if code:
        sys.exit(f"src.compare ended with {code}")
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write every sample to this file")
    options = parser.parse_args()
    samples: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for runs in SIZES:
            root = Path(folder) / str(runs)
            fill(root, runs)
            for name, flags in (
                ("text", ()),
                ("json", ("--json",)),
                ("html", ("--html", str(root / "page.html"))),
            ):
                seconds(root, *flags)  # imports, and the file cache
                samples[f"{runs} runs, {name}"] = [
                    seconds(root, *flags) for _ in range(options.rounds)
                ]
    print(f"{options.rounds} rounds, load {os.getloadavg()[0]:.1f}; seconds beyond imports")
    print(f"{'case':<16}{'median':>8}{'slowest':>9}")
    for name, found in samples.items():
        print(f"{name:<16}{statistics.median(found):>8.2f}{max(found):>9.2f}")
    if options.json:
        options.json.write_text(json.dumps(samples, indent=1) + "\n")
    slow = [n for n, f in samples.items() if n.startswith("50 ") and statistics.median(f) > LIMIT_S]
    for name in slow:
        print(f"{name}: over the limit of {LIMIT_S} s")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())

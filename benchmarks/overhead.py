"""What tracking costs: wall time of a tracked run against tracking=none, side by side.

    python benchmarks/overhead.py --rounds 7

Runs are interleaved (none, tracked, peer, none, ...) and warm (the store exists, files are cached),
so drift of the machine favours nobody. The peer is naive_peer.py. Prints a table and, with --json
FILE, writes every sample. Host times of this computer; nothing here says anything about Trainium.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parents[1]
LIMIT = 1.25  # tracked / none in wall time, the project's own target


def commands(root: Path) -> dict[str, list[str]]:
    ours = [sys.executable, "-m", "src.run", "variant=compiled", "device=simulated"]
    model = yaml.safe_load((REPOSITORY / "conf/device/simulated.yaml").read_text())["cost"]
    text = json.dumps(model).replace('"', "").replace(" ", "")
    peer = [sys.executable, str(REPOSITORY / "benchmarks/naive_peer.py")]
    quiet = ["hydra.output_subdir=null", f"hydra.run.dir={root}", "hydra/job_logging=none"]
    return {
        "none": [*ours, f"tracking.root={root / 'none'}", "tracking=none"],
        "tracked": [*ours, f"tracking.root={root / 'tracked'}"],
        "peer": [*peer, f"+root={root / 'peer'}", f"+cost={text}", *quiet],
    }


def seconds(command: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of one command with its children."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    wall, after = time.perf_counter() - start, os.times()
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    cpu = after.children_user + after.children_system
    return wall, cpu - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write every sample to this file")
    options = parser.parse_args()
    samples: dict[str, list[tuple[float, float]]] = {"none": [], "tracked": [], "peer": []}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "peer").mkdir()
        cases = commands(root)
        for round_number in range(options.rounds + 1):
            for name, command in cases.items():
                sample = seconds(command)
                if round_number:  # the first round makes the stores and warms the file cache
                    samples[name].append(sample)
    wall = {name: statistics.median(s[0] for s in rows) for name, rows in samples.items()}
    print(f"{options.rounds} interleaved rounds, load {os.getloadavg()[0]:.1f}, medians")
    print(f"{'case':<10}{'wall s':>8}{'spread s':>10}{'cpu s':>8}{'to none':>9}")
    for name, rows in samples.items():
        walls = [row[0] for row in rows]
        cpu = statistics.median(row[1] for row in rows)
        spread, ratio = max(walls) - min(walls), wall[name] / wall["none"]
        print(f"{name:<10}{wall[name]:>8.2f}{spread:>10.2f}{cpu:>8.2f}{ratio:>9.2f}")
    ratio = statistics.median(
        tracked[0] / none[0]
        for tracked, none in zip(samples["tracked"], samples["none"], strict=True)
    )
    print(f"tracked / none, median of the rounds' ratios: {ratio:.3f} (target at most {LIMIT})")
    if options.json:
        options.json.write_text(json.dumps(samples, indent=1) + "\n")


if __name__ == "__main__":
    main()

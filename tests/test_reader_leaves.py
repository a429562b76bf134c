"""A reader that leaves, as in `python -m src.run | head -1`, does not end what runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .running import command, environment, tracked

QUICK = ("input.shape=8x8", "profiler.repeats=1", "profiler.latency_calls=0")


@pytest.mark.slow
def test_a_sweep_goes_on_when_nobody_reads_its_output(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(
        [*command(tmp_path / "mlruns", "variant=naive,fused", *QUICK), "-m"],
        cwd=tmp_path,
        env=environment(),
        stdout=writes,
        stderr=subprocess.PIPE,
        text=True,
        timeout=400,
    )
    os.close(writes)
    assert done.returncode == 0, done.stderr
    assert [run.info.status for run in tracked(tmp_path / "mlruns")][:2] == ["FINISHED"] * 2
    assert list((tmp_path / "mlruns/pending").glob("*")) == []

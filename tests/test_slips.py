"""A slip on the command line gives one message in our words, exit code 2, and leaves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

SLIPS = [
    (["variant=compild"], "variant is one of compiled, fused, naive. Type variant=compiled."),
    (["inptu.shape=3"], "Did you mean input=...?"),
    (["input.shaep=3"], "Did you mean input.shape=...?"),
    (["input.seed=abc"], "input.seed is a whole number"),
    (["input.shape=8,2,4"], "input.shape=8x2x4"),
    (["cores=0,1"], "\"cores='0,1'\""),
    (["variant=a=b"], "cannot be read"),
    (["input=[1"], "cannot be read"),
    (["foo"], "cannot be read"),
    (["+foo=1"], "foo: no such key"),
    (["--foo"], "no such flag"),
    (["profiler.modes=RUNTIME"], "profiler.modes=[DEVICE,RUNTIME]"),
    (["variant=null"], "takes the name of one of its options"),
    (["profiler.profile_output_dir=x"], "tracking.root=<folder>"),
    (["-m", "variant=naive,fusd"], "Type variant=fused."),
    (["workload.name=${foo}"], "Interpolation key 'foo' not found"),
]


@pytest.mark.parametrize(("typed", "says"), SLIPS, ids=[" ".join(typed) for typed, _ in SLIPS])
def test_a_slip_is_one_message_and_exit_code_2(typed: list, says: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "src.run", *typed],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []

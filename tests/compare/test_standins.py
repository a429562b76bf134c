"""Runs measured through the stand-in for hardware, tracked, and put through the gate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from src import compare, ingest
from src.track import notes
from tests.standins import asking
from tests.standins.conftest import (  # fixtures
    Measure,
    measure,  # noqa: F401
    measure_anywhere,  # noqa: F401
    nursery,  # noqa: F401
)

from .test_door import ids

pytestmark = pytest.mark.slow
Through = Callable[..., str]


@pytest.fixture
def through(root: Path, measure: Measure) -> Through:  # noqa: F811
    """Measure once through the stand-in and track it; returns the run's id."""

    def run(mood: str = "", **variables: str) -> str:
        result = measure(mood, asking.spec(repeats=5), **variables)
        assert result.status == "FINISHED", result.message
        notes.update(result.directory, process=None)  # this process, which is not done yet
        before = set(ids(root))
        assert ingest.main([str(result.directory), "--root", str(root)]) == 0
        (new,) = set(ids(root)) - before
        return new

    return run


def verdicts(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    data = json.loads(capsys.readouterr().out)
    runs = [run for group in data["groups"] for run in group["runs"]]
    return {run["run_id"]: run["verdict"]["word"] for run in runs}


def test_five_noisy_repeats_are_the_same_and_a_tenth_slower_is_a_regression(
    root: Path, through: Through, capsys: pytest.CaptureFixture[str]
) -> None:
    five = [through(STANDIN_NOISE="0.03", STANDIN_SEED=str(seed)) for seed in range(5)]
    gate = ["--root", str(root), "--json", "--fail-if-slower", "5%"]
    capsys.readouterr()
    code = compare.main(["--runs", *five, *gate])
    found = verdicts(capsys)
    assert [found[run] for run in five[1:]] == ["same within noise"] * 4
    assert code == 0
    slow = through(STANDIN_NOISE="0.03", STANDIN_SEED="9", STANDIN_SCALE="1.1")
    capsys.readouterr()
    code = compare.main(["--runs", *five, slow, *gate])
    assert verdicts(capsys)[slow] == "worse"
    assert code == 1


def test_an_operator_that_falls_back_is_never_better(
    root: Path, through: Through, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = through()
    fallen = through("falls_back", STANDIN_SCALE="0.5")
    capsys.readouterr()
    typed = ["--runs", fallen, "--baseline", whole, "--root", str(root), "--json"]
    assert compare.main([*typed, "--fail-if-slower", "5%"]) == 3
    assert verdicts(capsys)[fallen] == "not comparable"

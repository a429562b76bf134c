"""The NEFF cache through the stand-in: hits and misses, a warm cache, and whose NEFFs are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from src import rundir

from . import asking
from .conftest import Measure

STRANGER = "neff_0123456789abcdef.neff"


def _neffs(run: asking.Result) -> list[str]:
    return sorted(path.name for path in (run.directory / rundir.PROFILE).rglob("*.neff"))


def _combined() -> Any:
    return asking.spec(profiler="combined", repeats=1)


def test_the_first_run_misses_the_cache_and_the_second_hits_it(measure: Measure) -> None:
    first, second = measure(), measure()
    assert first.operators is not None
    assert first.operators.neff_cache is not None
    assert (first.operators.neff_cache.state, first.operators.neff_cache.misses) == ("cold", 6)
    assert (first.tags["neff_cache"], first.tags["neff_cache_misses"]) == ("cold", "6")
    assert second.tags["neff_cache"] == "warm"
    assert "all hits" in second.check("neff_cache")[1]


def test_the_neffs_of_a_warm_cache_are_copied_because_the_config_names_it(measure: Measure) -> None:
    measure()
    run = measure("", _combined())
    assert run.tags["neff_cache"] == "warm"
    assert len(_neffs(run)) == 6
    assert run.health is not None
    assert run.health.status == "complete"


def test_a_warm_cache_that_gives_no_neff_is_explained_and_not_failed(
    measure: Measure, tmp_path: Path
) -> None:
    measure()
    run = measure("warm_cache", _combined())
    assert (run.status, run.check("mode_files")[0]) == ("FINISHED", "warning")
    said = run.check("mode_files")[1]
    assert str(tmp_path / "neffs") in said
    assert "Device time is not affected" in said


def test_neffs_that_did_not_run_stay_out_and_are_listed_with_the_reason(
    measure: Measure, tmp_path: Path
) -> None:
    measure()
    (tmp_path / "neffs" / STRANGER).write_text("another model's")
    run = measure("whole_cache", _combined())
    assert len(_neffs(run)) == 6
    assert not any("0123456789abcdef" in name for name in _neffs(run))
    skipped = rundir.write_manifest(run.directory)["skipped"]
    ((name, reason),) = skipped.items()
    assert name.endswith("neff_0123456789abcdef_vnc_0.neff")
    assert "did not run in this window" in reason
    assert str(tmp_path / "neffs" / STRANGER) in reason  # nothing is lost
    assert run.health is not None
    assert run.health.status == "complete"


def test_where_nothing_tells_which_ran_all_neffs_are_kept(measure: Measure, tmp_path: Path) -> None:
    measure()
    (tmp_path / "neffs" / STRANGER).write_text("another model's")
    run = measure("whole_cache_unnamed", _combined())
    assert len(_neffs(run)) == 7
    assert rundir.write_manifest(run.directory)["skipped"] == {}


@pytest.mark.parametrize(
    "name", ["TORCH_NEURONX_NEFF_DISABLE_CACHE", "TORCH_NEURONX_DISABLE_NEFF_CACHE"]
)
def test_a_cache_that_is_off_is_not_named(measure: Measure, name: str) -> None:
    run = measure(**{name: "1"})
    assert run.status == "FINISHED"
    assert "neff_cache_dir" not in run.noted("config")[0]
    assert "neff_cache" not in run.tags

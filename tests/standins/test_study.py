"""The published study through the stand-in: all variants in all moods, and through the product."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from src import rundir
from tests import running

from . import asking
from .conftest import Measure
from .test_moods import CASES, Case

PUBLISHED_US = {"naive": 2355.0, "fused": 403.3, "compiled": 375.5}
CALLS = {"naive": 6, "fused": 1, "compiled": 1}


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["fused", "compiled"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_each_variant_comes_to_the_same_end(
    measure: Measure, record_property: Any, case: Case, variant: str
) -> None:
    run = measure(case.mood, asking.spec(variant, case.profiler), **case.variables)
    status, health = run.status, run.health.status if run.health else None
    for name, value in {"status": status, "health": health, "message": run.message}.items():
        record_property(name, str(value))
    # Only the naive lines call rsqrt, the operator that falls back.
    expected = "complete" if case.mood.startswith("falls_back") else case.health
    assert (status, health) == (case.status, expected), run.message
    assert ("self_neuron_us" in run.metrics) == case.has_time


def _product(root: Path, mood: str, *overrides: str) -> Any:
    variables = {
        "PYTHONPATH": str(asking.CURRENT),
        "STANDIN_MOOD": mood,
        "STANDIN_DIARY": str(root / "diary.jsonl"),
        "TORCH_NEURONX_NEFF_CACHE_DIR": str(root / "neffs"),
    }
    env = [f"device.env.{name}='{value}'" for name, value in variables.items()]
    return running.run(root / "mlruns", "device=neuron", *env, *overrides)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    root = tmp_path_factory.mktemp("study")
    done = _product(root, "", "study=published_rmsnorm")
    assert done.returncode == 0, done.stderr
    runs = [run for run in running.tracked(root / "mlruns") if run.data.tags["kind"] == "profile"]
    diary = [json.loads(line) for line in (root / "diary.jsonl").read_text().splitlines()]
    by_variant = {run.data.params["variant"]: run for run in runs}
    return SimpleNamespace(done=done, runs=by_variant, diary=diary)


@pytest.mark.slow
def test_the_study_has_the_published_totals_and_calls(study: SimpleNamespace) -> None:
    for variant, run in study.runs.items():
        assert run.info.status == "FINISHED"
        metrics = run.data.metrics
        assert metrics["self_neuron_us"] == pytest.approx(PUBLISHED_US[variant], rel=0.15)
        assert metrics["operator_calls"] == CALLS[variant]
        assert metrics["fallback_operators"] == 0
        assert "executions" not in metrics  # the .pb schemas are not published


@pytest.mark.slow
def test_a_run_on_neuron_is_not_called_simulated(study: SimpleNamespace) -> None:
    assert "simulated" not in study.done.stdout.lower()
    for run in study.runs.values():
        assert run.data.tags["device"] == run.data.params["device"] == "neuron"
        assert run.data.tags["device_time_source"] == "key_averages"
        assert run.data.tags["version.torch_neuronx"] == "0+standin"
        assert not run.info.run_name.startswith("sim ")
        report = (running.artifacts(run) / rundir.REPORT).read_text()
        assert "simulated" not in report.lower()


@pytest.mark.slow
def test_only_the_three_children_loaded_the_library(study: SimpleNamespace) -> None:
    imports = [one for one in study.diary if one["event"] == "import"]
    assert len(imports) == 3
    assert all("-c" in one["command"] for one in imports)  # python -c BOOT, not -m src.run
    assert all(one["environ"]["NEURON_RT_VISIBLE_CORES"] == "0" for one in imports)


@pytest.mark.slow
def test_without_device_time_the_tracked_run_is_failed_with_its_whole_profile(
    tmp_path: Path,
) -> None:
    done = _product(tmp_path, "no_device_time", "profiler.repeats=2", "input=small")
    assert done.returncode == 1
    (run,) = running.tracked(tmp_path / "mlruns")
    assert run.info.status == "FAILED"
    assert "self_neuron_us" not in run.data.metrics
    assert run.data.tags["device_time_source"] == "none"
    assert "no device time" in run.data.tags["error"]
    assert len(list(running.artifacts(run).glob("profile/**/trace.json"))) == 2


@pytest.mark.slow
def test_dropped_keywords_and_fall_backs_are_tags_of_the_tracked_run(tmp_path: Path) -> None:
    names = "device.env.STANDIN_REFUSES=neff_cache_dir"
    done = _product(tmp_path, "refuses,falls_back", names, "variant=naive", "input=small")
    assert done.returncode == 0, done.stderr
    (run,) = running.tracked(tmp_path / "mlruns")
    assert run.data.tags["dropped_keywords"] == "neff_cache_dir"
    assert run.data.tags["fallback_operators"] == "aten::rsqrt"
    assert run.data.tags["capture_health"] == "suspicious"


@pytest.mark.slow
def test_a_busy_core_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    done = _product(tmp_path, "busy_core", "input=small")
    assert done.returncode == 2
    assert "cores=0: the Neuron runtime could not open" in done.stderr
    assert not (tmp_path / "mlruns" / "mlflow.db").exists()
    assert not list((tmp_path / "mlruns").glob("pending/*"))

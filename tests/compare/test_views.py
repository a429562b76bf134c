"""Saved views and verdict tags on a real store; a user's own changes stay."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from src.analyze.comparison import compare
from src.schema import TrackingConfig
from src.track import connect, query, store, summary_run, verdicts, views

from .test_door import client

VIEWS = (*views.of_experiment(), views.of_sweep("s1"))


@pytest.fixture
def target(root: Path) -> store.Store:
    return store.locate(TrackingConfig("local", root=str(root)), root, root)


@pytest.fixture
def opened(root: Path, target: store.Store) -> Any:
    return client(root)


@pytest.fixture
def experiment(opened: Any, target: store.Store) -> str:
    return connect.experiment_id(opened, target, "views")


def tags(opened: Any, experiment: str) -> dict[str, str]:
    return dict(opened.get_experiment(experiment).tags)


def state(value: str) -> dict[str, Any]:
    packed = json.loads(value)["state"]
    assert packed.startswith("deflate;")
    return dict(json.loads(zlib.decompress(base64.b64decode(packed.removeprefix("deflate;")))))


def test_views_have_fixed_ids_and_open_with_the_headline_metrics(
    opened: Any, target: store.Store, experiment: str
) -> None:
    written = views.install(opened, target, experiment, VIEWS)
    assert written == ["device-time", "runs-table", "sweep-s1"]
    found = state(tags(opened, experiment)["mlflow.sharedViewState.sweep-s1"])
    assert [chart["metricKey"] for chart in found["compareRunCharts"]] == [
        "self_neuron_us",
        "self_cpu_us",
        "operator_calls",
    ]
    assert found["searchFilter"] == "tags.kind = 'profile' and tags.sweep_id = 's1'"
    table = state(tags(opened, experiment)["mlflow.sharedViewState.runs-table"])
    assert table["selectedColumns"][:2] == ["params.`variant`", "params.`input.shape`"]
    assert table["selectedColumns"][-2:] == ["tags.`verdict`", "tags.`verdict_reason`"]


def test_a_second_time_nothing_is_written(
    opened: Any, target: store.Store, experiment: str
) -> None:
    views.install(opened, target, experiment, VIEWS)
    assert views.install(opened, target, experiment, VIEWS) == []


def test_a_newer_version_of_a_view_replaces_ours(
    opened: Any, target: store.Store, experiment: str
) -> None:
    old = views.View("device-time", "An older name", "", charts=True)
    views.install(opened, target, experiment, [old])
    assert views.install(opened, target, experiment, VIEWS[:1]) == ["device-time"]
    assert json.loads(tags(opened, experiment)["mlflow.sharedViewState.device-time"])["name"] == (
        VIEWS[0].name
    )


def test_a_view_that_a_user_changed_made_or_deleted_is_left_alone(
    opened: Any, target: store.Store, experiment: str
) -> None:
    views.install(opened, target, experiment, VIEWS[:1])
    changed, own = "mlflow.sharedViewState.device-time", "mlflow.sharedViewState.runs-table"
    opened.set_experiment_tag(experiment, changed, '{"name": "mine"}')
    opened.set_experiment_tag(experiment, own, '{"name": "also mine"}')
    opened.set_experiment_tag(experiment, views.WRITTEN + "sweep-s1", "of a deleted view")
    assert views.install(opened, target, experiment, VIEWS) == []
    found = tags(opened, experiment)
    assert found[changed] == '{"name": "mine"}'
    assert found[own] == '{"name": "also mine"}'
    assert views.SHARED + "sweep-s1" not in found


def test_a_view_fits_into_the_tag_of_an_older_server() -> None:
    many = views.of_sweep("s" * 40, [f"{n:032x}" for n in range(60)])
    assert len(views.encoded(many, 0)) < views.LONGEST_TAG


def test_verdicts_become_tags_and_a_table_in_the_description(
    root: Path, send: Callable[..., Path], opened: Any, target: store.Store
) -> None:
    send("naive", 1000.0, sweep_id="s1")
    send("fused", 400.0, sweep_id="s1")
    runs = query.search(opened, target)
    for _ in range(2):  # a second comparison replaces the table of the first
        verdicts.write(opened, target, compare(query.search(opened, target)))
    after = {run.variant: run for run in query.search(opened, target)}
    assert after["naive"].tags["verdict"] == "baseline"
    fused = after["fused"].tags
    assert fused["verdict"] == "better"
    assert "60.0% faster" in fused["verdict_reason"]
    assert fused["verdict_baseline"] == after["naive"].run_id
    note = fused["mlflow.note.content"]
    assert note.count(verdicts.SIDE_BY_SIDE) == 1
    assert "| fused | 400.0 |" in note
    assert {run.run_id for run in runs} == {run.run_id for run in after.values()}


def test_a_description_that_a_user_wrote_stays_above_the_table(
    send: Callable[..., Path], opened: Any, target: store.Store
) -> None:
    send("naive", 1000.0)
    (run,) = query.search(opened, target)
    opened.set_tag(run.run_id, verdicts.NOTE, "my own words")
    verdicts.write(opened, target, compare(query.search(opened, target)))
    (after,) = query.search(opened, target)
    assert after.tags[verdicts.NOTE].startswith("my own words\n\n### Side by side")


def test_a_summary_run_holds_the_report_and_is_no_profile(
    send: Callable[..., Path], opened: Any, target: store.Store
) -> None:
    for shape in ("1x128x1024", "1x2048x4096"):
        for variant, us in (("naive", 1000.0), ("fused", 400.0)):
            send(variant, us, shape=shape, sweep_id="s1")
    runs = query.search(opened, target)
    found = compare(runs)
    run_id = summary_run.write(opened, target, "s1", runs[0].experiment_id, found)
    summary = opened.get_run(run_id)
    assert summary.info.status == "FINISHED"
    assert summary.data.tags["kind"] == "summary"
    assert "| naive | 1,000.0 |" in summary.data.tags["mlflow.note.content"]
    assert {entry.path for entry in opened.list_artifacts(run_id)} == {
        "bars.png",
        "lines.png",
        "operators.png",
        "comparison.html",
        "comparison.json",
        "comparison.md",
    }
    assert run_id not in {run.run_id for run in query.search(opened, target)}


def test_the_windows_the_variables_and_the_binary_of_a_run_are_in_its_tags(
    send: Callable[..., Path], opened: Any, target: store.Store
) -> None:
    send("fused", 100.0, (1.0, 1.5, 2.0), neff=b"a binary")
    (run,) = query.search(opened, target)
    assert run.windows_us == (100.0, 150.0, 200.0)
    assert run.timing_variables == {"NEURON_RT_X": "1"}
    assert run.neff

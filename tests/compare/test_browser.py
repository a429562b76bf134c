"""A real sweep, its printed links, and what Chromium shows behind them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import running

from . import browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "there is a browser"),
]
FAST = ("profiler.repeats=3", "profiler.warmup=0")
SHAPES = "input.shape=1x128x256,1x256x512,1x512x1024"
HEADLINES = ["self_neuron_us", "self_cpu_us", "operator_calls"]


@dataclass(frozen=True)
class Shown:
    """A finished sweep, what it printed, and a UI with a browser before it."""

    root: Path
    said: str
    address: str
    page: Any

    def open(self, link: str) -> None:
        self.page.get("about:blank")
        self.page.get(link.replace("http://127.0.0.1:5000", self.address))

    def link(self, word: str) -> str:
        found = re.search(rf"{word}[^\n]*?(http://\S+)", self.said)
        assert found, self.said
        return found[1]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    root = tmp_path_factory.mktemp("ui") / "mlruns"
    done = running.run(root, "-m", "variant=naive,fused,compiled", SHAPES, *FAST)
    assert done.returncode == 0, done.stderr
    with browser.mlflow_ui(root) as address, browser.chromium() as page:
        yield Shown(root, done.stdout, address, page)


def test_the_printed_link_shows_the_bars_of_all_nine_runs(shown: Shown) -> None:
    shown.open(shown.link("Compare these 9 runs"))
    top = browser.wait(
        shown.page,
        lambda page: (
            [len(bars) for bars in browser.bars(page)[:3]] == [9] * 3 and browser.bars(page)[:3]
        ),
        "nine bars in three charts",
    )
    runs = [run for run in running.tracked(shown.root) if run.data.tags["kind"] == "profile"]
    for key, labels in zip(HEADLINES, top, strict=True):
        wanted = sorted(run.data.metrics[key] for run in runs)
        assert sorted(map(float, labels)) == pytest.approx(wanted, abs=0.006), key
    text = browser.text_of(shown.page)
    at = [text.index(f"\n{key}\n") for key in HEADLINES]
    assert at == sorted(at)
    assert "executions" not in text[: at[0]]
    assert "9 matching runs" in text  # the summary run is not among them
    for variant in ("naive", "fused", "compiled"):
        assert f"sim rms_norm {variant}" in text


def test_the_table_view_has_the_columns_that_matter_in_order(shown: Shown) -> None:
    experiment = running.tracked(shown.root)[0].info.experiment_id
    shown.open(
        f"{shown.address}/#/experiments/{experiment}/runs"
        "?viewStateShareKey=runs-table&compareRunsMode=TABLE"
    )
    shown.page.set_window_size(3200, 1300)
    heads = browser.wait(
        shown.page,
        lambda page: page.execute_script(
            """const found = [...document.querySelectorAll('.ag-header-cell')]
                 .map(cell => [cell.getBoundingClientRect().left, cell.innerText.trim()])
                 .sort((a, b) => a[0] - b[0]).map(pair => pair[1]);
               return found.includes('verdict') && found"""
        ),
        "table heads",
    )
    wanted = ["variant", "input.shape", "cores", "device", *HEADLINES, "capture_health", "verdict"]
    assert [head for head in heads if head in wanted] == wanted
    rows = shown.page.execute_script(
        "return [...document.querySelectorAll('[col-id*=\"verdict`\"]')].map(c => c.innerText)"
    )
    assert {"baseline", "simulated"} <= set(rows)
    shown.page.set_window_size(1700, 1300)


def test_the_compare_page_of_three_runs_has_no_gap_among_the_headline_metrics(
    shown: Shown,
) -> None:
    runs = running.tracked(shown.root)
    three = [run for run in runs if run.data.params.get("input.shape") == "1x256x512"]
    assert len(three) == 3
    ids = json.dumps([run.info.run_id for run in three])
    shown.page.set_window_size(1700, 5000)  # it only makes the rows that are in sight
    shown.open(
        f"{shown.address}/#/compare-runs?runs={ids}&experiments=%5B"
        f"%22{three[0].info.experiment_id}%22%5D"
    )
    text = browser.wait(
        shown.page,
        lambda page: "operator_calls" in browser.text_of(page) and browser.text_of(page),
        "compare page",
    )
    assert "Comparing 3 Runs" in text
    assert {"naive", "fused", "compiled"} <= set(re.split(r"\s+", text))
    values: dict[str, list[str]] = {}
    for _ in range(20):
        values |= _metrics_in_sight(shown.page)
        if "self_neuron_us" in values:
            break
        shown.page.execute_script(SCROLL_METRICS)
        time.sleep(1)
    assert {*HEADLINES, "executions", "self_cpu_total_us"} <= set(values)
    until = [name for name in values if name <= "self_neuron_us" and "/" not in name]
    assert [name for name in until if "NaN" in values[name]] == []
    runs_by_id = {run.info.run_id: run for run in three}
    shown_us = [float(value) for value in values["self_neuron_us"]]
    stored_us = [runs_by_id[one].data.metrics["self_neuron_us"] for one in json.loads(ids)]
    assert shown_us == pytest.approx(stored_us, abs=0.06)
    shown.page.set_window_size(1700, 1300)


# The values scroll and the names follow; no other part of the page holds numbers only.
SCROLL_METRICS = """
[...document.querySelectorAll('*')].filter(e => e.scrollHeight > e.clientHeight + 5
    && /^[-+e\\d.\\sNa]+$/.test(e.innerText) && e.innerText.split('\\n').length > 9)
  .forEach(e => { e.scrollTop += e.clientHeight / 2 })
"""


# Names and values are in grids of their own, which place their cells with `top`.
METRICS_IN_SIGHT = """
const rows = {};
for (const cell of document.querySelectorAll('div')) {
  if (cell.style.position != 'absolute' || !cell.style.top || !cell.style.width) continue;
  const text = (cell.innerText || '').trim();
  if (text && !text.includes('\\n')) (rows[cell.style.top] ??= []).push(text);
}
return Object.values(rows).filter(row => row.length == 4)
"""


def _metrics_in_sight(page: Any) -> dict[str, list[str]]:
    """Name -> its three values, of the rows that are there at the moment."""
    return {row[0]: row[1:] for row in page.execute_script(METRICS_IN_SIGHT)}


def test_the_report_opens_in_the_artifact_viewer_with_its_plots(shown: Shown) -> None:
    shown.open(shown.link("Report:") + "/comparison.html")
    frame = browser.wait(shown.page, lambda page: browser.element(page, "iframe"), "frame")
    shown.page.switch_to.frame(frame)
    drawn = browser.wait(
        shown.page, lambda page: len(browser.bars(page)) >= 3 and browser.bars(page), "plots"
    )
    assert [len(labels) for labels in drawn[:3]] == [9, 9, 9]
    text = browser.text_of(shown.page)
    assert text.startswith("SIMULATED: Comparison of sweep")
    assert "rms_norm 1x512x1024 bfloat16 cores 0" in text
    marks = shown.page.execute_script(
        "return [...document.querySelectorAll('.js-plotly-plot')].map(p => p.textContent)"
    )
    assert all("SIMULATED" in mark for mark in marks)
    shown.page.switch_to.default_content()


@pytest.mark.parametrize("name", ["bars.png", "lines.png", "operators.png"])
def test_the_pictures_open_in_the_artifact_viewer(shown: Shown, name: str) -> None:
    shown.open(shown.link("Report:") + f"/{name}")
    width = browser.wait(
        shown.page,
        lambda page: page.execute_script(
            """const found = [...document.querySelectorAll('img')]
                 .filter(i => i.complete && i.naturalWidth >= 900);
               return found.length && found[0].naturalWidth"""
        ),
        name,
    )
    assert width == 960


def test_the_page_opens_offline(shown: Shown, tmp_path: Path) -> None:
    from src import compare

    file = tmp_path / "page.html"
    assert compare.main(["--root", str(shown.root), "--html", str(file)]) == 0
    shown.page.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    shown.page.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    try:
        shown.page.get_log("browser")  # drops what earlier pages said
        shown.page.get(file.as_uri())
        assert len(browser.wait(shown.page, browser.bars, "plots")[0]) == 9
        severe = [e for e in shown.page.get_log("browser") if e["level"] == "SEVERE"]
        assert severe == []
    finally:
        back = {**offline, "offline": False, "downloadThroughput": -1, "uploadThroughput": -1}
        shown.page.execute_cdp_cmd("Network.emulateNetworkConditions", back)


def test_a_single_run_prints_a_link_to_its_like(shown: Shown) -> None:
    done = running.run(shown.root, "variant=fused", "input.shape=1x256x512", *FAST)
    assert done.returncode == 0, done.stderr
    found = re.search(r"Beside its like: (http://\S+)", done.stdout)
    assert found, done.stdout
    shown.open(found[1])
    top = browser.wait(shown.page, browser.bars, "bars")
    assert len(top[0]) == 4
    assert "4 matching runs" in browser.text_of(shown.page)

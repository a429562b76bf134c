"""`python -m src.compare` on a real store: selections, formats, exit codes, slips."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from src import compare
from src.schema import TrackingConfig
from src.track import connect
from src.track.store import locate

from .making import NOISE_3

Send = Callable[..., Path]
SLOWER = tuple(1.1 * window for window in NOISE_3)


def client(root: Path) -> Any:
    return connect.connect(locate(TrackingConfig("local", root=str(root)), root, root))


def ids(root: Path, filter_string: str = "") -> list[str]:
    found = client(root)
    experiments = [e.experiment_id for e in found.search_experiments()]
    runs = found.search_runs(experiments, filter_string, order_by=["attributes.start_time ASC"])
    return [run.info.run_id for run in runs]


class Said:
    """What a command printed and how it ended."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], *typed: str) -> None:
        capsys.readouterr()
        self.code = compare.main([*typed, "--root", str(root)])
        self.out, self.err = capsys.readouterr()


@pytest.fixture
def say(root: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    return lambda *typed: Said(root, capsys, *typed)


def test_a_sweep_is_shown_as_the_published_kind_of_table(root: Path, send: Send, say: Any) -> None:
    for variant, us in (("naive", 2354.9), ("fused", 403.3), ("compiled", 375.5)):
        send(variant, us, sweep_id="s1")
    said = say("--sweep", "s1")
    assert said.code == 0
    assert "NEURON time (us)" in said.out
    assert "2,354.9" in said.out
    assert "5.84x" in said.out
    assert "6.27x" in said.out
    assert "better" in said.out
    assert "aten::mul + aten::mean" in said.out


def test_a_run_against_itself_is_identical_and_passes(root: Path, send: Send, say: Any) -> None:
    send()
    (run,) = ids(root)
    said = say("--runs", run, "--baseline", run, "--json", "--fail-if-slower", "5%")
    assert said.code == 0
    (group,) = json.loads(said.out)["groups"]
    assert group["runs"][0]["verdict"]["word"] == "identical"


def test_five_repeats_with_noise_pass_and_a_tenth_slower_is_exit_1(
    root: Path, send: Send, say: Any
) -> None:
    for us in (1000.0, 1030.0, 970.0, 1020.0, 985.0):
        send("naive", us, measurement_id="one", sweep_id="before")
    five = ids(root)
    said = say("--runs", *five, "--json", "--fail-if-slower", "5%")
    assert said.code == 0, said.out
    found = [run["verdict"] for run in json.loads(said.out)["groups"][0]["runs"]]
    assert [v["word"] for v in found] == ["identical"] + ["same within noise"] * 4
    assert {v["n"] for v in found[1:]} == {4}
    send("naive", 1000.0, SLOWER, measurement_id="one", sweep_id="after")
    gate = ("--baseline", "tags.sweep_id = 'before'", "--fail-if-slower", "5%")
    said = say("--sweep", "after", *gate)
    assert said.code == 1, said.out
    assert said.err.startswith("regression: ")
    assert "10.0% slower" in said.err
    assert say("--sweep", "after", *gate[:2], "--fail-if-slower", "15 %").code == 0


def test_without_a_selection_the_newest_sweep_meets_the_baseline(
    root: Path, send: Send, say: Any
) -> None:
    send("naive", 1000.0, sweep_id="old")
    send("naive", 1200.0, sweep_id="new")
    old = ids(root, "tags.sweep_id = 'old'")[0]
    said = say("--baseline", old, "--fail-if-slower", "5%")
    assert said.code == 1
    assert "the newest sweep, new" in said.out


def test_simulated_against_measured_is_exit_3_with_the_reason(
    root: Path, send: Send, say: Any
) -> None:
    send("naive", 1000.0)
    send("naive", 500.0, device="simulated")
    simulated, measured = (
        ids(root, "tags.device = 'simulated'"),
        ids(root, "tags.device = 'neuron'"),
    )
    for flags in ((), ("--allow-simulated",)):
        said = say(
            "--runs", *simulated, "--baseline", measured[0], "--fail-if-slower", "5%", *flags
        )
        assert said.code == 3
        assert "device: simulated against neuron" in said.err
        assert said.out.splitlines()[2].startswith("SIMULATED")


def test_simulated_runs_are_gated_only_when_a_pipeline_is_tested(
    root: Path, send: Send, say: Any
) -> None:
    send("naive", 1000.0, device="simulated")
    send("fused", 1500.0, device="simulated")
    gate = ("--experiment", "rms_norm (simulated)", "--fail-if-slower", "5%")
    gate += ("--baseline", "params.variant = 'naive'")
    said = say(*gate)
    assert said.code == 3
    assert "simulated" in said.err
    said = say(*gate, "--allow-simulated")
    assert said.code == 1
    assert "simulated: " in said.err


def test_one_fall_back_more_is_never_better(root: Path, send: Send, say: Any) -> None:
    send("naive", 1000.0)
    send("fused", 100.0, fallbacks=["aten::rsqrt"])
    said = say("--experiment", "rms_norm", "--json")
    (group,) = json.loads(said.out)["groups"]
    verdict = group["runs"][1]["verdict"]
    assert verdict["word"] == "not comparable"
    assert "aten::rsqrt fell back" in verdict["reason"]


def test_before_and_after_an_upgrade_with_the_same_binary(root: Path, send: Send, say: Any) -> None:
    old, new = {"torch_neuronx": "2.13.0"}, {"torch_neuronx": "2.14.0"}
    send("fused", 400.0, versions=old, neff=b"neff")
    send("fused", 300.0, versions=new, neff=b"neff")
    assert "declare it with --across sdk" in say("--experiment", "rms_norm").out
    said = say("--experiment", "rms_norm", "--across", "sdk")
    assert "torch_neuronx 2.14.0" in said.out
    assert "better" in said.out
    assert "same binary (equal NEFF hash)" in said.out


def test_failed_runs_are_shown_and_refused(root: Path, send: Send, say: Any) -> None:
    send("naive", 1000.0)
    send("fused", error="wrong result")
    said = say("--experiment", "rms_norm")
    assert said.code == 0
    assert "wrong result" in said.out


def test_a_page_is_written_and_mentioned(root: Path, send: Send, say: Any, tmp_path: Path) -> None:
    send("naive", 1000.0)
    file = tmp_path / "page.html"
    assert str(file) in say("--html", str(file)).out
    assert "Plotly.newPlot" in file.read_text(encoding="utf-8")


def test_an_empty_store_has_nothing_to_compare(say: Any) -> None:
    assert "no run to compare" in say().out
    assert say("--filter", "metrics.self_neuron_us > 1", "--fail-if-slower", "5%").code == 3


def test_the_beginning_of_an_id_is_enough_when_it_is_unique(
    root: Path, send: Send, say: Any
) -> None:
    send("naive", 1000.0)
    (run,) = ids(root)
    assert say("--runs", run[:8]).code == 0


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["--swep", "x"], ["--swep", "Type --sweep"]),
        (["--sweep"], ["--sweep", "--help"]),
        (["--sweep", "nope"], ["--sweep nope", "Type --sweep with one of s1"]),
        (["--sweep", "a' or 1=1"], ["not a sweep id", "s1"]),
        (["--experiment", "rms_nrom"], ["rms_nrom", "Type --experiment 'rms_norm'"]),
        (["--runs", "0" * 32], ["0" * 32, "no profile run"]),
        (["--runs", "zz'"], ["not the id of a run"]),
        (["--runs", "ab", "--sweep", "s1"], ["--runs beside --sweep"]),
        (["--filter", "nonsense"], ["--filter 'nonsense'", "Type for example"]),
        (["--filter", "params.variant == 5"], ["does not take"]),
        (["--across", "varient"], ["varient", "Type --across variant"]),
        (["--fail-if-slower", "5"], ["--fail-if-slower 5", "Type --fail-if-slower 5%"]),
        (["--fail-if-slower", "fast"], ["fast", "5%"]),
        (["--fail-if-slower", "-3%"], ["--fail-if-slower"]),
        (["--baseline", "naive"], ["naive", "params.variant = 'naive'"]),
        (["--baseline", "params.variant = 'nope'"], ["no profile run matches"]),
        (["--baseline", "f" * 32], ["f" * 32]),
        (["--html", "/nonexistent/x.html"], ["/nonexistent/x.html", "Type a file"]),
        (["surplus"], ["surplus"]),
    ],
)
def test_a_slip_is_exit_2_and_one_line_that_says_what_to_type(
    root: Path, send: Send, say: Any, typed: list[str], words: list[str]
) -> None:
    send("naive", 1000.0, sweep_id="s1")
    said = say(*typed)
    assert said.code == 2, said.out
    assert len(said.err.strip().splitlines()) == 1, said.err
    for word in words:
        assert word in said.err


def test_a_store_that_is_not_there_is_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare.main(["--root", str(tmp_path / "none")]) == 2
    assert "There is no store at" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

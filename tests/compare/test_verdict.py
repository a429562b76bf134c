"""Verdicts: better, worse, same, and every reason to refuse one."""

from __future__ import annotations

from typing import Any

import pytest

from src.analyze import verdict
from src.analyze.measured import Measured
from src.analyze.verdict import judge

from .making import measured


def repeats(us: tuple[float, ...], **more: Any) -> list[Measured]:
    return [measured(us=time, **more) for time in us]


def test_a_run_against_itself_is_identical() -> None:
    run = measured()
    assert judge(run, run).word == "identical"


def test_the_same_run_tracked_twice_is_identical() -> None:
    assert judge(measured(), measured()).word == "identical"


@pytest.mark.parametrize("noisy", range(5))
def test_five_repeats_with_3_percent_noise_are_the_same_within_noise(noisy: int) -> None:
    five = repeats((1000.0, 1030.0, 970.0, 1020.0, 985.0), tags={"measurement_id": "one"})
    for baseline in five:
        if baseline is not five[noisy]:
            found = judge(baseline, five[noisy], repeats=five, baseline_repeats=five)
            assert found.word == "same within noise", found.reason
            assert "4 other runs" in found.reason
            assert found.n == 4


def test_one_slow_run_among_its_equals_does_not_hide_in_the_noise_that_it_makes() -> None:
    times = (1000.0, 1020.0, 985.0, 1010.0, 990.0, 1100.0)
    six = repeats(times, tags={"measurement_id": "one"})
    assert judge(six[0], six[5], repeats=six, baseline_repeats=six).word == "worse"


def test_one_run_beside_several_may_lie_as_far_off_as_any_of_them() -> None:
    before = repeats((1000.0, 1060.0, 940.0, 1030.0), tags={"measurement_id": "before"})
    still = measured("fused", 1060.0, (1.0,) * 5)
    assert judge(before[0], still, baseline_repeats=before).word == "same within noise"


def test_a_tenth_slower_is_worse_and_a_tenth_faster_better_by_windows() -> None:
    baseline = measured()
    slower = judge(baseline, measured("fused", 1100.0))
    assert (slower.word, round(slower.change or 0, 3)) == ("worse", 0.1)
    assert "10.0% slower (1,100.0 against 1,000.0 us)" in slower.reason
    assert "5 and 5 windows" in slower.reason
    assert judge(baseline, measured("fused", 900.0)).word == "better"


def test_a_tenth_is_within_the_noise_of_windows_that_spread_by_a_fifth() -> None:
    wide = (1.0, 1.2, 0.8, 1.1, 0.9)
    found = judge(measured(windows=wide), measured("fused", 1100.0, wide))
    assert found.word == "same within noise"
    assert (found.noise or 0) > 0.1


def test_windows_without_any_spread_do_not_make_one_percent_a_result() -> None:
    still = (1.0,) * 5
    assert judge(measured(windows=still), measured("fused", 1010.0, still)).word == verdict.SAME
    assert judge(measured(windows=still), measured("fused", 1030.0, still)).word == verdict.WORSE


def test_repeated_runs_count_before_windows_and_compare_their_middles() -> None:
    before = repeats((1000.0, 1001.0, 999.0), tags={"measurement_id": "before"})
    after = repeats((1020.0, 1021.0, 1019.0), tags={"measurement_id": "after"})
    found = judge(before[1], after[2], repeats=after, baseline_repeats=before)
    assert found.word == "worse"
    assert "1,020.0 against 1,000.0" in found.reason
    assert "3 and 3 runs" in found.reason


def test_two_repeats_are_too_few_and_the_windows_count() -> None:
    pair = repeats((1000.0, 1100.0), tags={"measurement_id": "one"})
    found = judge(pair[0], pair[1], repeats=pair, baseline_repeats=pair)
    assert "windows" in found.reason


def test_one_window_gives_no_noise_estimate_and_says_what_to_type() -> None:
    found = judge(measured(windows=(1.0,)), measured("fused", 500.0))
    assert found.word == "no noise estimate"
    assert "profiler.repeats=5" in found.reason
    assert found.change == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"params": {"workload": "softmax"}}, "workload: softmax against rms_norm"),
        ({"params": {"input.shape": "8x2048x4096"}}, "input: 8x2048x4096"),
        ({"params": {"input.dtype": "float32"}}, "float32"),
        ({"device": "simulated"}, "device: simulated against neuron"),
        ({"tags": {"device_time_source": "neuron_explorer"}}, "device_time_source"),
        ({"tags": {"lnc": "1"}}, "lnc: 1 against 2"),
        ({"tags": {"lnc": None}}, "lnc: none against 2"),
        ({"tags": {"chip": "trn3"}}, "chip"),
        ({"params": {"cores": "0-1"}}, "cores: 0-1 against 0"),
        ({"params": {"profiler.modes": "DEVICE+RUNTIME"}}, "profiler.modes"),
        ({"params": {"profiler.with_stack": "True"}}, "profiler.with_stack: True against False"),
        ({"params": {"profiler.steps": "10"}}, "profiler.steps"),
        ({"params": {"execution": "blocking"}}, "execution"),
        ({"params": {"concurrent_jobs": "4"}}, "concurrent_jobs"),
        ({"tags": {"version.torch_neuronx": "2.14"}}, "declare it with --across sdk"),
        ({"tags": {"timing_variables": '{"NEURON_RT_X": "1"}'}}, "NEURON_RT_X: 1 against none"),
        ({"tags": {"capture_health": "incomplete", "capture_health_line": "lost"}}, "lost"),
        ({"status": "FAILED", "tags": {"error": "it broke"}}, "FAILED: it broke"),
        ({"status": "KILLED"}, "KILLED"),
        ({"us": None}, "no device time"),
        ({"us": 0.0}, "0 us"),
        ({"metrics": {"fallback_operators": 1.0}}, "fell back"),
        ({"tags": {"fallback_operators": "aten::rsqrt"}}, "aten::rsqrt fell back"),
    ],
)  # fmt: skip
def test_what_must_not_be_compared_is_refused_with_the_reason(change: Any, words: str) -> None:
    for run, baseline in ((measured(**{"us": 500.0} | change), measured()),):
        found = judge(baseline, run)
        assert found.word == "not comparable", found
        assert words in found.reason
        assert found.change is None


@pytest.mark.parametrize("status", ["FAILED", "KILLED", "RUNNING", "SCHEDULED"])
def test_a_baseline_that_is_not_finished_is_refused(status: str) -> None:
    assert "the baseline is " + status in judge(measured(status=status), measured("fused")).reason


def test_defaults_of_a_profiler_setting_and_its_absence_are_one_thing() -> None:
    named = measured("fused", 500.0, params={"profiler.with_stack": "False"})
    assert judge(measured(), named).word == "better"


@pytest.mark.parametrize("us", [10.0, 999.0, 1000.0, 5000.0])
@pytest.mark.parametrize("windows", [(1.0,), (1.0, 1.0, 1.0), (1.0, 1.3, 0.7)])
def test_one_fall_back_more_is_never_better(us: float, windows: Any) -> None:
    baseline = measured(metrics={"fallback_operators": 1.0})
    run = measured("fused", us, windows, metrics={"fallback_operators": 2.0})
    assert judge(baseline, run).word == "not comparable"


def test_fall_backs_that_are_unknown_here_and_known_there_are_never_better() -> None:
    unknown = measured("fused", 500.0)
    metrics = {k: v for k, v in unknown.metrics.items() if k != "fallback_operators"}
    run = Measured(**{**vars(unknown), "metrics": metrics})
    assert judge(measured(), run).word == "not comparable"


def test_a_baseline_with_fall_backs_can_be_beaten_but_not_lost_against() -> None:
    baseline = measured(metrics={"fallback_operators": 1.0})
    assert judge(baseline, measured("fused", 500.0)).word == "better"
    assert judge(baseline, measured("fused", 2000.0)).word == "not comparable"


def test_simulated_runs_get_no_verdict_unless_a_pipeline_is_tested() -> None:
    baseline, run = measured(device="simulated"), measured("fused", 400.0, device="simulated")
    assert judge(baseline, run).word == "simulated"
    allowed = judge(baseline, run, allow_simulated=True)
    assert allowed.word == "better"
    assert allowed.reason.startswith("simulated: ")


def test_one_sign_of_the_simulator_makes_a_run_simulated() -> None:
    disguised = measured("fused", 400.0, tags={"device_time_source": "simulated"})
    assert judge(measured(), disguised).word == "not comparable"


def test_versions_may_differ_when_the_sdk_is_what_is_compared() -> None:
    newer = measured(us=900.0, tags={"version.torch_neuronx": "2.14", "neff_sha256": "a"})
    assert judge(measured(tags={"neff_sha256": "b"}), newer, across="sdk").word == "better"
    same = judge(measured(tags={"neff_sha256": "a"}), newer, across="sdk")
    assert "same binary" in same.reason
    assert judge(measured("fused"), newer, across="sdk").word == "not comparable"


def test_another_input_is_other_work_even_when_inputs_are_lined_up() -> None:
    larger = measured(us=4000.0, params={"input.shape": "8x2048x4096"})
    found = judge(measured(), larger, across="input")
    assert found.word == "not comparable"
    assert "other work" in found.reason


def test_several_cores_are_compared_by_the_busiest() -> None:
    one = measured(metrics={"self_neuron_us_max_core": 1000.0})
    two = measured(us=1100.0, params={"cores": "0-1"}, metrics={"self_neuron_us_max_core": 550.0})
    assert judge(one, two, across="cores").word == "better"


@pytest.mark.parametrize("text", ["", "{", "[1", "null", "7", '["a"]', "[NaN, true]"])
def test_tags_that_are_no_numbers_are_no_windows(text: str) -> None:
    odd = measured("fused", 500.0, tags={"window_self_neuron_us": text, "timing_variables": text})
    assert judge(measured(), odd).word == "no noise estimate"

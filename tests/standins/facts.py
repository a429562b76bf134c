"""Facts of the published call sequence, as questions to a run's diary. Used by test_sequence.py."""

from __future__ import annotations

from collections.abc import Callable

from src import rundir

from . import asking

Fact = Callable[[asking.Result], bool]
WINDOWS = 2


def _is_finished(run: asking.Result) -> bool:
    return run.status == "FINISHED" and len(run.noted("start")) == WINDOWS


def keywords_only(run: asking.Result) -> bool:
    return _is_finished(run) and "capture_enabled_for_nc" in run.noted("config")[0]


def cores_as_text(run: asking.Result) -> bool:
    return _is_finished(run) and run.noted("config")[0]["capture_enabled_for_nc"] == "0"


def modes_are_members(run: asking.Result) -> bool:
    return _is_finished(run) and run.noted("config")[0]["modes"] == ["RUNTIME"]


def files_go_to_the_run_directory(run: asking.Result) -> bool:
    wanted = str(run.directory / rundir.PROFILE)
    return _is_finished(run) and run.noted("config")[0].get("profile_output_dir") == wanted


def neffs_come_from_the_effective_cache(run: asking.Result) -> bool:
    first = run.diary[0]["environ"]["TORCH_NEURONX_NEFF_CACHE_DIR"]
    return _is_finished(run) and run.noted("config")[0].get("neff_cache_dir") == first


def three_warm_up_calls_without_gradients(run: asking.Result) -> bool:
    calls = run.noted("start")[0]["calls"] if run.noted("start") else {}
    ran = {name for stop in run.noted("stop") for name in stop["ran"]}
    return bool(ran) and all(calls.get(name, 0) >= 3 for name in ran)


def no_gradients_in_the_window(run: asking.Result) -> bool:
    return bool(run.noted("stop")) and all(stop["with_grad"] == 0 for stop in run.noted("stop"))


def synchronized_before_the_window(run: asking.Result) -> bool:
    starts = run.noted("start")
    return bool(starts) and all(start["unsynchronized"] == 0 for start in starts)


def synchronized_inside_the_block(run: asking.Result) -> bool:
    own = [one for one in run.noted("synchronize") if one["inside"] and not one["by_torch"]]
    stops = run.noted("stop")
    return len(own) == WINDOWS and all(s["seen"] == s["launched"] > 0 for s in stops)


def both_activities(run: asking.Result) -> bool:
    starts = run.noted("start")
    return bool(starts) and all(s["use_cpu"] and s["use_device"] == "neuron" for s in starts)


def the_config_is_given_to_the_profiler(run: asking.Result) -> bool:
    return len(run.noted("start")) == WINDOWS  # noted for a NeuronConfig only


def one_config_and_one_profile_a_window(run: asking.Result) -> bool:
    return len({start["config"] for start in run.noted("start")}) == WINDOWS


def each_window_is_exported_by_its_own_exporter(run: asking.Result) -> bool:
    exports = run.noted("export_trace")
    return [e["config"] for e in exports] == [s["config"] for s in run.noted("stop")] and all(
        e["is_profile"] for e in exports
    )


def the_fallback_list_is_asked_outside_the_profiler(run: asking.Result) -> bool:
    asked = run.noted("clear_op_tracking") + run.noted("get_fallback_ops")
    return len(asked) == 2 and not any(one["inside"] for one in asked)


FACTS: list[Fact] = [
    keywords_only,
    cores_as_text,
    modes_are_members,
    files_go_to_the_run_directory,
    neffs_come_from_the_effective_cache,
    three_warm_up_calls_without_gradients,
    no_gradients_in_the_window,
    synchronized_before_the_window,
    synchronized_inside_the_block,
    both_activities,
    the_config_is_given_to_the_profiler,
    one_config_and_one_profile_a_window,
    each_window_is_exported_by_its_own_exporter,
    the_fallback_list_is_asked_outside_the_profiler,
]

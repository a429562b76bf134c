"""What a run says of each thing that can be wrong with the library: status, health and message.

One mood of the stand-in for each unknown of the published interface that can be acted out. The run
is naive RMSNorm on the small input, in two windows; test_study.py runs all three variants.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from src import rundir

from . import asking
from .asking import PLAIN_US
from .conftest import Measure


@dataclass(frozen=True)
class Case:
    """A mood, and what a run in it must come to."""

    mood: str
    status: str
    health: str | None
    """complete, suspicious or incomplete; None: there is none, the run was refused."""
    check: str = ""
    """The health check that must say `says`; empty: the run's own message must."""
    says: tuple[str, ...] = ()
    profiler: str = "runtime"
    has_time: bool = True
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return "-".join([self.mood.replace(",", "+"), self.profiler, *self.variables.values()])


TIMELESS = ("FAILED", "incomplete")
WHOLE = ("FINISHED", "complete")
LOST = ("FINISHED", "incomplete")
DOUBTED = ("FINISHED", "suspicious")
KEYWORD = {"STANDIN_REFUSES": "neff_cache_dir"}
CASES = [
    Case("", *WHOLE, "fallback", ("no operator fell back",)),
    Case("", *WHOLE, "neff_cache", ("cold", "6 compiled")),
    # NeuronConfig's signature and the types it accepts
    Case("refuses", *TIMELESS, "device_time", ("does not know correlate_device_time",),
         has_time=False),
    Case("refuses_pybind", *TIMELESS, "device_time", ("correlate_device_time",), has_time=False),
    Case("refuses", *DOUBTED, "keywords_dropped", ("neff_cache_dir",), variables=KEYWORD),
    Case("refuses_pybind", *DOUBTED, "keywords_dropped", ("neff_cache_dir",), variables=KEYWORD),
    Case("refuses_invalid", *DOUBTED, "keywords_dropped", ("neff_cache_dir",), variables=KEYWORD),
    Case("refuses_value", *DOUBTED, "keywords_dropped", ("neff_cache_dir",), variables=KEYWORD),
    Case("refuses_modes", *TIMELESS, "", ("installed NeuronConfig refuses", "modes: RUNTIME"),
         has_time=False),
    Case("no_host_memory", *TIMELESS, "", ("ProfileMode has no HOST_MEMORY", "CPU_UTIL, DEVICE"),
         "full", has_time=False),
    # where device time comes from
    Case("no_device_time", *TIMELESS, "device_time", ("table has none", "profiler's table"),
         has_time=False),
    Case("dispatch_rows", *TIMELESS, "device_time", ("table has none",), has_time=False),
    Case("dispatch_rows_beside", *WHOLE, "device_time", ("key_averages",)),
    Case("doubled", *LOST, "doubled_time", ("2.00 times", "LNC2", "Halve")),
    Case("lnc2", *WHOLE, "doubled_time", ("1.00 times",)),
    # fall-backs to the CPU
    Case("falls_back", *DOUBTED, "fallback", ("aten::rsqrt fell back",)),
    Case("falls_back,no_op_tracking", *DOUBTED, "fallback", ("aten::rsqrt", "shape of the trace")),
    Case("falls_back,dead_op_tracking", *DOUBTED, "fallback", ("aten::rsqrt", "shape")),
    Case("no_op_tracking", *WHOLE, "fallback", ("cannot tell",)),
    Case("dead_op_tracking", *WHOLE, "fallback", ("cannot tell",)),
    # compiling and the cache
    Case("compile_in_window", *LOST, "compile_in_window", ("2 new in the NEFF cache",)),
    Case("warm_cache", *LOST, "mode_files", (".ntff files but no .neff", "neff_cache_dir"),
         "combined"),
    # starting
    Case("silent_start", *TIMELESS, "session_directory", ("0 session folders", "did not start"),
         has_time=False),
    Case("start_warns", *TIMELESS, "session_directory", ("0 session folders",), has_time=False),
    Case("start_raises", *TIMELESS, "", ("profiler did not start", "NRT_UNINITIALIZED", "doctor"),
         has_time=False),
    Case("aborts", *TIMELESS, "", ("SIGABRT", "'profiling'"), has_time=False),
    Case("empty_folder", *TIMELESS, "session_directory", ("Empty: i-0standin",), has_time=False),
    # export_trace and the folder
    Case("export_returns", *WHOLE, "mode_files", ("files present",)),
    Case("export_raises", *WHOLE, "mode_files", ("files present",)),
    Case("export_does_nothing", *WHOLE, "mode_files", ("files present",)),
    Case("odd_folder", *WHOLE, "session_directory", ("2 session folders",)),
    Case("no_time_level", *LOST, "session_directory", ("1 session folder for 2 windows",)),
    Case("many_sessions", *WHOLE, "session_directory", ("4 session folders for 2 windows",)),
    Case("empty_ntff", *LOST, "empty_files", ("2 empty files", "more cores"), "combined"),
    # memory and cores
    Case("device_out_of_memory", *TIMELESS, "", ("about 5 GB", "profiler=runtime", "fewer cores"),
         "combined", has_time=False),
    Case("device_out_of_memory", *WHOLE),
    Case("device_out_of_memory_silent", *LOST, "mode_files", ("about 5 GB",), "combined"),
    Case("busy_core", "REFUSED", None, "", ("cores=0", "could not open", "neuron-ls"),
         has_time=False),
    Case("unavailable", "REFUSED", None, "", ("is_available() is false", "modprobe neuron"),
         has_time=False),
    # noise, events and the rest
    Case("dropped_events", *LOST, "dropped_events", ("2,468 trace events", "max_events_per_nc=")),
    Case("noisy", *WHOLE),
    Case("nested_memory_stats", *WHOLE),
    # the environment
    Case("", "REFUSED", None, "", ("NEURON_RT_INSPECT_ENABLE=1", "unset NEURON_RT_INSPECT_ENABLE"),
         has_time=False, variables={"NEURON_RT_INSPECT_ENABLE": "1"}),
    Case("", *WHOLE, variables={"NEURON_RT_INSPECT_ENABLE": "0"}),
    Case("", "REFUSED", None, "", ("VIRTUAL_CORE_SIZE=1", "LOGICAL_NC_CONFIG=2", "agree"),
         has_time=False,
         variables={"NEURON_RT_VIRTUAL_CORE_SIZE": "1", "NEURON_LOGICAL_NC_CONFIG": "2"}),
]  # fmt: skip


def _assert_kept(run: asking.Result) -> None:
    """A failed run keeps its profile and everything else that was measured."""
    assert (run.directory / rundir.REPORT).is_file()
    assert (run.directory / rundir.ERROR).read_text().strip() == run.message
    assert (run.directory / rundir.PROFILE).is_dir()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_run_says_what_is_wrong(measure: Measure, record_property: Any, case: Case) -> None:
    run = measure(case.mood, asking.spec(profiler=case.profiler), **case.variables)
    said = run.check(case.check)[1] if case.check else run.message
    for name, value in {"status": run.status, "health": run.health, "message": said}.items():
        record_property(name, str(value))
    assert run.status == case.status, run.message
    assert (run.health.status if run.health else None) == case.health
    for words in case.says:
        assert words in said
    if run.status != "REFUSED":
        assert run.ready["device"] == "neuron"
    if run.status == "FAILED":
        _assert_kept(run)
    assert ("self_neuron_us" in run.metrics) == case.has_time
    if case.has_time and "falls_back" not in case.mood:
        wanted = PLAIN_US * (2 if case.mood == "doubled" else 1)
        assert run.metrics["self_neuron_us"] == pytest.approx(wanted)
        assert run.tags["device_time_source"] == "key_averages"


def test_every_mood_of_the_stand_in_is_acted_out() -> None:
    text = (asking.CURRENT / "torch_neuronx" / "_moods.py").read_text()
    moods = set(text.split('"""')[3].split())
    here = {mood for case in CASES for mood in case.mood.split(",")}
    elsewhere = {"whole_cache", "whole_cache_unnamed", "fewer_cores"}
    assert moods == (here | elsewhere) - {""}


def test_without_a_lawful_source_the_profile_is_kept_in_full(measure: Measure) -> None:
    run = measure("no_device_time")
    assert run.tags["device_time_source"] == "none"
    assert "profiler.correlate_device_time=true" in run.message
    assert "self_neuron_us" not in run.metrics
    assert run.metrics["self_cpu_total_us"] > 0
    assert len(list((run.directory / rundir.PROFILE).rglob("trace.json"))) == 2


def test_dropped_keywords_are_tagged_and_the_run_goes_on_without_them(measure: Measure) -> None:
    asked = asking.spec(precache_node_info=True, max_events_per_nc=1000)
    run = measure("refuses", asked, STANDIN_REFUSES="precache_node_info,max_events_per_nc")
    assert run.status == "FINISHED"
    assert run.tags["dropped_keywords"] == "max_events_per_nc, precache_node_info"
    assert run.metrics["self_neuron_us"] == pytest.approx(PLAIN_US)


def test_a_fallen_back_operator_is_counted_and_named(measure: Measure) -> None:
    run = measure("falls_back")
    assert run.metrics["fallback_operators"] == 1
    assert run.tags["fallback_operators"] == "aten::rsqrt"
    assert run.metrics["self_neuron_us"] < PLAIN_US  # which is why it must be known


def test_what_cannot_be_told_is_no_metric(measure: Measure) -> None:
    assert "fallback_operators" not in measure("no_op_tracking").metrics


def test_a_broken_export_is_in_the_log_and_the_trace_is_written_all_the_same(
    measure: Measure,
) -> None:
    run = measure("export_raises")
    assert "FileExistsError" in run.log
    assert len(list((run.directory / rundir.PROFILE).rglob("trace.json"))) == 2


def test_every_window_has_its_session_folder_also_without_a_time_level(measure: Measure) -> None:
    run = measure("no_time_level")
    assert run.operators is not None
    assert all(window.session_dir for window in run.operators.windows)
    assert measure("no_time_level", asking.spec(repeats=1)).health.status == "complete"  # type: ignore[union-attr]


def test_more_cores_than_are_visible_are_refused(measure: Measure) -> None:
    asked = asking.spec()
    asked.config.cores, asked.config.workload.uses_cores = "0-1", 2
    run = measure("fewer_cores", asked)
    assert run.status == "REFUSED"
    assert "cores=0-1: asks for 2 NeuronCores, but torch.neuron shows 1" in run.message


@pytest.mark.parametrize("name", ["NEURON_RT_VIRTUAL_CORE_SIZE", "NEURON_LOGICAL_NC_CONFIG"])
def test_lnc_is_what_the_environment_says_and_else_unknown(measure: Measure, name: str) -> None:
    assert measure(**{name: "2"}).ready["lnc"] == 2
    assert measure().ready.get("lnc") is None


def test_noise_and_scale_act_on_device_time_only(measure: Measure) -> None:
    noisy = measure(STANDIN_NOISE="0.03", STANDIN_SEED="7", asked=asking.spec(repeats=5))
    again = measure(STANDIN_NOISE="0.03", STANDIN_SEED="7", asked=asking.spec(repeats=5))
    windows = noisy.operators and [
        sum(row.self_neuron_us or 0 for row in window.operators)
        for window in noisy.operators.windows
    ]
    assert len(set(windows or ())) == 5
    assert noisy.metrics["self_neuron_us"] == pytest.approx(PLAIN_US, rel=0.1)
    assert noisy.metrics["self_neuron_us"] == again.metrics["self_neuron_us"]
    slower = measure(STANDIN_SCALE="1.1")
    assert slower.metrics["self_neuron_us"] == pytest.approx(1.1 * PLAIN_US, rel=1e-4)

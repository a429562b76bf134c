"""The published call sequence: each fact of it has a test, and a mutant of ours that it catches."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from . import asking, facts
from .conftest import SOURCE, Measure

PLAIN_US = asking.PLAIN_US
CAPTURE, CONFIG, JOB = "measure/capture.py", "measure/neuron_config.py", "job.py"
KEEPS_ONE = (
    "    settings, dropped = _window.__dict__.get('kept') or _window.__dict__.setdefault("
    "'kept', neuron_config(device, profiler, config.cores, str(profile_dir))) or ("
)
MUTANTS: list[tuple[facts.Fact, str, str, str]] = [
    (facts.keywords_only, CONFIG, "NeuronConfig(**keywords)", "NeuronConfig(*keywords.values())"),
    (facts.cores_as_text, CONFIG, "profiler.capture_cores or cores,", "[int(cores)],"),
    (facts.modes_are_members, CONFIG, "_mode(device, mode) for", "mode for"),
    (facts.files_go_to_the_run_directory, CONFIG, '"profile_output_dir": profile_dir,', ""),
    (facts.neffs_come_from_the_effective_cache, CONFIG, "or device.neff_cache_dir", "or None"),
    (
        facts.three_warm_up_calls_without_gradients,
        JOB,
        "range(config.profiler.warmup)",
        "range(0)",
    ),
    (
        facts.three_warm_up_calls_without_gradients,
        JOB,
        "with torch.no_grad():",
        "with torch.enable_grad():",
    ),
    (
        facts.no_gradients_in_the_window,
        CAPTURE,
        "block.enter_context(torch.no_grad())",
        "block.enter_context(torch.enable_grad())",
    ),
    (
        facts.synchronized_before_the_window,
        JOB,
        "_time_unprofiled(step, device, config, directory, phases)\n    _profile(",
        "step()\n    _profile(",
    ),
    (
        facts.synchronized_inside_the_block,
        CAPTURE,
        "device.synchronize()  # inside the block",
        "pass  # inside the block",
    ),
    (facts.both_activities, CAPTURE, "[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]",
     "[ProfilerActivity.CPU]"),
    (facts.both_activities, CAPTURE, "[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]",
     "[ProfilerActivity.PrivateUse1]"),
    (facts.the_config_is_given_to_the_profiler, CAPTURE, "experimental_config=settings,", ""),
    (
        facts.one_config_and_one_profile_a_window,
        CAPTURE,
        "    settings, dropped = neuron_config(",
        KEEPS_ONE,
    ),
    (facts.each_window_is_exported_by_its_own_exporter, CAPTURE, "on_trace_ready=export,", ""),
    (
        facts.the_fallback_list_is_asked_outside_the_profiler,
        CAPTURE,
        "                profile.step()",
        "                fallbacks.listed(step, device)\n                profile.step()",
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def plain(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> asking.Result:
    measure = request.getfixturevalue("measure_anywhere")
    result: asking.Result = measure(root=tmp_path_factory.mktemp("plain"))
    return result


@pytest.mark.parametrize("fact", facts.FACTS, ids=lambda fact: fact.__name__)
def test_our_sequence_keeps_to_the_published_one(plain: asking.Result, fact: facts.Fact) -> None:
    assert plain.status == "FINISHED", plain.message
    assert plain.metrics["self_neuron_us"] == pytest.approx(PLAIN_US)
    assert fact(plain)


@pytest.mark.parametrize(
    ("fact", "file", "old", "new"), MUTANTS, ids=lambda value: getattr(value, "__name__", "")
)
def test_the_fact_is_missed_by_a_sequence_that_breaks_it(
    measure: Measure, tmp_path: Path, fact: facts.Fact, file: str, old: str, new: str
) -> None:
    source = tmp_path / "src"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    text = (source / file).read_text()
    assert old in text
    (source / file).write_text(text.replace(old, new))
    run = measure(source=source)
    print(run.status, run.message[:200])
    assert not fact(run)


def test_every_fact_has_a_mutant() -> None:
    assert {mutant[0] for mutant in MUTANTS} == set(facts.FACTS)


@pytest.mark.slow
def test_the_environment_is_complete_before_torch_loads_the_library(tmp_path: Path) -> None:
    """In a real child, where importing torch loads torch_neuronx through its entry point."""
    asked = asking.spec()
    asked.config.execution = "async"
    asked.config.device.env = {"NEURON_RT_LOG_LEVEL": "ERROR"}
    run = asking.measure(tmp_path, asked=asked)
    assert run.status == "FINISHED"
    assert run.diary[0]["event"] == "import"
    assert run.diary[0]["environ"] == {
        "NEURON_RT_VISIBLE_CORES": "0",
        "NEURON_LAUNCH_BLOCKING": "0",
        "NEURON_RT_LOG_LEVEL": "ERROR",
        "TORCH_NEURONX_NEFF_CACHE_DIR": str(tmp_path / "neffs"),
    }
    for start in run.noted("start"):  # and nobody changes it afterwards
        assert start["environ"] == run.diary[0]["environ"]


def test_each_mode_leaves_the_published_files(measure: Measure) -> None:
    run = measure("", asking.spec(profiler="full"))
    assert (run.status, run.health and run.health.status) == ("FINISHED", "complete")
    for window in run.operators.windows if run.operators else ():
        files = {
            path.name for path in (run.directory / "profile" / str(window.session_dir)).iterdir()
        }
        neffs = {name for name in files if name.endswith("_vnc_0.neff")}
        assert len(neffs) == 6
        assert files - neffs == {
            "trace_info.pb", "ntrace.pb", "cpu_util.pb", "host_mem.pb", "trace.json",
            "profile_nc_0_session_1.ntff",
        }  # fmt: skip


def test_the_version_decides_nothing(measure: Measure) -> None:
    run = measure(STANDIN_VERSION="1.0.0")
    assert run.status == "FINISHED"
    assert run.ready["versions"]["torch_neuronx"] == "1.0.0"
    assert run.metrics["self_neuron_us"] == pytest.approx(PLAIN_US)

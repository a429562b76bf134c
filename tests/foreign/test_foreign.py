"""Profiles of other scripts: told in full with the handler, and never more than is known."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from src import ingest, rundir
from src.track import foreign
from src.track.store import Store
from tests.foreign.conftest import only_run
from tests.track.making import manifest_agrees

NAMES = ("--workload", "mlp", "--variant", "theirs")


def track(path: Path, store: Store, *more: str) -> int:
    return ingest.main([str(path), "--root", str(store.root), *more])


def edit(path: Path, **changes: Any) -> None:
    rundir.write_json(path, {**json.loads(path.read_text()), **changes})


def sessions(profile: Path) -> list[Path]:
    return sorted(path.parent for path in profile.rglob("operators.json"))


def as_measured(profile: Path) -> None:
    """Turn a simulated profile into one as Trainium would leave it, for the tests only."""
    for folder in sessions(profile):
        for path in folder.glob("*.simulated.json"):
            path.rename(path.with_name(path.name.removesuffix(".simulated.json")))
        trace = json.loads((folder / "trace.json").read_text())
        trace.pop("simulated")
        trace["traceEvents"] = [e for e in trace["traceEvents"] if e.get("cat") != "kernel"]
        (folder / "trace.json").write_text(json.dumps(trace))
        edit(folder / "environment.json", device="neuron", instance_type="trn2.3xlarge")
        edit(folder / "operators.json", device_time_source="key_averages")


def test_a_users_script_with_the_handler_gives_full_metrics(
    handled: Path, client: Any, local_store: Store
) -> None:
    before = {path: path.read_bytes() for path in handled.rglob("*") if path.is_file()}
    assert len(sessions(handled)) == 3
    assert track(handled, local_store, *NAMES, "--tag", "team=kernels") == 0
    run = only_run(client, local_store)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["self_neuron_us"] == pytest.approx(900, rel=0.1)  # 3 x 300 us
    assert run.data.metrics["operator_calls"] == 3
    assert {"self_cpu_us", "self_cpu_total_us", "self_neuron_us/aten::addmm"} <= set(
        run.data.metrics
    )
    assert run.data.tags["team"] == "kernels"
    assert run.data.tags["captured_by"] == "another script"
    assert run.data.tags["device"] == run.data.params["device"] == "simulated"
    assert run.info.run_name == "sim mlp theirs"
    kept = Path(run.info.artifact_uri)
    assert manifest_agrees(kept)
    assert (kept / "profile" / sessions(handled)[0].relative_to(handled) / "trace.json").is_file()
    assert (kept / "timeline.svg").is_file()
    assert {path: path.read_bytes() for path in handled.rglob("*") if path.is_file()} == before


def test_none_of_this_tools_defaults_is_passed_off_as_a_setting_of_the_script(
    handled: Path, client: Any, local_store: Store
) -> None:
    assert track(handled, local_store, *NAMES) == 0
    run = only_run(client, local_store)
    assert set(run.data.params) == {
        *("workload", "variant", "input", "profiler", "device", "device_time_source"),
        *("profiler.modes", "profiler.steps", "profiler.repeats"),
    }
    assert run.data.params["profiler.modes"] == "DEVICE+RUNTIME"
    assert run.data.params["profiler.steps"] == "2"
    report = (Path(run.info.artifact_uri) / "report.md").read_text()
    assert "by another script" in report
    assert "bfloat16" not in report
    assert "warm-up" not in report.split("## Result")[0]


def test_the_handler_writes_no_secret(handled: Path) -> None:
    texts = [path.read_text() for path in handled.rglob("environment.json")]
    assert texts
    assert not any("hunter22" in text for text in texts)
    assert all('"NEURON_RT_LOG_TOKEN": "***"' in text for text in texts)


def test_a_profile_must_be_named_and_a_run_directory_must_not(
    handled: Path, local_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert track(handled, local_store) == 2
    said = capsys.readouterr().err
    assert "--workload NAME" in said
    assert "spec.json" in said
    assert track(handled, local_store, "--workload", "mlp") == 2
    assert "missing: --variant NAME" in capsys.readouterr().err
    assert list(local_store.pending.iterdir()) == []


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("--tag", "team"), "NAME=VALUE"),
        (("--tag", "device=neuron"), "writes that tag itself"),
        (("--tag", "mlflow.user=me"), "writes that tag itself"),
        (("--tag", "a=1", "--tag", "a=2"), "named twice"),
        (("--workload", " "), "not a name"),
    ],
)
def test_what_cannot_be_a_name_or_a_tag_is_refused(
    typed: tuple[str, ...],
    said: str,
    handled: Path,
    local_store: Store,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert track(handled, local_store, *NAMES, *typed) == 2
    assert said in capsys.readouterr().err
    assert list(local_store.pending.iterdir()) == []


def test_files_of_trainium_are_not_called_simulated(
    handled: Path, client: Any, local_store: Store
) -> None:
    as_measured(handled)
    assert track(handled, local_store, *NAMES) == 0
    run = only_run(client, local_store)
    assert run.data.tags["device"] == "neuron"
    assert run.data.tags["chip"] == "trn2"
    assert run.data.tags["device_time_source"] == "key_averages"
    assert not run.info.run_name.startswith("sim")


@pytest.mark.parametrize("sign", ["trace", "table", "stamp", "file"])
def test_one_sign_of_the_simulator_is_enough(sign: str, handled: Path) -> None:
    as_measured(handled)
    for folder in sessions(handled):
        if sign == "trace":
            edit(folder / "trace.json", simulated=True)
        elif sign == "table":
            edit(folder / "operators.json", device_time_source="simulated")
        elif sign == "stamp":
            edit(folder / "environment.json", device="simulated")
        else:
            (folder / "host_mem.pb.simulated.json").write_text("{}")
    found = foreign.read(handled)
    assert found is not None
    assert found.device == "simulated"


def test_simulated_and_measured_sessions_in_one_directory_are_refused(
    handled: Path, local_store: Store, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    both = tmp_path / "both"
    shutil.copytree(handled, both / "a")
    as_measured(handled)
    shutil.copytree(handled, both / "b")
    assert track(both, local_store, *NAMES) == 2
    assert "one by one" in capsys.readouterr().err


def test_a_trace_alone_has_host_metrics_and_no_device_time(
    plain: tuple[Path, float], client: Any, local_store: Store
) -> None:
    directory, total_us = plain
    assert track(directory, local_store, *NAMES) == 0
    run = only_run(client, local_store)
    assert run.info.status == "FAILED"
    assert run.data.metrics["self_cpu_total_us"] == pytest.approx(total_us / 2, rel=1e-6)
    assert "self_neuron_us" not in run.data.metrics
    assert run.data.tags["device"] == "unknown"
    assert run.data.tags["device_time_source"] == "none"
    assert "neuron_handler.py" in run.data.tags["error"]
    assert (Path(run.info.artifact_uri) / "profile" / "trace.json").is_file()


@pytest.mark.parametrize("name", ["trace.json", "worker.123.pt.trace.json", "x.pt.trace.json.gz"])
def test_a_trace_file_may_be_named_itself_in_any_of_torchs_forms(
    name: str, plain: tuple[Path, float], client: Any, local_store: Store, tmp_path: Path
) -> None:
    data = (plain[0] / "trace.json").read_bytes()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert track(path, local_store, *NAMES) == 0
    run = only_run(client, local_store)
    assert run.data.metrics["self_cpu_total_us"] == pytest.approx(plain[1] / 2, rel=1e-6)
    assert path.is_file()


def test_the_runtimes_files_alone_are_kept_and_say_nothing(
    client: Any, local_store: Store, tmp_path: Path
) -> None:
    session = tmp_path / "theirs" / "i-0abc_pid_7" / "1776672348756756905"
    session.mkdir(parents=True)
    for name in (
        "ntrace.pb",
        "trace_info.pb",
        "neff_12345678_vnc_0.neff",
        "profile_nc_0_session_1.ntff",
    ):
        (session / name).write_bytes(b"\x01binary")
    assert track(tmp_path / "theirs", local_store, *NAMES) == 0
    run = only_run(client, local_store)
    assert run.info.status == "FAILED"
    assert not {name for name in run.data.metrics if "self_" in name}
    assert run.data.tags["device"] == "neuron"
    assert (
        Path(run.info.artifact_uri) / "profile" / session.relative_to(tmp_path / "theirs")
    ).is_dir()


def test_ranks_are_added_up_and_windows_are_not(handled: Path) -> None:
    alone = foreign.read(handled)
    assert alone is not None
    rank_1 = handled / "i-1_pid_99"
    shutil.copytree(next(handled.glob("i-*")), rank_1)
    for folder in sessions(handled):
        edit(folder / "environment.json", rank="1" if rank_1 in folder.parents else "0")
    both = foreign.read(handled)
    assert both is not None
    assert len(both.operators.windows) == len(alone.operators.windows) == 3
    first, window = alone.operators.windows[0], both.operators.windows[0]
    assert len(window.operators) == 2 * len(first.operators)
    assert set(window.self_neuron_by_core_us) == {"rank 0", "rank 1"}
    assert "2 ranks" in " ".join(both.notes)


def test_ranks_with_other_steps_are_refused(
    handled: Path, local_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(next(handled.glob("i-*")), handled / "i-1_pid_99")
    for folder in sessions(handled):
        is_other = "i-1_pid_99" in str(folder)
        edit(folder / "environment.json", rank="1" if is_other else "0")
        table = json.loads((folder / "operators.json").read_text())
        table["windows"][0]["steps"] += is_other
        rundir.write_json(folder / "operators.json", table)
    assert track(handled, local_store, *NAMES) == 2
    assert "different numbers of steps" in capsys.readouterr().err


def test_device_time_of_an_unknown_device_is_not_called_neurons(handled: Path) -> None:
    as_measured(handled)
    for folder in sessions(handled):
        edit(folder / "environment.json", device=None)
        for path in folder.iterdir():
            if path.name not in ("operators.json", "environment.json", "trace.json"):
                path.unlink()
    found = foreign.read(handled)
    assert found is not None
    assert found.device is None
    assert found.operators.device_time_source is None
    rows = [row for window in found.operators.windows for row in window.operators]
    assert rows
    assert all(row.self_neuron_us is None for row in rows)


def test_a_folder_without_any_file_of_a_profiler_is_refused(
    tmp_path: Path, local_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "notes.txt").write_text("hello")
    assert track(tmp_path / "x", local_store, *NAMES) == 2
    assert "no file of a profiler" in capsys.readouterr().err


def test_a_cut_short_trace_is_one_message(
    plain: tuple[Path, float], local_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    path = plain[0] / "trace.json"
    path.write_bytes(path.read_bytes()[:500])
    assert track(plain[0], local_store, *NAMES) == 2
    assert "cut short" in capsys.readouterr().err

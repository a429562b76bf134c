"""What neuron-explorer adds to a run, beside Self NEURON or in its place; NEFFs are listed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from src import explore, ingest, rundir
from src.analyze import explored, neff_pairs
from src.explorer.explore import after_run
from src.rundir import OperatorRow, Operators, Window
from src.track import outcome
from src.track.store import Store
from tests.explorer.conftest import BUSY_US, make_session
from tests.track.making import manifest_agrees, run_directory, spec

Mood = Callable[[str], None]


def hardware_run(store: Store, self_neuron_us: float | None = BUSY_US, windows: int = 1) -> Path:
    """A run directory of Trainium: the table says `self_neuron_us`, or has no device time."""
    asked = spec(store.root, device="neuron", tracking_name="none")
    directory = run_directory(store.pending, asked)
    for path in list((directory / "profile").rglob("*")):
        if path.is_file():
            path.unlink()
    row = OperatorRow("aten::mul", 3, 10.0, 12.0, self_neuron_us or 77.0)
    made = []
    for number in range(windows):
        session = make_session(directory / "profile", stamp=100 + number)
        made.append(Window(1, (row,), 22.0, session_dir=session))
    source = "key_averages" if self_neuron_us else None
    rundir.write_operators(directory, Operators(source, tuple(made)))
    rundir.write_json(directory / rundir.ENVIRONMENT, {"device": "neuron", "chip": "trn2"})
    return directory


def explored_run(directory: Path, mode: str = "system") -> None:
    assert after_run(directory, mode, 60.0, lambda words: None) is None


def only_run(client: Any) -> Any:
    ids = [experiment.experiment_id for experiment in client.search_experiments()]
    (found,) = client.search_runs(ids)
    return found


def tracked(directory: Path, client: Any) -> Any:
    assert ingest.main([str(directory)]) == 0
    return only_run(client)


@pytest.mark.parametrize("mood", ["ok", "lnc2"])
def test_the_two_clocks_are_set_against_each_other(
    mood: str, client: Any, local_store: Store, in_mood: Mood
) -> None:
    in_mood(mood)
    directory = hardware_run(local_store, self_neuron_us=240.0, windows=2)
    explored_run(directory, "full")
    run = tracked(directory, client)
    metrics = run.data.metrics
    assert metrics["self_neuron_us"] == 240.0
    assert metrics["explorer/busy_us"] == pytest.approx(BUSY_US)
    assert metrics["explorer/executions"] == metrics["executions"] == 3
    assert metrics["explorer/self_neuron_ratio"] == pytest.approx(240.0 / BUSY_US)
    assert metrics["engine/dma_active_fraction"] == pytest.approx(0.8)
    assert run.data.tags["device_time_source"] == "key_averages"
    assert run.data.tags["explorer_version"].startswith("2.31")
    health = rundir.read_json(Path(run.info.artifact_uri) / rundir.HEALTH)
    (check,) = [one for one in health["checks"] if one["name"] == "explorer_agrees"]
    assert check["status"] == "ok"
    report = (Path(run.info.artifact_uri) / "report.md").read_text()
    assert "## Neuron Explorer" in report
    assert "engine metrics" not in report.split("## Neuron Explorer")[0] or "TensorE" in report


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_a_factor_of_two_between_them_is_a_warning(
    factor: float, client: Any, local_store: Store, in_mood: Mood
) -> None:
    in_mood("lnc2")
    directory = hardware_run(local_store, self_neuron_us=factor * BUSY_US)
    explored_run(directory)
    run = tracked(directory, client)
    health = rundir.read_json(Path(run.info.artifact_uri) / rundir.HEALTH)
    (check,) = [one for one in health["checks"] if one["name"] == "explorer_agrees"]
    assert check["status"] == "warning"
    assert "factor of two" in check["message"]


def test_without_self_neuron_the_executions_are_the_device_time_in_total_only(
    client: Any, local_store: Store, in_mood: Mood
) -> None:
    in_mood("lnc2")
    directory = hardware_run(local_store, self_neuron_us=None)
    explored_run(directory)
    run = tracked(directory, client)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["self_neuron_us"] == pytest.approx(BUSY_US)
    assert run.data.tags["device_time_source"] == "neuron_explorer"
    assert run.data.params["device_time_source"] == "neuron_explorer"
    # What the table called device time without a lawful source stays out.
    assert not [name for name in run.data.metrics if name.startswith("self_neuron_us/")]
    assert "explorer/self_neuron_ratio" not in run.data.metrics


@pytest.mark.parametrize("mood", ["exit_1", "no_output", "cut_short"])
def test_a_run_is_never_lost_for_the_explorer(
    mood: str, client: Any, local_store: Store, in_mood: Mood
) -> None:
    in_mood(mood)
    directory = hardware_run(local_store)
    explored_run(directory, "full")
    run = tracked(directory, client)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["self_neuron_us"] == BUSY_US
    assert "explorer/busy_us" not in run.data.metrics
    assert run.data.tags["explorer_warnings"]


def test_sessions_that_are_not_the_windows_are_not_taken_for_them(
    local_store: Store, in_mood: Mood
) -> None:
    in_mood("ok")
    directory = hardware_run(local_store, self_neuron_us=None)
    make_session(directory / "profile", stamp=999)  # one session more than windows
    explored_run(directory)
    found = outcome.conclude(directory, spec(local_store.root, device="neuron"))
    assert found.status == "FAILED"
    assert "self_neuron_us" not in found.metrics
    assert "explorer/busy_us" not in found.metrics


def test_modelled_time_is_never_replaced(local_store: Store, in_mood: Mood) -> None:
    in_mood("ok")
    directory = hardware_run(local_store)
    explored_run(directory)
    operators = rundir.read_operators(directory)
    assert operators is not None
    simulated = replace(operators, device_time_source="simulated")
    assert explored.adopt(simulated, explored.read(directory)) == simulated


def test_neffs_are_listed_with_their_hashes_and_partners(client: Any, local_store: Store) -> None:
    run = tracked(hardware_run(local_store), client)
    kept = Path(run.info.artifact_uri)
    listed = rundir.read_json(kept / rundir.NEFF_PAIRS)
    (pair,) = listed["pairs"]
    assert pair["neff"].endswith("neff_395760075800974_vnc_0.neff")
    assert [name.rpartition("/")[2] for name in pair["ntffs"]] == ["profile_nc_0_session_1.ntff"]
    digest = rundir.sha256_of(kept / "profile" / pair["neff"])
    assert listed["files"][pair["neff"]]["sha256"] == digest
    assert run.data.tags["neff_sha256"] == digest[:16]
    report = (kept / "report.md").read_text()
    session = "profile/i-0abc_pid_7/100"
    assert f"--profile-directory {session} " in report
    assert f"--neff profile/{pair['neff']} --ntff profile/{pair['ntffs'][0]} " in report
    assert "-L 3001:localhost:3001 -L 3002:localhost:3002" in report


def test_simulated_neffs_are_listed_as_such_and_not_for_upload(
    client: Any, local_store: Store
) -> None:
    directory = run_directory(local_store.pending, spec(local_store.root, tracking_name="none"))
    session = directory / "profile" / "i-1_pid_2"
    (session / "neff_12345678_vnc_0.neff.simulated.json").write_text("{}")
    (session / "profile_nc_0_session_1.ntff.simulated.json").write_text("{}")
    run = tracked(directory, client)
    listed = rundir.read_json(Path(run.info.artifact_uri) / rundir.NEFF_PAIRS)
    assert listed["device"] == "simulated"
    assert len(listed["pairs"]) == 1
    assert "neff_sha256" not in run.data.tags
    report = (Path(run.info.artifact_uri) / "report.md").read_text()
    assert "cannot be opened in Neuron Explorer" in report
    assert "upload" not in report.lower()


@pytest.mark.parametrize(
    ("names", "pairs"),
    [
        (
            ["neff_395760075800974.neff", "395760075800974_instid_0_vnc_0.ntff"],
            {"neff_395760075800974.neff": ["395760075800974_instid_0_vnc_0.ntff"]},
        ),
        (["neff_7_vnc_0.neff", "7_vnc_0.ntff"], {"neff_7_vnc_0.neff": ["7_vnc_0.ntff"]}),
        (["file.neff", "file_exec_3.ntff"], {"file.neff": ["file_exec_3.ntff"]}),
        (["graph_ab.neff", "cd_vnc_0.ntff"], {}),
        (
            ["neff_a_vnc_0.neff", "neff_a_vnc_1.neff", "profile_nc_1_session_4.ntff"],
            {"neff_a_vnc_1.neff": ["profile_nc_1_session_4.ntff"]},
        ),
        (
            ["neff_a_vnc_0.neff", "neff_b_vnc_0.neff", "profile_nc_0_session_1.ntff"],
            {
                "neff_a_vnc_0.neff": ["profile_nc_0_session_1.ntff"],
                "neff_b_vnc_0.neff": ["profile_nc_0_session_1.ntff"],
            },
        ),
    ],
)
def test_partners_are_found_by_their_published_names(
    names: list[str], pairs: dict[str, list[str]], tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    assert {p.neff: list(p.ntffs) for p in neff_pairs.pairs_of(tmp_path)} == pairs


def test_an_empty_ntff_has_no_partner(tmp_path: Path) -> None:
    (tmp_path / "neff_a_vnc_0.neff").write_bytes(b"x")
    (tmp_path / "profile_nc_0_session_1.ntff").write_bytes(b"")
    assert neff_pairs.pairs_of(tmp_path) == []
    assert neff_pairs.listing(tmp_path)["without_partner"] == [
        "neff_a_vnc_0.neff",
        "profile_nc_0_session_1.ntff",
    ]


def test_a_tracked_run_can_be_explored_later(
    client: Any, local_store: Store, in_mood: Mood, capsys: pytest.CaptureFixture[str]
) -> None:
    in_mood("lnc2")
    before = tracked(hardware_run(local_store), client)
    assert "explorer/busy_us" not in before.data.metrics
    run_id, root = before.info.run_id, str(local_store.root)
    assert explore.main([run_id[:8], "--root", root]) == 0
    after = only_run(client)
    assert after.data.metrics["explorer/busy_us"] == pytest.approx(BUSY_US)
    assert after.data.metrics["engine/mfu"] == pytest.approx(0.09)
    assert after.data.metrics["self_neuron_us"] == before.data.metrics["self_neuron_us"]
    assert after.info.status == "FINISHED"
    assert manifest_agrees(Path(after.info.artifact_uri))
    assert "1 of 1 sessions read" in capsys.readouterr().out


def test_a_foreign_profile_explored_first_is_tracked_with_its_device_time(
    profile: Path, client: Any, local_store: Store, in_mood: Mood
) -> None:
    in_mood("lnc2")
    assert explore.main([str(profile), "--mode", "system"]) == 0
    names = ["--workload", "mlp", "--variant", "theirs", "--root", str(local_store.root)]
    assert ingest.main([str(profile), *names]) == 0
    run = only_run(client)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["self_neuron_us"] == pytest.approx(BUSY_US)
    assert run.data.params["device_time_source"] == "neuron_explorer"
    assert run.data.tags["device"] == "neuron"


@pytest.mark.parametrize(
    ("typed", "said", "code"),
    [
        (["not/there"], "neither a directory nor the id of a run", 2),
        (["abcdef", "--timeout-s", "0"], "not a time limit", 2),
        (["abcdef01"], "no profile run of that id", 2),
    ],
)
def test_what_cannot_be_explored_is_one_message(
    typed: list[str],
    said: str,
    code: int,
    client: Any,
    local_store: Store,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert explore.main([*typed, "--root", str(local_store.root)]) == code
    assert said in capsys.readouterr().err


def test_an_exploration_that_gave_nothing_exits_1(
    profile: Path, in_mood: Mood, capsys: pytest.CaptureFixture[str]
) -> None:
    in_mood("exit_1")
    assert explore.main([str(profile)]) == 1
    assert "exit code 1" in capsys.readouterr().err
    assert json.loads((profile / "explorer.json").read_text())["warnings"]

"""neuron-explorer in good and bad moods: what it tells is kept, what fails is one warning."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from src.analyze import explored
from src.explorer import binary, explore
from tests.explorer.conftest import BUSY_US, SPAN_US, UNION_US, make_session

Mood = Callable[[str], None]


def run(profile: Path, mode: str = "system", timeout_s: float = 60.0) -> explored.Explored:
    return explore.explore(profile, mode, timeout_s)


def calls(tmp_path: Path) -> list[list[str]]:
    return [json.loads(line) for line in (tmp_path / "diary").read_text().splitlines()]


@pytest.mark.parametrize(
    ("mood", "source"),
    [
        ("ok", "parquet"),
        ("lnc2", "parquet"),
        ("no_parquet", "json"),
        ("plural", "json"),
        ("log_noise", "json"),
    ],
)
def test_device_time_is_that_of_merged_executions(
    mood: str, source: str, profile: Path, in_mood: Mood
) -> None:
    in_mood(mood)
    found = run(profile)
    assert found.version == "2.31.14.0+abc (neuron-explorer)"
    (session,) = found.sessions
    assert session.read_from == source
    assert session.device_time is not None
    assert session.device_time.executions == 3
    assert session.device_time.busy_us == pytest.approx(BUSY_US)
    assert session.device_time.union_us == pytest.approx(UNION_US)
    assert session.device_time.span_us == pytest.approx(SPAN_US)
    assert session.device_time.models == 2
    assert found.warnings == ()


def test_it_is_called_as_published(profile: Path, in_mood: Mood, tmp_path: Path) -> None:
    in_mood("ok")
    run(profile, "full")
    version, ingest, summary = calls(tmp_path)
    assert version == ["--version"]
    session = str(profile / "i-0abc_pid_7" / "1776672348756756905")
    assert ingest[:3] == ["view", "-d", session]
    assert {"--ingest-only", "--disable-ui", "--data-path", "--display-name"} <= set(ingest)
    assert summary[:5] == ["view", "-d", session, "--output-format", "summary-json"]


@pytest.mark.parametrize("mood", ["ok", "percent", "pairs", "log_noise"])
def test_engines_are_fractions_whatever_the_version_calls_a_percent(
    mood: str, profile: Path, in_mood: Mood
) -> None:
    in_mood(mood)
    found = run(profile, "full")
    assert found.engines == pytest.approx(
        {
            "engine/tensor_active_fraction": 0.1806,
            "engine/vector_active_fraction": 0.25,
            "engine/scalar_active_fraction": 0.05,
            "engine/gpsimd_active_fraction": 0.004,
            "engine/dma_active_fraction": 0.8,
            "engine/mfu": 0.09,
            "engine/mbu": 0.6,
            "engine/hbm_read_bytes": 1_000_000,
            "engine/hbm_write_bytes": 500_000,
            "engine/total_time_us": 3_132_200,
        }
    )
    assert found.device_profiles == 1
    assert any("0..100" in said for said in found.warnings) == (mood == "percent")


@pytest.mark.parametrize(
    ("mood", "said"),
    [
        ("exit_1", "exit code 1: ERROR: could not parse trace_info.pb"),
        ("no_output", "gave no output"),
        ("cut_short", "gave no JSON that can be read"),
    ],
)
def test_a_failure_is_one_warning_for_all_sessions(
    mood: str, said: str, profile: Path, in_mood: Mood
) -> None:
    in_mood(mood)
    make_session(profile, stamp=2)
    make_session(profile, stamp=3)
    found = run(profile)
    assert len(found.warnings) == 1
    assert said in found.warnings[0]
    assert [session.device_time for session in found.sessions] == [None] * 3


def test_a_program_that_hangs_is_killed_with_all_that_it_started(
    profile: Path, in_mood: Mood, tmp_path: Path
) -> None:
    in_mood("hangs")
    found = run(profile, timeout_s=3.0)
    (said,) = found.warnings
    assert "did not end within" in said
    assert "explorer_timeout_s" in said
    helper = int((tmp_path / "helper.pid").read_text())
    for _ in range(100):
        if not _is_running(helper):
            break
        time.sleep(0.05)
    assert not _is_running(helper)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_without_the_program_there_is_one_warning(
    profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    if binary.find() is not None:
        pytest.skip("this machine has the Neuron tools")
    found = run(profile, "full")
    assert len(found.warnings) == 1
    assert "aws-neuronx-tools" in found.warnings[0]


def test_the_packages_own_place_goes_before_the_path(program: Path, tmp_path: Path) -> None:
    assert binary.find(tmp_path) == program
    own = tmp_path / "opt" / "aws" / "neuron" / "bin"
    own.mkdir(parents=True)
    shutil.copy(program, own)
    assert binary.find(tmp_path) == own / "neuron-explorer"


def test_a_file_that_cannot_be_started_is_a_warning(profile: Path, program: Path) -> None:
    program.write_bytes(b"\x00\x01\x02")
    found = run(profile)
    assert len(found.warnings) == 1
    assert "does not start" in found.warnings[0]
    assert found.version is None


def test_a_simulated_profile_is_not_given_to_it(
    profile: Path, in_mood: Mood, tmp_path: Path
) -> None:
    in_mood("ok")
    (profile / "i-0abc_pid_7" / "ntrace.pb.simulated.json").write_text("{}")
    found = run(profile, "full")
    assert found.warnings == (explore.SIMULATED,)
    assert not (tmp_path / "diary").exists()


def test_an_empty_profile_is_a_warning(tmp_path: Path, in_mood: Mood) -> None:
    in_mood("ok")
    (tmp_path / "empty").mkdir()
    assert "no ntrace.pb" in run(tmp_path / "empty").warnings[0]


def test_nothing_is_left_on_the_disk(
    profile: Path, in_mood: Mood, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_mood("ok")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    before = sorted(os.walk(profile))
    run(profile, "full")
    assert list((tmp_path / "tmp").iterdir()) == []
    assert sorted(os.walk(profile)) == before


def test_what_was_found_survives_its_file(profile: Path, in_mood: Mood, tmp_path: Path) -> None:
    in_mood("lnc2")
    found = run(profile, "full")
    explored.write(tmp_path, found)
    assert explored.read(tmp_path) == found


@pytest.mark.parametrize("text", ["", "{", "[]", '{"mode": 1}', '{"format": 9}'])
def test_another_explorer_json_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "explorer.json").write_text(text)
    assert explored.read(tmp_path) is None

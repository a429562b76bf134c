"""Which folder a window filled, and which NEFFs are not its own: on planted folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from src.measure import caches, session_files

RAN, OTHER = "ab12cd34ef567890", "0123456789abcdef"


def write(path: Path, content: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def test_the_folder_with_most_new_files_is_the_windows_own(tmp_path: Path) -> None:
    write(tmp_path / "old" / "a")
    before = session_files.stamps(tmp_path)
    write(tmp_path / "few" / "a")
    for name in "abc":
        write(tmp_path / "many" / name)
    found = session_files.filled(before, session_files.stamps(tmp_path))
    assert found == [tmp_path / "many", tmp_path / "few"]


def test_files_written_again_fill_their_folder_again(tmp_path: Path) -> None:
    path = write(tmp_path / "session" / "trace.json", "first")
    before = session_files.stamps(tmp_path)
    path.write_text("the second window")
    assert session_files.filled(before, session_files.stamps(tmp_path)) == [path.parent]
    assert session_files.filled(before, before) == []


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A session with two NEFFs, both of which the cache still has."""
    for key in (RAN, OTHER):
        write(tmp_path / "cache" / f"neff_{key}.neff", f"graph {key}")
        write(tmp_path / "run/profile/s" / f"neff_{key}_vnc_0.neff", f"graph {key}")
    return tmp_path / "run/profile"


def left_out(profile: Path) -> dict[str, str]:
    return session_files.leave_out_unexecuted(profile, str(profile.parents[1] / "cache"))


def kept(profile: Path) -> list[str]:
    return sorted(path.name for path in profile.rglob("*.neff"))


@pytest.mark.parametrize("file", ["ntrace.pb", "profile_nc_0_session_1.ntff", "trace_info.pb"])
def test_the_sessions_own_files_tell_which_ran(profile: Path, file: str) -> None:
    write(profile / "s" / file, f"..{RAN}..")
    assert list(left_out(profile)) == [f"profile/s/neff_{OTHER}_vnc_0.neff"]
    assert kept(profile) == [f"neff_{RAN}_vnc_0.neff"]


def test_the_model_list_does_not_overrule_the_executions(profile: Path) -> None:
    write(profile / "s" / "trace_info.pb", f"{RAN} {OTHER}")
    write(profile / "s" / "ntrace.pb", RAN)
    assert len(left_out(profile)) == 1


def test_a_trace_of_the_same_name_tells_too(profile: Path) -> None:
    write(profile / "s" / f"{RAN}_instid_0_vnc_0.ntff")
    assert len(left_out(profile)) == 1


def test_without_a_word_all_are_kept(profile: Path) -> None:
    write(profile / "s" / "ntrace.pb", "no names in here")
    assert left_out(profile) == {}
    assert len(kept(profile)) == 2


@pytest.mark.parametrize("change", ["gone", "other bytes"])
def test_a_neff_that_the_cache_no_longer_has_is_kept(profile: Path, change: str) -> None:
    write(profile / "s" / "ntrace.pb", RAN)
    twin = profile.parents[1] / "cache" / f"neff_{OTHER}.neff"
    twin.unlink() if change == "gone" else twin.write_text(f"Graph {OTHER}")
    assert left_out(profile) == {}
    assert len(kept(profile)) == 2


def test_short_ids_are_never_matched_by_chance(tmp_path: Path) -> None:
    write(tmp_path / "run/profile/s/neff_1_vnc_0.neff", "one")
    write(tmp_path / "run/profile/s/neff_2_vnc_0.neff", "two")
    write(tmp_path / "cache/neff_2.neff", "two")
    write(tmp_path / "run/profile/s/ntrace.pb", "1")
    assert left_out(tmp_path / "run/profile") == {}


def test_each_session_is_judged_by_itself(profile: Path) -> None:
    write(profile / "s" / "ntrace.pb", RAN)
    write(profile / "t" / f"neff_{OTHER}_vnc_0.neff", f"graph {OTHER}")
    write(profile / "t" / "ntrace.pb", OTHER)
    assert list(left_out(profile)) == [f"profile/s/neff_{OTHER}_vnc_0.neff"]


def test_a_cache_counts_its_neffs_and_not_their_locks(tmp_path: Path) -> None:
    write(tmp_path / "a/neff_1.neff")
    before = caches.neffs_in(str(tmp_path))
    for name in ("neff_2.neff", "neff_2.neff.lock", "neff_3.neff.part", "notes.txt"):
        write(tmp_path / name)
    assert caches.added(str(tmp_path), before) == 1


def test_a_cache_of_unknown_names_counts_its_files(tmp_path: Path) -> None:
    before = caches.neffs_in(str(tmp_path))
    write(tmp_path / "graph-77")
    assert caches.added(str(tmp_path), before) == 1


def test_no_cache_is_neither_cold_nor_warm(tmp_path: Path) -> None:
    assert caches.added(None, frozenset()) is None
    assert caches.after_first_call(None, frozenset()) is None
    absent = caches.after_first_call(str(tmp_path / "none"), frozenset())
    assert absent is not None
    assert (absent.state, absent.size) == ("cold", 0)

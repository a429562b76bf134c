"""Real child processes that end in each way a child can end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from src import rundir
from src.errors import MeasureError, UserError
from src.track import child, notes
from tests.track.making import fake_child, spec


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return rundir.create(tmp_path / "pending", 0)


@contextmanager
def started(code: str, directory: Path, **more: Any) -> Iterator[child.Child]:
    config = spec(directory, env=more.pop("env", {})).config
    with child.start(directory, config, command=fake_child(code), **more) as running:
        running.pauses_s = (0.5, 0.5, 5.0)
        running.grace_s = 0.5
        yield running


def ended(pid: int) -> bool:
    """Gone, or a zombie that its new parent has not reaped yet."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


def wait_until_ended(pid: int) -> bool:
    for _ in range(100):
        if ended(pid):
            return True
        time.sleep(0.05)
    return False


def test_a_child_goes_through_its_stages(directory: Path) -> None:
    seen: list[str] = []
    code = """
ready(); say("compiling"); say("waiting")
assert hear() == "go"
say("profiling", window=1, windows=1); say("done")
"""
    with started(code, directory, on_stage=lambda m: seen.append(m.stage)) as running:
        assert running.wait("ready").fields["device"] == "simulated"
        running.wait("waiting")
        running.send_go()
        running.wait("done")
    assert seen == ["ready", "compiling", "waiting", "profiling", "done"]
    assert running.process.returncode == 0


def test_the_child_is_told_its_directory_and_its_notes_are_kept(directory: Path) -> None:
    code = "ready(); open(directory + '/here', 'w').close(); say('done')"
    with started(code, directory) as running:
        ready = running.wait("ready")
        running.wait("done")
    assert (directory / "here").exists()
    noted = notes.read(directory)
    assert noted["ready"]["device"] == "simulated"
    assert noted["ready"]["measurement_id"] == ready.fields["measurement_id"]
    assert noted["process"]["pid"] == str(os.getpid())


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("sys.exit(3)", ["exit code 3", "before it was ready"]),
        ("ready(); sys.exit(3)", ["exit code 3", "after the stage 'ready'"]),
        ("ready(); sys.exit(0)", ["without saying done"]),
        ("ready(); sys.exit(139)", ["exit code 139 (128 + SIGSEGV)"]),
        ("ready(); os.kill(os.getpid(), signal.SIGKILL)", ["SIGKILL", "memory"]),
        ("ready(); os.kill(os.getpid(), signal.SIGSEGV)", ["SIGSEGV"]),
        ("ready(); os.abort()", ["SIGABRT"]),
        ("ready(); print('not json', file=out, flush=True); hear()", ["no stage", "not json"]),
        ("ready(); print('[1]', file=out, flush=True); hear()", ["no stage"]),
        ("ready(); print('{}', file=out, flush=True); hear()", ["no stage"]),
        ("ready(); out.buffer.write(b'\\xff\\n'); out.flush(); hear()", ["no stage"]),
        ("ready(); out.write('x' * (3 << 20)); out.flush(); hear()", ["without an end"]),
        ('ready(); out.write(\'{"stage": "do\'); out.flush(); sys.exit(1)', ["exit code 1"]),
        ("ready(); out.close(); time.sleep(60)", ["closed its stage pipe"]),
        ("ready(); say('done'); time.sleep(60)", ["said done before it said waiting"]),
    ],
)
def test_a_child_that_ends_badly_is_a_measure_error(
    directory: Path, code: str, words: list[str]
) -> None:
    with (
        started("print('last words', flush=True)\n" + code, directory) as running,
        pytest.raises(MeasureError) as caught,
    ):
        running.wait("waiting")
    for word in [*words, "last words"]:
        assert word in str(caught.value)
    assert wait_until_ended(running.process.pid)


def test_a_refusal_is_a_user_error_with_the_childs_words(directory: Path) -> None:
    code = "say('refused', message='no such core'); sys.exit(2)"
    with started(code, directory) as running, pytest.raises(UserError, match="no such core"):
        running.wait("ready")


def test_a_failure_is_a_measure_error_with_the_childs_reason(directory: Path) -> None:
    code = "ready(); say('failed', reason='wrong result'); sys.exit(1)"
    with started(code, directory) as running, pytest.raises(MeasureError, match="wrong result"):
        running.wait("done")


def test_a_crash_after_done_does_not_take_the_result_away(directory: Path) -> None:
    code = "ready(); say('done'); os.kill(os.getpid(), signal.SIGSEGV)"
    with started(code, directory) as running:
        running.wait("done")
    assert running.process.returncode == -signal.SIGSEGV


def test_a_child_that_stays_after_done_is_put_away(directory: Path) -> None:
    code = "ready(); say('done'); signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)"
    with started(code, directory) as running:
        running.wait("done")
    assert wait_until_ended(running.process.pid)


def test_a_child_that_ignores_signals_is_killed(directory: Path) -> None:
    code = """
signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN)
ready(); time.sleep(60)
"""
    with started(code, directory) as running:
        running.wait("ready")
        running.stop()
        assert running.process.returncode == -signal.SIGKILL
        running.stop()


def test_a_stopped_child_is_killed(directory: Path) -> None:
    with started("ready(); os.kill(os.getpid(), signal.SIGSTOP)", directory) as running:
        running.wait("ready")
        running.stop()
    assert running.process.returncode == -signal.SIGKILL


def test_a_grandchild_that_holds_the_pipe_does_not_hang_the_parent(directory: Path) -> None:
    code = """
ready()
held = subprocess.Popen(["sleep", "60"], pass_fds=[out.fileno()])
print(held.pid, flush=True)
os._exit(4)
"""
    with started(code, directory) as running, pytest.raises(MeasureError, match="exit code 4"):
        running.wait("done")
    assert wait_until_ended(int((directory / rundir.CHILD_LOG).read_text().split()[0]))


def test_much_output_never_blocks_the_child_and_only_its_end_is_shown(directory: Path) -> None:
    code = """
ready()
for n in range(200_000): print("noise", n, "x" * 20, file=sys.stderr)
print("\\x1b[31mthe end\\x1b[0m", file=sys.stderr)
os._exit(1)
"""
    with started(code, directory) as running, pytest.raises(MeasureError) as caught:
        running.wait("done")
    assert "  the end" in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 5000


def test_secrets_in_the_log_are_not_shown(directory: Path) -> None:
    code = "print('at http://me:hunter2@host/x api_token=hunter3', flush=True); sys.exit(1)"
    with started(code, directory) as running, pytest.raises(MeasureError) as caught:
        running.wait("ready")
    assert "hunter" not in str(caught.value)


def test_a_wait_can_end_by_the_clock(directory: Path) -> None:
    with started("ready(); time.sleep(60)", directory) as running:
        running.wait("ready")
        with pytest.raises(MeasureError, match="did not say waiting in time"):
            running.wait("waiting", timeout=0.2)
    assert wait_until_ended(running.process.pid)


def test_an_exception_while_waiting_ends_the_child(directory: Path) -> None:
    def interrupt(_: child.Message) -> None:
        raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        started("ready(); time.sleep(60)", directory, on_stage=interrupt) as running,
    ):
        running.wait("done")
    assert wait_until_ended(running.process.pid)


def test_a_child_whose_parent_is_killed_reads_end_of_file(directory: Path, tmp_path: Path) -> None:
    code = "ready(); print(os.getpid(), flush=True); sys.stdin.read(); os._exit(0)"
    parent = f"""
import sys, time
from pathlib import Path
from src.track import child
from tests.track.making import fake_child, spec
config = spec(Path({str(tmp_path)!r})).config
running = child.start(Path({str(directory)!r}), config, command=fake_child({code!r}))
running.wait("ready")
print("up", flush=True)
time.sleep(60)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    pid = int((directory / rundir.CHILD_LOG).read_text())
    process.kill()
    process.wait()
    process.stdout.close()
    assert wait_until_ended(pid)


def test_the_real_boot_loads_the_package_under_a_private_name(
    directory: Path, tmp_path: Path
) -> None:
    user, package = tmp_path / "user", tmp_path / "package"
    (user / "src").mkdir(parents=True)
    (user / "src" / "__init__.py").write_text("OWNER = 'user'\n")
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "job.py").write_text("def main():\n import src; print(src.OWNER); return 7\n")
    done = subprocess.run(
        [sys.executable, "-c", child.BOOT, str(package)], cwd=user, capture_output=True, text=True
    )
    assert (done.stdout, done.returncode) == ("user\n", 7), done.stderr


def test_the_environment_names_the_cores_unless_the_user_did(tmp_path: Path) -> None:
    config = spec(tmp_path).config
    assert child.environment_for(config, {})["NEURON_RT_VISIBLE_CORES"] == "0"
    kept = child.environment_for(config, {"NEURON_RT_VISIBLE_CORES": "4"})
    assert kept["NEURON_RT_VISIBLE_CORES"] == "4"


@pytest.mark.parametrize(
    ("execution", "expected"), [("default", "user"), ("async", "0"), ("blocking", "1")]
)
def test_the_environment_follows_execution(tmp_path: Path, execution: str, expected: str) -> None:
    config = spec(tmp_path).config
    config.execution = execution
    env = child.environment_for(config, {"NEURON_LAUNCH_BLOCKING": "user"})
    assert env["NEURON_LAUNCH_BLOCKING"] == expected


def test_device_env_wins_and_null_removes(tmp_path: Path) -> None:
    config = spec(tmp_path, env={"A": "new", "B": None, "NEURON_RT_VISIBLE_CORES": "7"}).config
    env = child.environment_for(config, {"A": "old", "B": "old", "C": "old"})
    assert {"A": "new", "C": "old", "NEURON_RT_VISIBLE_CORES": "7"}.items() <= env.items()
    assert "B" not in env

"""The whole door: verdict, screen, JSON and exit codes, on planted machines and on this one."""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from src import doctor
from src.diagnose import shown, stack
from src.diagnose.finding import OK, PROBLEM, WARNING, Finding, Machine, Stack, guarded
from tests.running import HOME, environment

from . import planting
from .planting import LAPTOP, WORKING

STATUSES = {"ok", "warning", "problem", "not applicable"}


def _diagnosed(
    machine: Machine, answer: Stack, monkeypatch: pytest.MonkeyPatch
) -> doctor.Diagnosis:
    monkeypatch.setattr(stack, "ask", lambda machine: answer)
    return doctor.diagnose(machine)


def test_a_working_instance_can_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = _diagnosed(planting.trainium(tmp_path), WORKING, monkeypatch)
    assert answer.verdict.startswith("This machine can profile on Trainium")
    assert (answer.can_run, answer.device) == (True, "neuron")


def test_two_problems_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = planting.trainium(tmp_path, NEURON_RT_INSPECT_ENABLE="1", NEURON_RT_VISIBLE_CORES="")
    answer = _diagnosed(machine, WORKING, monkeypatch)
    assert answer.verdict.startswith("This machine cannot profile on Trainium: 2 problems")
    assert not answer.can_run


def test_a_laptop_simulates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = _diagnosed(planting.laptop(tmp_path), LAPTOP, monkeypatch)
    assert answer.verdict.startswith("No sign of Neuron here: runs are simulated")
    assert (answer.can_run, answer.device) == (True, "simulated")


def test_a_laptop_whose_store_is_broken_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planting.write(tmp_path / "store")
    answer = _diagnosed(planting.laptop(tmp_path), LAPTOP, monkeypatch)
    assert "simulated runs do not work" in answer.verdict
    assert not answer.can_run


def test_every_problem_has_a_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = planting.trainium(tmp_path, NEURON_RT_INSPECT_ENABLE="1", PATH="")
    machine = planting.with_versions(replace(machine, python=(3, 9)), rich=None)
    machine.path("/dev/neuron0").unlink()
    planting.write(tmp_path / "store")
    broken = Stack(signs=planting.SIGNS, torch_error="ImportError: no torch")
    answer = _diagnosed(machine, broken, monkeypatch)
    problems = [f for group in answer.findings.values() for f in group if f.status == PROBLEM]
    assert len(problems) >= 7
    assert all(found.cure for found in problems)


def test_a_check_that_crashes_is_a_warning_and_the_others_still_speak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_check(machine: Machine, answer: Stack) -> list[Finding]:
        raise ZeroDivisionError("by zero")

    (found,) = guarded(broken_check, planting.laptop(tmp_path), LAPTOP)
    assert (found.name, found.status) == ("broken check", WARNING)
    assert "ZeroDivisionError: by zero" in found.found
    monkeypatch.setitem(doctor.CHECKS, "Machine", (broken_check,))
    answer = _diagnosed(planting.laptop(tmp_path), LAPTOP, monkeypatch)
    assert answer.can_run
    assert answer.verdict.endswith(", 1 warning")
    assert answer.findings["Storage"]


def test_a_child_that_cannot_start_is_a_problem_and_the_others_still_speak(
    tmp_path: Path,
) -> None:
    machine = replace(planting.laptop(tmp_path), cwd=tmp_path / "gone")
    answer = doctor.diagnose(machine)
    (found,) = [one for one in answer.findings["Software"] if one.name == "torch"]
    assert found.status == PROBLEM
    assert "could not start" in found.found
    assert answer.findings["Storage"][0].status == OK


def test_the_json_has_every_check_with_its_fields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = json.loads(
        json.dumps(doctor.to_json(_diagnosed(planting.trainium(tmp_path), WORKING, monkeypatch)))
    )
    assert set(data) == {"format", "verdict", "device", "can_run", "checks"}
    for check in data["checks"]:
        assert set(check) == {"subject", "name", "status", "found", "cure"}
        assert check["status"] in STATUSES
    names = {check["name"] for check in data["checks"]}
    assert {"driver", "device files", "held by", "torch_neuronx", "NEFF cache", "store"} <= names


def test_the_screen_says_the_answer_first_and_the_cure_under_the_problem(
    capsys: pytest.CaptureFixture[str],
) -> None:
    findings = {
        "Machine": [
            Finding("driver", PROBLEM, "not loaded", "sudo modprobe neuron"),
            Finding("cores", "not applicable", "none"),
            Finding("device files", OK, "/dev/neuron0"),
        ]
    }
    shown.show("This machine cannot", False, findings)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "This machine cannot"
    place = next(number for number, line in enumerate(lines) if "PROBLEM" in line)
    assert lines[place].split() == ["PROBLEM", "driver", "not", "loaded"]
    assert lines[place + 1].strip() == "-> sudo modprobe neuron"
    assert any(line.startswith("  - ") and line.endswith("cores") for line in lines)


def _run(*arguments: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "src.doctor", *arguments],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_this_machine_answers_on_the_command_line(tmp_path: Path) -> None:
    done = _run("--root", "store", folder=tmp_path)
    data = json.loads(_run("--root", "store", "--json", folder=tmp_path).stdout)
    assert done.returncode == (0 if data["can_run"] else 1)
    assert done.stdout.splitlines()[0] == data["verdict"]
    assert "\x1b" not in done.stdout
    assert list(tmp_path.iterdir()) == []
    store = next(check for check in data["checks"] if check["name"] == "store")
    assert store["found"].startswith(str(tmp_path / "store/mlflow.db"))


@pytest.fixture
def quick(tmp_path: Path) -> str:
    """A PYTHONPATH with a torch that imports at once, where torch is not what is tested."""
    return f"{HOME}:{planting.quick_torch(tmp_path)}"


def test_a_server_that_is_down_ends_with_1(tmp_path: Path, quick: str) -> None:
    uri = "http://127.0.0.1:1"
    done = _run("--root", "store", "--uri", uri, folder=tmp_path, PYTHONPATH=quick)
    assert done.returncode == 1
    assert "PROBLEM" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.fixture
def mlflow_like_server() -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"experiments": []}')

        def log_message(self, format: str, *arguments: object) -> None: ...  # noqa: A002

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_server_that_answers_is_ok(mlflow_like_server: str, tmp_path: Path, quick: str) -> None:
    typed = ("--root", "store", "--uri", mlflow_like_server, "--json")
    done = _run(*typed, folder=tmp_path, PYTHONPATH=quick)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["server"]["status"] == "ok"
    assert "tracking.allow_simulated=true" in checks["server"]["found"]


def test_a_stray_neuron_variable_on_a_laptop_ends_with_1(tmp_path: Path, quick: str) -> None:
    variables = {"NEURON_CC_FLAGS": "--lnc=1", "PYTHONPATH": quick}
    done = _run("--root", "store", folder=tmp_path, **variables)
    assert done.returncode == 1
    assert "unset NEURON_CC_FLAGS" in done.stdout


@pytest.mark.parametrize(
    "arguments", [["--colour"], ["--uri", "mlruns"], ["--root", "a?b"], ["driver"]]
)
def test_bad_arguments_end_with_2(arguments: list[str], tmp_path: Path) -> None:
    done = _run(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []

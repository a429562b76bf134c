"""The whole product with a stand-in for torch_neuronx and one for neuron-explorer."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests import running
from tests.explorer.conftest import STANDIN
from tests.standins import asking

pytestmark = pytest.mark.slow
RUN = ("device=neuron", "variant=naive", "input=small", "profiler.repeats=2")


def variables(root: Path, mood: str, explorer: str) -> tuple[list[str], dict[str, str]]:
    """Overrides for the child, and the environment of the parent."""
    child = {
        "PYTHONPATH": str(asking.CURRENT),
        "STANDIN_MOOD": mood,
        "STANDIN_DIARY": str(root / "diary.jsonl"),
        "TORCH_NEURONX_NEFF_CACHE_DIR": str(root / "neffs"),
    }
    folder = root / "bin"
    folder.mkdir()
    program = folder / "neuron-explorer"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STANDIN}" "$@"\n')
    program.chmod(0o755)
    parent = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "EXPLORER_MOOD": explorer,
        "EXPLORER_HELPER": str(root / "helper.pid"),
    }
    return [f"device.env.{name}='{value}'" for name, value in child.items()], parent


def only_profile(root: Path) -> Any:
    (found,) = [r for r in running.tracked(root / "mlruns") if r.data.tags["kind"] == "profile"]
    return found


def test_a_release_without_self_neuron_is_measured_through_the_explorer(tmp_path: Path) -> None:
    typed, environ = variables(tmp_path, "no_device_time", "lnc2")
    done = running.run(tmp_path / "mlruns", *RUN, *typed, "explorer=full", **environ)
    assert done.returncode == 0, done.stderr
    run = only_profile(tmp_path)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["self_neuron_us"] == pytest.approx(2000)
    assert run.data.params["device_time_source"] == "neuron_explorer"
    assert run.data.params["explorer"] == "full"
    assert run.data.metrics["engine/dma_active_fraction"] == pytest.approx(0.8)


def test_the_same_run_without_it_has_no_device_time(tmp_path: Path) -> None:
    typed, environ = variables(tmp_path, "no_device_time", "exit_1")
    done = running.run(tmp_path / "mlruns", *RUN, *typed, "explorer=system", **environ)
    assert done.returncode == 1
    assert "exit code 1: ERROR: could not parse trace_info.pb" in done.stderr
    run = only_profile(tmp_path)
    assert run.info.status == "FAILED"
    assert "self_neuron_us" not in run.data.metrics
    assert (running.artifacts(run) / "profile").is_dir()


def test_ctrl_c_in_the_explorer_keeps_the_measurement(tmp_path: Path) -> None:
    typed, environ = variables(tmp_path, "", "hangs")
    process = running.start(tmp_path / "mlruns", *RUN, *typed, "explorer=system", **environ)
    helper = tmp_path / "helper.pid"
    until = time.monotonic() + 200
    while not (helper.exists() and helper.read_text()) and time.monotonic() < until:
        time.sleep(0.1)
    assert helper.exists(), "the explorer was never started"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    run = only_profile(tmp_path)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["self_neuron_us"] > 0
    assert "stopped by the user" in run.data.tags["explorer_warnings"]
    assert not Path(f"/proc/{helper.read_text()}").exists()

"""workload=custom: what `build` gets and returns, each slip in the user's file, a package `src`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from src import rundir
from src.errors import UserError
from src.measure import custom

from .. import running
from .agreement import config_of

FAST = ("profiler.repeats=1", "profiler.warmup=0", "profiler.latency_calls=2")
CUSTOM = ("workload=custom", "device=simulated", "input.dtype=float32", *FAST)

MODEL = """
import torch
from src.layers import Doubled

def build(batch=1, seq=2, width=4, phase="prefill", seed=0):
    torch.manual_seed(seed)
    calls = []
    x = torch.randn(batch, seq, width)
    return {
        "model": {"naive": Doubled(width), "fused": lambda x: {"y": x + x}},
        "inputs": {"x": x},
        "reference": lambda x: {"y": x * 2},
        "reset": lambda: calls.append(1),
        "bytes_moved": 2 * x.numel() * 4, "flops": x.numel(), "tokens": batch * seq,
    }
"""
LAYERS = """
import torch

class Doubled(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Identity(), torch.nn.Identity()])
        self.two = torch.nn.Parameter(torch.full((width,), 2.0))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return {"y": x * self.two}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's project that is a package called src, like this one."""
    source = tmp_path / "project" / "src"
    source.mkdir(parents=True)
    (source / "__init__.py").write_text("")
    (source / "model.py").write_text(MODEL)
    (source / "layers.py").write_text(LAYERS)
    return tmp_path / "project"


def run(project: Path, *words: str) -> SimpleNamespace:
    root = project.parent / "mlruns"
    path = os.pathsep.join((str(project), str(running.HOME)))
    # Started from the project, but with this repository's src first: as from its own checkout.
    boot = f"import sys, runpy; sys.path.insert(0, {str(running.HOME)!r}); "
    boot += "runpy.run_module('src.run', run_name='__main__', alter_sys=True)"
    done = subprocess.run(
        [sys.executable, "-c", boot, f"tracking.root={root}", *CUSTOM, *words],
        cwd=project,
        env={**running.environment(), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr, root=root)


def profiles(root: Path) -> list[Any]:
    return [r for r in running.tracked(root) if r.data.tags.get("kind") == "profile"]


@pytest.mark.slow
def test_a_module_of_the_users_own_package_called_src(project: Path) -> None:
    words = ("workload.target=src/model.py:build", "input.batch=3", "input.seq=5")
    done = run(project, *words, "input.dims.width=8", "workload.phase=decode", "variant=naive")
    assert done.code == 0, done.err
    (tracked,) = profiles(done.root)
    assert tracked.info.run_name == "sim model.build decode naive batch=3 seq=5 width=8 float32 nc0"
    assert tracked.data.params["input.batch"] == "3"
    assert tracked.data.metrics["tokens_per_s"] > 0
    per_token = tracked.data.metrics["self_neuron_us"] / 15
    assert tracked.data.metrics["self_neuron_us_per_token"] == pytest.approx(per_token)
    directory = running.artifacts(tracked)
    assert rundir.read_json(directory / rundir.NUMERICS)["passed"] is True
    work = {"bytes_moved": 960, "flops": 120, "dtype": "float32", "tokens": 15}
    assert rundir.read_json(directory / rundir.WORK) == work
    rows = rundir.read_operators(directory)
    assert rows is not None
    assert {row.name for row in rows.windows[0].operators if row.self_neuron_us} == {"aten::mul"}

    before = tracked.data.tags["measurement_id"]
    layers = project / "src" / "layers.py"
    layers.write_text(layers.read_text() + "\n# another source\n")
    by_name = ("workload.target=src.model:build", *words[1:])
    assert run(project, *by_name, "variant=fused").code == 0
    fused = profiles(done.root)[-1]
    assert fused.data.metrics["operator_calls"] == 1
    assert fused.data.tags["measurement_id"] != before


@pytest.mark.slow
def test_a_change_in_a_file_that_the_target_imports_is_another_measurement(project: Path) -> None:
    words = ("workload.target=src/model.py:build", "variant=naive")
    ids = []
    for text in (LAYERS, LAYERS, LAYERS + "\n# changed\n"):
        (project / "src" / "layers.py").write_text(text)
        done = run(project, *words)
        assert done.code == 0, done.err
        ids.append(profiles(done.root)[-1].data.tags["measurement_id"])
    assert ids[0] == ids[1] != ids[2]


def loaded(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> Any:
    """What the child does before it says ready, in this process and without a device."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return custom.load(config_of(*CUSTOM, *words), torch.device("cpu"))


PLAIN = "def build(batch=1, seq=2, width=4):\n    return [].append, ([1],)\n"
FLOATS = "import torch\n\ndef build():\n    return torch.neg, torch.ones(2)\n"
SLIPS = [
    (PLAIN, "workload.target=modle.py:build", "there is no file"),
    (PLAIN, "workload.target=model.py:biuld", "Did you mean model.py:build?"),
    (PLAIN, "workload.target=nowhere.model:build", "there is no module 'nowhere'"),
    (PLAIN, "input.dims.wdith=3", "Did you mean 'width'?"),
    (PLAIN, "input.shape=3x4", "has no parameter 'shape'"),
    (PLAIN, "workload.phase=decode", "has no parameter 'phase'"),
    (PLAIN, "variant=fused", "it has: naive"),
    (FLOATS, "input.dtype=bfloat16", "takes no 'dtype' and made float32"),
    ("import no_such_library\n", "", "importing model.py raised ModuleNotFoundError"),
    ("def build(:\n", "", "raised SyntaxError"),
    ("def build():\n    raise ValueError('seven')\n", "", "ValueError: seven (model.py, line 2)"),
    ("def build():\n    return 3\n", "", "returned a int"),
    ("def build():\n    return {'modle': len}\n", "", "Did you mean 'model'?"),
    ("def build():\n    return {'inputs': 3}\n", "", "returned no 'model'"),
    ("def build():\n    return {'model': len, 'reset': 3}\n", "", "not a function"),
    ("def build():\n    return {'model': len, 'flops': 0.5}\n", "", "not a whole number"),
    ("def build(layers):\n    return len, ()\n", "", "Type workload.kwargs.layers="),
]


@pytest.mark.parametrize(("text", "word", "said"), SLIPS, ids=[said for *_, said in SLIPS])
def test_a_slip_in_or_around_the_users_file_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, word: str, said: str
) -> None:
    (tmp_path / "model.py").write_text(text)
    words = ["workload.target=model.py:build", "variant=naive", *([word] if word else [])]
    with pytest.raises(UserError) as refused:
        loaded(tmp_path, monkeypatch, *words)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_build_gets_what_was_typed_and_what_it_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "def build(batch, image, layers, dtype, seed, device, **more):\n"
    (tmp_path / "model.py").write_text(text + "    return len, [dict(locals())]\n")
    words = ("input.batch=2", "input.dims.image=224", "input.seed=7", "workload.kwargs.layers=3")
    made = loaded(
        tmp_path, monkeypatch, "workload.target=model.py:build", "variant=naive", *words,
        "workload.kwargs.num_key_value_heads=8",
    )  # fmt: skip
    assert made.args[0] == {
        "batch": 2, "image": 224, "layers": 3, "dtype": torch.float32, "seed": 7,
        "device": torch.device("cpu"), "more": {"num_key_value_heads": 8},
    }  # fmt: skip


@pytest.mark.slow
def test_a_refused_target_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "model.py").write_text("def build():\n    return len, ([1],)\n")
    words = ("workload.target=model.py:build", "variant=compiled_layers")
    done = run(tmp_path / "project", *words)
    assert done.code == 2, done.err
    assert "has no nn.ModuleList" in done.err
    assert "Traceback" not in done.out + done.err
    assert not list((done.root / "pending").glob("*"))


@pytest.mark.slow
def test_an_error_in_the_model_fails_the_run_with_its_traceback_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    text = "def step(x):\n    return x.no_such_thing\n\ndef build():\n    return step, ([1],)\n"
    (tmp_path / "project" / "model.py").write_text(text)
    done = run(tmp_path / "project", "workload.target=model.py:build", "variant=naive")
    assert done.code == 1
    assert "no_such_thing" in done.err
    (tracked,) = profiles(done.root)
    assert tracked.info.status == "FAILED"
    log = (running.artifacts(tracked) / rundir.CHILD_LOG).read_text()
    assert 'model.py", line 2, in step' in log


@pytest.mark.slow
def test_a_wrong_result_warns_and_a_missing_reference_is_said(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    head = "import torch\n\ndef build():\n    x = torch.ones(2, 3)\n"
    file = tmp_path / "project" / "model.py"
    target = ("workload.target=model.py:build", "variant=naive")
    file.write_text(head + "    return {'model': torch.neg, 'inputs': x, 'reference': torch.abs}\n")
    done = run(tmp_path / "project", *target)
    assert done.code == 0, done.err
    assert profiles(done.root)[-1].data.tags["capture_health"] == "suspicious"
    assert "not what the reference computes" in done.out
    assert run(tmp_path / "project", *target, "workload.numerics=fail").code == 1
    file.write_text(head + "    return torch.neg, x\n")
    done = run(tmp_path / "project", *target)
    assert done.code == 0, done.err
    directory = running.artifacts(profiles(done.root)[-1])
    found = rundir.read_json(directory / rundir.NUMERICS)
    assert found["passed"] is None
    assert "return a 'reference'" in found["message"]

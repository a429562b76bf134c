"""Asks a short-lived child process about torch and torch_neuronx, which may crash or hang.

Called by doctor.py. The child runs the product's own code (measure/devices/signs.py, neuron.py), so
that doctor and run cannot disagree. It opens no core: the answer must not disturb a running job.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .finding import Machine, Stack

TIMEOUT_S = 60.0  # a cold disk image needs most of it for torch alone
SOURCE = Path(__file__).resolve().parents[1]

# signs.py is loaded alone, before anything that can fail: its package imports torch. The rest is
# loaded under a private name, as the measuring child is (track/child.py).
PROGRAM = """
import importlib, importlib.util, json, os, sys
from pathlib import Path
source, root, answers = map(Path, sys.argv[1:])
def say(**facts):
    with answers.open("a", encoding="utf-8") as file:
        file.write(json.dumps(facts) + "\\n")
def load(name, path, **more):
    found = importlib.util.spec_from_file_location(name, path, **more)
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module
signs = load("_neuron_signs", source / "measure" / "devices" / "signs.py")
say(signs=signs.signs_of_neuron(root))
load("_neuron_doctor", source / "__init__.py", submodule_search_locations=[str(source)])
try:
    import torch
except BaseException as error:
    say(torch_error=f"{type(error).__name__}: {error}")
    words = importlib.import_module("_neuron_doctor.measure.neuron_stack")
    say(missing=words.autoload_failed(error), complete=True)
    sys.exit()
say(torch=str(torch.__version__))
neuron = importlib.import_module("_neuron_doctor.measure.devices.neuron")
missing = neuron.what_is_missing(root)
say(missing=missing, imports="torch_neuronx" in sys.modules)
say(cores=torch.neuron.device_count() if missing is None else None, complete=True)
"""


def ask(machine: Machine, timeout_s: float = TIMEOUT_S) -> Stack:
    """Return what the child said before it ended, in any way; waits at most `timeout_s`."""
    with tempfile.TemporaryDirectory(prefix="doctor-") as folder:
        answers, log = Path(folder) / "answers", Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(SOURCE), str(machine.root), str(answers)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(machine.environ),
                cwd=machine.cwd,
                start_new_session=True,
            )
            ended: str | None
            try:
                ended = _ending(process.wait(timeout_s))
            except subprocess.TimeoutExpired:
                ended = f"it gave no answer within {timeout_s:.0f} s"
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        facts = _facts(answers)
        if facts.pop("complete", False):
            ended = None
        elif ended is not None:
            ended += _last_line(log)
    signs = tuple(facts.pop("signs", ()))
    return Stack(signs=signs, ended=ended, **facts)


def _ending(code: int) -> str:
    if code >= 0:
        return f"it ended with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"it was killed by {signal.Signals(-code).name}"
    return f"it was killed by signal {-code}"


def _facts(answers: Path) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if answers.exists():
        for line in answers.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):  # cut short when the child was killed
                facts.update(json.loads(line))
    return facts


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f": {lines[-1].strip()[:200]}" if lines else ""

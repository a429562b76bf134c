"""Runs many command lines of `python -m src.run` quickly: one process imports, a fork a line runs.

Started as a script by `Typist`. Each line is a real process with its own exit code and output; only
the imports are shared.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

if __name__ != "__main__":
    from . import running


class Typed(NamedTuple):
    """How one command line ended."""

    code: int
    out: str
    err: str


class Typist:
    """A process that forks once for each command line it is given; a context manager."""

    def __init__(self, cwd: Path, **environment: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            cwd=cwd,
            env=running.environment(**environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Typist:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def type(self, *words: str, **environment: str) -> Typed:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([words, environment]) + "\n")
        self._process.stdin.flush()
        return Typed(*json.loads(self._process.stdout.readline()))


def _serve() -> None:
    import hydra  # noqa: F401  (what the forks share)
    import mlflow.tracking  # noqa: F401

    import src.run  # noqa: F401

    for line in sys.stdin:
        words, environment = json.loads(line)
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            pid = os.fork()
            if pid == 0:
                _run(words, environment, out.fileno(), err.fileno())
            _, status = os.waitpid(pid, 0)
            out.seek(0)
            err.seek(0)
            answer = [os.waitstatus_to_exitcode(status), out.read(), err.read()]
        print(json.dumps(answer), flush=True)


def _run(words: list[str], environment: dict[str, str], out: int, err: int) -> None:
    import runpy
    import traceback

    os.dup2(out, 1)
    os.dup2(err, 2)
    os.environ.update(environment)
    sys.argv = ["src.run", *words]
    code = 1
    try:
        del sys.modules["src.run"]
        runpy.run_module("src.run", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    _serve()

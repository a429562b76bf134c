"""The child process that measures: started, fed, watched and stopped here (see job.py).

Called by run.py. Each wait has an end: a child that dies, hangs on to a pipe or ignores signals is
noticed and put away. Never imports torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from .. import rundir
from ..errors import MeasureError, UserError
from ..schema import Config
from . import crash, identity, notes

STAGE_FD = "PROFILE_RUN_STAGE_FD"
SET_BY_US = "PROFILE_RUN_SET"
"""Names the Neuron variables below that the user did not set: they are no sign of Neuron."""
VISIBLE_CORES = "NEURON_RT_VISIBLE_CORES"
LAUNCH_BLOCKING = "NEURON_LAUNCH_BLOCKING"
LAST_STAGES = ("done", "refused", "failed")
LONGEST_LINE_BYTES = 1 << 20
POLL_S = 0.2
GRACE_S = 2.0
"""How long a child may live on after its last word, or stay silent after its pipe closed."""
PAUSES_S = (5.0, 3.0, 5.0)
"""Waits after SIGINT, SIGTERM and SIGKILL."""

# The package is loaded under a private name, so that a user's own package `src` can be imported.
BOOT = """
import importlib, importlib.util, os, sys
path = sys.argv[1]
if sys.path[:1] == [""]: sys.path[0] = os.getcwd()
else: sys.path.insert(0, os.getcwd())
found = importlib.util.spec_from_file_location(
    "_neuron_job", os.path.join(path, "__init__.py"), submodule_search_locations=[path])
package = importlib.util.module_from_spec(found)
sys.modules["_neuron_job"] = package
found.loader.exec_module(package)
sys.exit(importlib.import_module("_neuron_job.job").main())
"""


@dataclass(frozen=True)
class Message:
    """One line from the child: a stage and what belongs to it."""

    stage: str
    fields: dict[str, Any] = field(default_factory=dict)


def environment_for(config: Config, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the child's environment: the user's, the cores, the execution, `device.env`."""
    env = dict(environ)
    ours = {VISIBLE_CORES, LAUNCH_BLOCKING, *(config.device.env or {})} - set(environ)
    env[SET_BY_US] = ",".join(sorted(ours))
    env.setdefault(VISIBLE_CORES, config.cores)
    if config.execution != "default":
        env[LAUNCH_BLOCKING] = "1" if config.execution == "blocking" else "0"
    for name, value in (config.device.env or {}).items():
        if value is None:
            env.pop(str(name), None)
        else:
            env[str(name)] = str(value)
    return env


def start(
    directory: Path,
    config: Config,
    *,
    cwd: Path | None = None,
    command: Sequence[str] | None = None,
    environ: Mapping[str, str] | None = None,
    on_stage: Callable[[Message], None] | None = None,
) -> Child:
    """Start the child for one run directory and send it there. Use the result in a `with`."""
    source = Path(__file__).resolve().parent.parent
    argv = list(command or [sys.executable, "-X", "faulthandler", "-c", BOOT, str(source)])
    env = environment_for(config, os.environ if environ is None else environ)
    reads, writes = os.pipe()
    try:
        with (directory / rundir.CHILD_LOG).open("ab") as log:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env={**env, STAGE_FD: str(writes)},
                pass_fds=(writes,),
                start_new_session=True,
            )
    except BaseException:
        os.close(reads)
        raise
    finally:
        os.close(writes)
    notes.update(directory, process=identity.this_process())
    child = Child(process, reads, directory, config, env, on_stage)
    child.send(f"run {os.path.abspath(directory)}")
    return child


class Child:
    """A running child. `with child:` ends it in any case; all waits raise what went wrong."""

    pauses_s: Sequence[float] = PAUSES_S
    grace_s: float = GRACE_S

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        pipe: int,
        directory: Path,
        config: Config,
        env: Mapping[str, str],
        on_stage: Callable[[Message], None] | None,
    ) -> None:
        self.process = process
        self.last_stage: str | None = None
        self._pipe: int | None = pipe
        self._directory = directory
        self._config = config
        self._env = env
        self._on_stage = on_stage
        self._bytes = b""
        self._oom_kills = crash.oom_kills()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def send(self, line: str) -> None:
        """Write one line to the child; a child that is gone is noticed by the next wait."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()

    def send_go(self) -> None:
        """Let the child start its first window."""
        self.send("go")

    def wait(self, *stages: str, timeout: float | None = None) -> Message:
        """Return the first message of one of `stages`, reporting each that comes before it.

        Raises UserError when the child refuses, MeasureError when it fails, dies, talks nonsense,
        ends early, or says none of `stages` within `timeout` seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            message = self._next(end, stages)
            self.last_stage = message.stage
            if message.stage == "ready":
                self._note_ready(message)
            if self._on_stage is not None:
                self._on_stage(message)
            if message.stage == "refused":
                self._put_away(self.grace_s)
                raise UserError(str(message.fields.get("message") or "the child gave no reason"))
            if message.stage == "failed":
                self._put_away(self.grace_s)
                raise MeasureError(str(message.fields.get("reason") or "the child gave no reason"))
            if message.stage in stages:
                return message
            if message.stage == "done":
                raise self._broken(f"said done before it said {' or '.join(stages)}")

    def _note_ready(self, message: Message) -> None:
        """Keep what only this moment knows, so that ingest can track the directory later."""
        facts = {**message.fields, "git_commit": identity.git_commit()}
        facts["measurement_id"] = identity.measurement_id(self._config, facts, self._env)
        message.fields.update({key: value for key, value in facts.items() if value is not None})
        notes.update(self._directory, ready=message.fields)

    def _next(self, end: float | None, stages: Sequence[str]) -> Message:
        gone_at: float | None = None
        while b"\n" not in self._bytes:
            exited = self.process.poll() is not None
            if (exited or self._pipe is None) and gone_at is None:
                gone_at = time.monotonic()
            wait_s = POLL_S
            if gone_at is not None:
                # A pipe that a grandchild holds open never ends: read what is there, then go.
                wait_s = 0.0 if self._pipe is not None and exited else POLL_S
            read = self._read(wait_s)
            if exited and not read:
                raise self._crashed()
            if gone_at is not None and not exited and time.monotonic() - gone_at > self.grace_s:
                raise self._broken("closed its stage pipe without a last word and went on")
            if len(self._bytes) > LONGEST_LINE_BYTES:
                raise self._broken("sent a stage line without an end")
            if end is not None and time.monotonic() > end:
                raise self._broken(f"did not say {' or '.join(stages)} in time")
        line, _, self._bytes = self._bytes.partition(b"\n")
        return self._parsed(line)

    def _read(self, wait_s: float) -> bool:
        """Take what the pipe holds; False when there was nothing new."""
        if self._pipe is None:
            time.sleep(wait_s / 4)
            return False
        if not select.select([self._pipe], [], [], wait_s)[0]:
            return False
        data = os.read(self._pipe, 1 << 16)
        if not data:
            os.close(self._pipe)
            self._pipe = None
        self._bytes += data
        return True

    def _parsed(self, line: bytes) -> Message:
        try:
            data = json.loads(line)
            return Message(str(data.pop("stage")), data)
        except (ValueError, AttributeError, KeyError, TypeError):
            raise self._broken(f"sent a line that is no stage: {line[:200]!r}") from None

    def _broken(self, what: str) -> MeasureError:
        self.stop()
        return MeasureError(crash.message(f"The child process {what}", self.last_stage, self.log))

    def _crashed(self) -> MeasureError:
        what = crash.ending(self.process.returncode, self._oom_kills)
        self.stop()
        return MeasureError(crash.message(f"The child process {what}", self.last_stage, self.log))

    @property
    def log(self) -> Path:
        """The child's stdout and stderr."""
        return self._directory / rundir.CHILD_LOG

    def stop(self) -> None:
        """End the child and all of its group, in bounded time; may be called again."""
        said_last = self.last_stage in LAST_STAGES
        self._put_away(self.pauses_s[0] if said_last else 0.0)

    def _put_away(self, grace_s: float) -> None:
        try:
            with contextlib.suppress(OSError, ValueError):
                if self.process.stdin is not None:
                    self.process.stdin.close()  # end of file means quit
            if self.process.poll() is None and not self._ended_within(grace_s):
                steps = zip((signal.SIGINT, signal.SIGTERM), self.pauses_s, strict=False)
                for number, pause_s in steps:
                    self._signal(number)
                    if self._ended_within(pause_s):
                        break
        finally:
            # Also when a second Ctrl-C cuts the pauses short, and for children of the child.
            self._signal(signal.SIGKILL)
            self._ended_within(self.pauses_s[-1])
            if self._pipe is not None:
                os.close(self._pipe)
                self._pipe = None

    def _ended_within(self, seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.returncode is not None

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

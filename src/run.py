"""The main door: `python -m src.run variant=compiled`. Composes, checks, measures, tracks, shows.

`main` lets Hydra compose; `execute` is the pipeline for one run. Never imports torch: a child
process measures (job.py) while this one opens the tracking store.
"""

from __future__ import annotations

import importlib
import io
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType
from typing import Any

from . import rules, rundir, slips
from .errors import Interrupted, MeasureError, StoreError, ToolError, UserError
from .schema import Config, Spec, config_from_mapping, unknown_keys
from .screen import Screen
from .track import child, connect, facts, janitor, outcome, redact, runs, store

REPOSITORY = Path(__file__).resolve().parents[1]
SWEEP_ID = "PROFILE_RUN_SWEEP_ID"
"""Carries a sweep's id to jobs that a launcher runs in other processes."""
SCRATCH = "PROFILE_RUN_SCRATCH"
"""A folder for what Hydra writes by itself; gone when the command ends (see conf/config.yaml)."""


def main() -> int:
    """Run what the command line asks for; returns the exit code (see errors.py)."""
    import hydra
    from hydra.core.config_store import ConfigStore

    cwd = Path.cwd()
    codes: list[int] = []
    ConfigStore.instance().store(name="schema", node=Config)

    def job(composed: Any) -> None:
        sys.stderr = stderr
        codes.append(_job(composed, cwd))

    stderr, printed = sys.stderr, io.StringIO()
    sys.stderr = printed  # Hydra explains a slip here and exits; slips.py says it in our words
    try:
        with _signals_as_exceptions(), tempfile.TemporaryDirectory() as scratch:
            os.environ[SCRATCH] = scratch
            hydra.main(version_base="1.3", config_path="../conf", config_name="config")(job)()
    except SystemExit as stop:
        if not codes and stop.code:
            sys.stderr = stderr
            Screen().problem(slips.explain(printed.getvalue(), sys.argv[1:]))
            return UserError.exit_code
        codes.append(stop.code if isinstance(stop.code, int) else 1)
    except KeyboardInterrupt as stop:
        codes.append(stop.exit_code if isinstance(stop, Interrupted) else 128 + signal.SIGINT)
    finally:
        sys.stderr = stderr
    return max(codes, default=0)


def _job(composed: Any, cwd: Path) -> int:
    """One composed configuration -> one run; errors become a line and an exit code here."""
    with Screen() as screen:
        try:
            return execute(_spec(composed), cwd, screen)
        except ToolError as error:
            screen.problem(str(error))
            return error.exit_code


def _spec(composed: Any) -> Spec:
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    hydra_config = HydraConfig.get()
    try:
        data: Any = OmegaConf.to_container(composed, resolve=True)
    except OmegaConfBaseException as error:
        raise UserError(f"{' '.join(sys.argv[1:])}: {str(error).splitlines()[0]}.") from None
    for key in unknown_keys(data):
        raise UserError(slips.unknown_key(key))
    sweeping = hydra_config.mode is not None and hydra_config.mode.name == "MULTIRUN"
    return Spec(
        config=rules.checked(config_from_mapping(data)),
        overrides=tuple(hydra_config.overrides.task),
        sweep_id=_sweep_id() if sweeping else None,
        job=hydra_config.job.num if sweeping else 0,
    )


def _sweep_id() -> str:
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    return os.environ.setdefault(SWEEP_ID, f"{stamp}-{os.getpid()}")


@contextmanager
def _signals_as_exceptions() -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does: the run is closed, the child is stopped."""

    def raise_it(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    caught = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, raise_it) for number in caught]
    try:
        yield
    finally:
        for number, handler in zip(caught, before, strict=True):
            signal.signal(number, handler)


def execute(spec: Spec, cwd: Path, screen: Screen) -> int:
    """Measure one specification in a child process, track what it left, show it; the exit code.

    Raises UserError before anything is kept, MeasureError never (the run says it), StoreError when
    the store could not take a measured run, Interrupted after the run is closed as KILLED.
    """
    tracking = spec.config.tracking
    target = store.locate(tracking, cwd, REPOSITORY)
    asked = True if spec.config.device.name == "simulated" else None
    store.check(target, simulated=asked, allow_simulated=tracking.allow_simulated)
    directory = rundir.create(target.pending, spec.job)
    rundir.write_json(directory / rundir.SPEC, redact.tree(spec.to_json()))
    run, error, stopped = None, None, None
    try:
        with child.start(directory, spec.config, cwd=cwd, on_stage=screen.message) as process:
            if target.uri:
                importlib.import_module("mlflow.tracking")  # while the child imports torch
            ready = process.wait("ready").fields
            if target.uri:
                run = _open_run(target, spec, ready, directory)
            process.wait("waiting")
            process.send_go()
            process.wait("done")
    except (UserError, StoreError):  # refused before anything was measured: leave nothing
        shutil.rmtree(directory, ignore_errors=True)
        store.discard_empty(target)
        raise
    except MeasureError as failure:
        error = str(failure)
    except KeyboardInterrupt as stop:
        stopped = stop
    screen.stage("reading the profile")
    result = outcome.conclude(directory, spec, error, killed=stopped is not None)
    where = str(directory)
    if run is not None:
        screen.stage("tracking")
        where = runs.close_run(run, result)
    _show(screen, spec, result, run, where, target)
    if stopped is not None:
        raise stopped
    return 0 if result.status == outcome.FINISHED else 1


def _open_run(target: store.Store, spec: Spec, ready: dict[str, Any], directory: Path) -> runs.Run:
    client = connect.connect(target)
    janitor.close_abandoned(client, target)
    return runs.open_run(client, target, spec, ready, directory)


def _show(
    screen: Screen,
    spec: Spec,
    result: outcome.Outcome,
    run: runs.Run | None,
    where: str,
    target: store.Store,
) -> None:
    simulated = result.summary is not None and result.summary.simulated
    if result.summary and result.health and result.metrics:
        screen.result(facts.run_name(spec, simulated), result.summary, result.health)
    if result.error:
        screen.problem(f"{result.status}: {result.error}")
    if run is None:
        screen.line(f"Not tracked. The run directory is {where}")
        screen.line(f"To track it later: python -m src.ingest {where}")
    else:
        screen.line(f"Run {run.run_id} is {result.status}: {run.link}")
        screen.line(f"Files: {where}")
        screen.line(f"To see it: {target.ui_command}")
    if simulated:
        screen.simulated()


if __name__ == "__main__":
    sys.exit(main())

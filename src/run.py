"""The main door: `python -m src.run variant=compiled`. Composes, checks, measures, tracks, shows.

`main` lets Hydra compose; `execute` is the pipeline for one run. Never imports torch: a child
process measures (job.py) while this one opens the tracking store.
"""

from __future__ import annotations

import importlib
import io
import os
import shutil
import sys
import tempfile
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import from_run, rules, rundir, signals, slips
from .composed import config_of
from .errors import Interrupted, MeasureError, StoreError, ToolError, UserError
from .explorer import explore
from .schema import Config, Spec
from .screen import Screen, SweepProgress
from .track import (
    child,
    connect,
    facts,
    janitor,
    lease,
    outcome,
    redact,
    resume,
    runs,
    scoreboard,
    store,
    summary_run,
    sweep,
)
from .track.scoreboard import JobResult

REPOSITORY = Path(__file__).resolve().parents[1]
FROM_RUN = "PROFILE_RUN_FROM_RUN"
TYPED_IN = "PROFILE_RUN_CWD"
"""Environment variables that tell jobs in other processes what was typed, and where."""
FULL_ERROR = "HYDRA_FULL_ERROR"


def main() -> int:
    """Run what the command line asks for; returns the exit code (see errors.py)."""
    cwd = Path.cwd()
    os.environ[TYPED_IN] = str(cwd)
    with tempfile.TemporaryDirectory() as scratch, signals.as_exceptions():
        os.environ[scoreboard.SCRATCH] = scratch
        try:
            words, origin = from_run.expand(sys.argv[1:], cwd, REPOSITORY)
        except ToolError as error:
            Screen().problem(str(error))
            return error.exit_code
        if origin:
            os.environ[FROM_RUN] = origin
        return _compose_and_run([sys.argv[0], *slips.flags_last(words)])


def _compose_and_run(argv: list[str]) -> int:
    import hydra
    from hydra.core.config_store import ConfigStore

    ConfigStore.instance().store(name="schema", node=Config)
    # By its importable name, so that a launcher's workers find the function.
    job = importlib.import_module("src.run").job
    typed, sys.argv = sys.argv[1:], argv
    sys.stderr = printed = io.StringIO()  # Hydra explains a slip here; slips.py says it our way
    stopped = 0
    with SweepProgress() as progress:
        try:
            hydra.main(
                version_base="1.3", config_path=str(REPOSITORY / "conf"), config_name="config"
            )(job)()
        except SystemExit as stop:
            stopped = stop.code if isinstance(stop.code, int) else 1
        except KeyboardInterrupt as stop:
            stopped = 130 if not isinstance(stop, Interrupted) else stop.exit_code
        finally:
            sys.stderr = sys.__stderr__
            progress.finish()
    if not scoreboard.entered():
        if stopped:
            Screen().problem(sweep.refusal or slips.explain(printed.getvalue(), typed))
            return UserError.exit_code if stopped < 128 else stopped
        if sweep.answer:
            Screen().line(sweep.answer)
        return 0
    return _conclude(stopped, printed.getvalue())


def _conclude(stopped: int, printed: str) -> int:
    """The exit code of the whole command; a sweep's end table first."""
    results = scoreboard.read_all()
    codes = [result.exit_code for result in results]
    planned = scoreboard.read_sweep()
    if planned is None:
        return stopped or max(codes, default=0)
    screen = Screen()
    screen.sweep(results, planned)
    if stopped < 128 and any(result.run_id for result in results):
        screen.stage("comparing")
        typed_in = Path(os.environ[TYPED_IN])
        for line in summary_run.after_sweep(results, planned.sweep_id, typed_in, REPOSITORY):
            screen.line(line)
    if any(result.simulated for result in results):
        screen.simulated()  # also the last line of a sweep
    lost = planned.jobs - len(results)
    if lost > 0 and stopped and stopped < 128:
        last = (printed.strip().splitlines() or ["no reason given"])[-1]
        screen.problem(f"{lost} jobs did not come to their end: {last}")
    if stopped >= 128:
        return stopped
    if codes and min(codes) == UserError.exit_code:
        return UserError.exit_code
    return 1 if any(codes) or lost > 0 else 0


def job(composed: Any) -> None:
    """One composed configuration -> one run: Hydra's task. Errors end here, as a line, a file."""
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf

    if isinstance(sys.stderr, io.StringIO):
        sys.stderr = sys.__stderr__
    settings = HydraConfig.get()
    planned = scoreboard.read_sweep()
    number = int(settings.job.num) if planned else 0
    # As typed: to resolve here would take ${...} in an override for the place it stands in.
    overrides = OmegaConf.to_container(settings.overrides.task, resolve=False)
    assert isinstance(overrides, list)
    started = time.monotonic()
    with Screen(f"job {number + 1} of {planned.jobs}" if planned else "", planned) as screen:
        try:
            config = config_of(composed, sys.argv[1:] if planned is None else overrides)
            scoreboard.enter()
            spec = _spec(config, overrides, planned, number)
            result = _run(spec, Path(os.environ[TYPED_IN]), screen)
        except UserError as error:
            scoreboard.enter()
            screen.problem(str(error))
            result = JobResult(number, " ".join(overrides), "REFUSED", 2, 0.0, message=str(error))
        except ToolError as error:
            screen.problem(str(error))
            result = JobResult(number, " ".join(overrides), "FAILED", 1, 0.0, message=str(error))
        except Exception as error:
            scoreboard.enter()
            said = f"unexpected {type(error).__name__}: {error}"
            screen.problem(f"{said}. This is a fault of the tool; {FULL_ERROR}=1 shows where.")
            if os.environ.get(FULL_ERROR):
                traceback.print_exc()
            result = JobResult(number, " ".join(overrides), "FAILED", 1, 0.0, message=said)
        result = replace(result, seconds=time.monotonic() - started)
        if planned:
            screen.job(result)
    scoreboard.write(result)


def _spec(
    config: Config, overrides: list[str], planned: scoreboard.Sweep | None, number: int
) -> Spec:
    origin = os.environ.get(FROM_RUN)
    description = sweep.description(overrides, planned.sweep_id, number) if planned else ""
    return Spec(
        config=config,
        overrides=tuple(overrides),
        sweep_id=planned.sweep_id if planned else None,
        job=number,
        concurrent_jobs=planned.concurrent_jobs if planned else 1,
        description=description,
        tags={"from_run": origin} if origin else {},
    )


def _run(spec: Spec, cwd: Path, screen: Screen) -> JobResult:
    """Execute on leased cores where cores are real."""
    config = spec.config
    if config.sweep.preview:
        jobs = [sweep.Job(spec.overrides, config)]
        screen.line("\n".join(sweep.preview(jobs, [spec.overrides], 1)))
        return JobResult(spec.job, facts.run_name(spec, False), "SKIPPED", 0, 0.0)
    if not lease.wants_hardware(config):
        return execute(spec, cwd, screen)
    pool = rules.parse_cores(config.sweep.pool) if config.sweep.pool else None

    def on_wait() -> None:
        screen.stage("waiting for NeuronCores that another run of this tool holds")

    with lease.leased(rules.parse_cores(config.cores), pool, on_wait=on_wait) as cores:
        mine = replace(config, cores=rules.format_cores(cores))
        return execute(replace(spec, config=mine), cwd, screen)


def execute(spec: Spec, cwd: Path, screen: Screen) -> JobResult:
    """Measure one specification in a child process, track what it left, show it.

    Raises UserError before anything is kept, StoreError when the store could not take a measured
    run, KeyboardInterrupt after the run is closed as KILLED. A failed measurement is a result.
    """
    tracking = spec.config.tracking
    target = store.locate(tracking, cwd, REPOSITORY)
    asked = True if spec.config.device.name == "simulated" else None
    try:
        store.check(target, simulated=asked, allow_simulated=tracking.allow_simulated)
    except UserError:
        store.discard_empty(target)
        raise
    directory = rundir.create(target.pending, spec.job)
    rundir.write_json(directory / rundir.SPEC, redact.tree(spec.to_json()))
    run, error, stopped = None, None, None
    ready: dict[str, Any] = {}
    try:
        with child.start(directory, spec.config, cwd=cwd, on_stage=screen.message) as process:
            if target.uri:
                importlib.import_module("mlflow.tracking")  # while the child imports torch
            ready = process.wait("ready").fields
            if target.uri:
                client = connect.connect(target)
                janitor.close_abandoned(client, target)
                if spec.config.sweep.resume:
                    done = resume.finished(client, target, spec, ready)
                    if done:
                        raise resume.AlreadyMeasured(done)
                run = runs.open_run(client, target, spec, ready, directory)
            process.wait("waiting")
            process.send_go()
            process.wait("done")
    except resume.AlreadyMeasured as already:
        shutil.rmtree(directory, ignore_errors=True)
        return already.result(spec)
    except (UserError, StoreError):  # refused before anything was measured: leave nothing
        if run is not None:
            runs.withdraw(run)
        shutil.rmtree(directory, ignore_errors=True)
        store.discard_empty(target)
        raise
    except MeasureError as failure:
        error = str(failure)
    except KeyboardInterrupt as stop:
        stopped = stop
    was_killed = stopped is not None
    if error is None and not was_killed:  # the cores are free now
        config = spec.config
        limit_s = config.explorer_timeout_s
        stopped = explore.after_run(directory, config.explorer, limit_s, screen.stage)
    screen.stage("reading the profile")
    try:
        result = outcome.conclude(directory, spec, error, killed=was_killed)
    except OSError as failure:  # the disk is full, most of the time
        raise runs.unwritten(run, directory, failure) from failure
    where, beside = str(directory), ""
    if run is not None:
        screen.stage("tracking")
        where = runs.close_run(run, result)
        scoreboard.write_tracking(tracking)
        beside = "" if spec.sweep_id or stopped else summary_run.after_run(run, spec)
    simulated = ready.get("device") == "simulated"
    name = facts.run_name(spec, simulated)
    screen.run(name, result, run, where, target, beside)
    ended = JobResult(
        job=spec.job,
        name=name,
        status=result.status,
        exit_code=0 if result.status == outcome.FINISHED else 1,
        seconds=0.0,
        metrics=result.metrics,
        message=result.error or (result.health.line if result.health else ""),
        run_id=run.run_id if run else None,
        experiment_id=run.experiment_id if run else None,
        simulated=simulated,
    )
    if stopped is not None:
        scoreboard.write(ended)
        raise stopped
    return ended


if __name__ == "__main__":
    sys.exit(main())

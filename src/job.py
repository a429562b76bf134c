"""The door of the child: measures one run directory and tells its parent each stage.

Started by track/child.py, one process a run. Never imports mlflow or hydra; torch and everything
that needs it are imported after the environment is complete. Its stdout and stderr are child.log.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import rundir
from .errors import MeasureError, ToolError, UserError
from .schema import Config, Spec, spec_from_json

if TYPE_CHECKING:
    from .measure.devices import Device
    from .measure.variants import Step
    from .measure.workload import Workload

STAGE_FD = "PROFILE_RUN_STAGE_FD"


class Parent:
    """The two pipes to the parent; when the parent vanishes, this process ends itself."""

    def __init__(self) -> None:
        self._out = os.fdopen(int(os.environ[STAGE_FD]), "w", encoding="utf-8", buffering=1)
        self._commands: queue.Queue[str] = queue.Queue()
        self.is_ready = False
        self.is_over = False
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self._commands.put(line.strip())
        if not self.is_over:
            os._exit(0)  # end of file: nobody is left to measure for

    def say(self, stage: str, **fields: Any) -> None:
        self.is_ready = self.is_ready or stage == "ready"
        self.is_over = stage in ("done", "refused", "failed")
        sys.stdout.flush()  # into child.log before the parent may end this process
        print(json.dumps({"stage": stage, **fields}), file=self._out, flush=True)

    def expect(self, word: str) -> str:
        """Wait for a command that starts with `word`; returns what follows it."""
        command, _, rest = self._commands.get().partition(" ")
        if command != word:
            raise MeasureError(f"the parent said {command!r}, expected {word!r}")
        return rest


class Phases:
    """How long each phase of the child took, in microseconds of this computer's clock."""

    def __init__(self) -> None:
        self.times_us: dict[str, float] = {}

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter_ns()
        try:
            yield
        finally:
            self.times_us[f"{name}_us"] = (time.perf_counter_ns() - start) / 1000

    def move(self, name: str, time_us: float) -> None:
        """Take a part of the latest phase out of it, as a phase of its own."""
        latest = next(reversed(self.times_us))
        self.times_us[latest] -= time_us
        self.times_us[f"{name}_us"] = time_us


def measure(directory: Path, spec: Spec, parent: Parent) -> None:
    """Run the whole protocol for one run directory; what it measured is in the directory."""
    config, phases = spec.config, Phases()
    environ = dict(os.environ)  # as the parent made it; opening a device may add to it
    with phases.timed("import"):
        torch = _import_torch(config.device.name)
        from .measure import caches, environment, variants
        from .measure.devices import choose

    with phases.timed("device_init"):
        device = choose.open_device(config)
    stamp = environment.stamp(device, environ, config)
    rundir.write_json(directory / rundir.ENVIRONMENT, stamp)
    with torch.no_grad():
        with phases.timed("load"):  # before `ready`: a slip in a user's file leaves no run behind
            workload = variants.load(config, device)
            step = variants.build(workload, config, device.torch_device)
        rundir.write_json(directory / rundir.WORK, asdict(workload.work))
        parent.say(
            "ready",
            device=device.name,
            cores=config.cores,
            versions=stamp["versions"],
            chip=device.chip,
            lnc=device.lnc,
            device_name=device.description,
            source_sha256=workload.source_sha256,
        )
        parent.say("compiling")
        neffs = caches.neffs_in(device.neff_cache_dir)
        with phases.timed("first_call"):  # compiles: NEFFs are made at the first call of a shape
            output = step()
            device.synchronize()
        neff_cache = caches.after_first_call(device.neff_cache_dir, neffs)
        with phases.timed("numerics"):
            _check_result(output, workload, config, directory)
        del output, workload
        parent.say("warming_up")
        with phases.timed("warmup"):
            for _ in range(config.profiler.warmup):
                step()
            device.synchronize()
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
                pass  # the first profiler session of a process is slower than the next
    parent.say("waiting")
    parent.expect("go")
    with torch.no_grad():
        _time_unprofiled(step, device, config, directory, phases)
    _profile(step, device, config, directory, phases, parent, neff_cache)
    rundir.write_json(directory / rundir.PHASES, phases.times_us)


def _check_result(output: Any, workload: Workload, config: Config, directory: Path) -> None:
    """Compare with the reference; a wrong result is not worth timing where numerics=fail."""
    from .measure import numerics

    if config.workload.numerics == "off":
        return
    result = numerics.check(output, workload, config.workload.tolerance)
    rundir.write_json(directory / rundir.NUMERICS, asdict(result))
    if result.passed is False and config.workload.numerics == "fail":
        raise MeasureError(
            f"wrong result: {result.message}. variant={config.variant.name} does not compute what "
            f"{workload.reference_words} computes in float32 on the CPU; nothing was timed."
        )


def _time_unprofiled(
    step: Step, device: Device, config: Config, directory: Path, phases: Phases
) -> None:
    """Host latency and peak memory of warm steps, without the profiler."""
    from .measure import latency, memory

    with phases.timed("unprofiled"):
        timed = latency.measure(step, device.synchronize, config.profiler.latency_calls)
        peak = memory.peak_allocated_bytes(step, device)
    if timed is not None:
        rundir.write_json(directory / rundir.LATENCY, asdict(timed))
    rundir.write_json(directory / rundir.MEMORY, {"peak_allocated_bytes": peak})


def _profile(
    step: Step,
    device: Device,
    config: Config,
    directory: Path,
    phases: Phases,
    parent: Parent,
    neff_cache: rundir.NeffCache | None,
) -> None:
    """Capture all windows and write what they say."""
    from .measure import capture, session_files

    repeats, profile_dir = config.profiler.repeats, directory / rundir.PROFILE
    with phases.timed("post_processing"):
        operators = capture.capture(
            step,
            device,
            config,
            profile_dir,
            on_window=lambda number: parent.say("profiling", window=number + 1, windows=repeats),
            neff_cache=neff_cache,
        )
        left_out = session_files.leave_out_unexecuted(profile_dir, device.neff_cache_dir)
        if left_out:
            rundir.write_json(directory / rundir.LEFT_OUT, left_out)
        rundir.write_operators(directory, operators)
    # Around the profiled steps: starting and stopping the profiler, its export and its tables.
    phases.move("windows", sum(window.host_us or 0.0 for window in operators.windows))


def _import_torch(device: str) -> Any:
    """Import torch, which loads torch_neuronx by itself; a broken one must say so in our words."""
    if device == "simulated":  # and on a Neuron machine the simulator needs the place for itself
        os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    try:
        import torch
    except Exception as error:
        from .measure import neuron_stack

        words = neuron_stack.autoload_failed(error)
        if words is None:
            raise
        raise UserError(
            f"device={device}: {words} Type device=simulated to run without hardware."
        ) from error
    return torch


def main() -> int:
    """Serve one `run DIR`; the exit code is 0 done, 2 refused, 1 failed."""
    parent = Parent()
    directory = Path(parent.expect("run"))
    spec = spec_from_json(rundir.read_json(directory / rundir.SPEC))
    try:
        measure(directory, spec, parent)
    except UserError as error:
        if parent.is_ready:  # the store knows of the run by now
            parent.say("failed", reason=str(error))
            return MeasureError.exit_code
        parent.say("refused", message=str(error))
        return error.exit_code
    except ToolError as error:
        parent.say("failed", reason=str(error))
        return error.exit_code
    except BaseException as error:
        traceback.print_exc()
        parent.say("failed", reason=f"{type(error).__name__}: {error}")
        return 1
    parent.say("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())

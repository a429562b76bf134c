"""The main door: `python -m src.run variant=compiled`. Composes, checks, measures, tracks, shows.

`main` lets Hydra compose; `execute` is the pipeline for one run. Never imports torch: a child process
measures (job.py) while this one opens the tracking store.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType
from typing import Any

from . import rules, slips
from .errors import Interrupted, ToolError, UserError
from .schema import Config, Spec, config_from_mapping, unknown_keys
from .screen import Screen

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
    except (KeyboardInterrupt, Interrupted) as stop:
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
            if isinstance(error, Interrupted):
                raise
            return error.exit_code


def _spec(composed: Any) -> Spec:
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    hydra_config = HydraConfig.get()
    try:
        data = OmegaConf.to_container(composed, resolve=True)
    except OmegaConfBaseException as error:
        raise UserError(f"{' '.join(sys.argv[1:])}: {str(error).splitlines()[0]}.") from None
    assert isinstance(data, dict)
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
    screen.line(str(spec))
    return 0


if __name__ == "__main__":
    sys.exit(main())

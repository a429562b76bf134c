"""Measures through a stand-in: the child alone with what the parent makes of it, or the product."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

from src import rules, rundir
from src.analyze.health import Health
from src.errors import MeasureError, UserError
from src.schema import Config, Spec, config_from_mapping
from src.track import child, outcome
from tests import running

HERE = Path(__file__).parent
CURRENT = HERE / "current"
PLAIN_US = 1971.814
"""Self NEURON of naive RMSNorm on the small input, by the stand-in's cost model."""


@dataclass(frozen=True)
class Result:
    """How one run through a stand-in ended, and what is left of it."""

    directory: Path
    status: str
    """FINISHED, FAILED or REFUSED."""
    message: str
    operators: rundir.Operators | None
    health: Health | None
    metrics: dict[str, float]
    tags: dict[str, str]
    ready: dict[str, Any]
    diary: list[dict[str, Any]] = field(default_factory=list)

    def check(self, name: str) -> tuple[str, str]:
        """The status and the message of one health check."""
        assert self.health is not None
        return next((one.status, one.message) for one in self.health.checks if one.name == name)

    def noted(self, event: str) -> list[dict[str, Any]]:
        return [one for one in self.diary if one["event"] == event]

    @property
    def log(self) -> str:
        return (self.directory / rundir.CHILD_LOG).read_text(errors="replace")


def spec(
    variant: str = "naive", profiler: str = "runtime", device: str = "neuron", **fields: Any
) -> Spec:
    """A run of the small input in two windows and nothing else, composed as the product does."""
    typed = [
        f"variant={variant}",
        f"profiler={profiler}",
        "input=small",
        f"device={device}",
        "tracking=none",
        *(
            f"profiler.{name}={value}"
            for name, value in {"repeats": 2, "latency_calls": 0, **fields}.items()
        ),
    ]
    ConfigStore.instance().store(name="schema", node=Config)
    with initialize_config_dir(str(running.REPOSITORY / "conf"), version_base="1.3"):
        composed: Any = OmegaConf.to_container(compose("config", typed), resolve=True)
    return Spec(rules.checked(config_from_mapping(composed)))


def environment(root: Path, mood: str = "", product: Path = CURRENT, **more: str) -> dict[str, str]:
    """The child's environment: the stand-in on its path, a NEFF cache and a diary of its own."""
    starts = ("NEURON_", "TORCH_NEURONX_", "STANDIN_")
    plain = {k: v for k, v in os.environ.items() if not k.startswith(starts)}
    return {
        **plain,
        "PYTHONPATH": str(product),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "STANDIN_MOOD": mood,
        "STANDIN_DIARY": str(root / "diary.jsonl"),
        "TORCH_NEURONX_NEFF_CACHE_DIR": str(root / "neffs"),
        **more,
    }


def measure(
    root: Path,
    mood: str = "",
    asked: Spec | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    command: list[str] | None = None,
) -> Result:
    """Run the child through the stand-in and conclude its directory, as run.py does."""
    asked = asked or spec()
    directory = rundir.create(root / "pending", 0)
    rundir.write_json(directory / rundir.SPEC, asked.to_json())
    env = environment(root, mood) if environ is None else environ
    ready: dict[str, Any] = {}
    error = None
    try:
        with child.start(directory, asked.config, environ=env, command=command) as process:
            ready = process.wait("ready", timeout=120).fields
            process.wait("waiting", timeout=120)
            process.send_go()
            process.wait("done", timeout=120)
    except UserError as refused:
        return Result(directory, "REFUSED", str(refused), None, None, {}, {}, ready, _diary(env))
    except MeasureError as failed:
        error = str(failed)
    found = outcome.conclude(directory, asked, error)
    return Result(
        directory=directory,
        status=found.status,
        message=found.error or "",
        operators=found.operators,
        health=found.health,
        metrics=found.metrics,
        tags=found.tags(),
        ready=ready,
        diary=_diary(env),
    )


def _diary(env: Mapping[str, str]) -> list[dict[str, Any]]:
    path = Path(env["STANDIN_DIARY"])
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

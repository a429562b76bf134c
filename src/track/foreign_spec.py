"""The specification of a profile that another script captured: only what is known of it.

Called by intake.py and ingest.py with what the user typed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import UserError
from ..schema import (
    ELSEWHERE,
    Config,
    DeviceConfig,
    InputConfig,
    ProfilerConfig,
    Spec,
    TrackingConfig,
    VariantConfig,
    WorkloadConfig,
)
from .foreign import Profile

LONGEST_NAME = 100
HOW = "python -m src.ingest DIR --workload NAME --variant NAME --tag k=v"


@dataclass(frozen=True)
class Named:
    """What the user says of a foreign profile."""

    workload: str | None = None
    variant: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


def named(workload: str | None, variant: str | None, tags: Sequence[str]) -> Named:
    """Check what was typed; raises UserError."""
    for flag, value in (("--workload", workload), ("--variant", variant)):
        if value is not None and not (value.strip() and value.isprintable()):
            raise UserError(f"{flag} {value!r}: not a name. Type for example {flag} mine.")
        if value is not None and len(value) > LONGEST_NAME:
            raise UserError(f"{flag}: at most {LONGEST_NAME} characters. Type a shorter name.")
    found = {}
    for typed in tags:
        key, equals, value = typed.partition("=")
        if not equals or not re.fullmatch(r"[\w.\-/: ]{1,200}", key) or key != key.strip():
            raise UserError(f"--tag {typed}: not a tag. Type --tag NAME=VALUE.")
        if key in found:
            raise UserError(f"--tag {typed}: {key} is named twice. Leave one out.")
        found[key] = value
    return Named(workload, variant, found)


def refuse_reserved(tags: Mapping[str, str], own: Mapping[str, str]) -> None:
    """Raise UserError for a tag of the user's that this tool writes itself."""
    for key in tags:
        if key in own or key.startswith("mlflow."):
            raise UserError(
                f"--tag {key}=...: this tool writes that tag itself. Type another name, for "
                f"example --tag my.{key.removeprefix('mlflow.')}=..."
            )


def make(directory: Path, profile: Profile, name: Named) -> Spec:
    """Return the specification; raises UserError when workload or variant is not named."""
    missing = [f"--{key} NAME" for key in ("workload", "variant") if not getattr(name, key)]
    if missing or name.workload is None or name.variant is None:
        raise UserError(
            f"{directory}: there is no spec.json in it, so another script captured it. Say what it "
            f"is: {HOW} (missing: {', '.join(missing)})."
        )
    windows = profile.operators.windows
    config = Config(
        workload=WorkloadConfig(name.workload, [name.variant], numerics="off", kwargs={}),
        variant=VariantConfig(name.variant, name.variant),
        input=InputConfig(ELSEWHERE, shape=None, dims={}, dtype="unknown"),
        profiler=ProfilerConfig(
            ELSEWHERE,
            modes=list(profile.modes),
            correlate_device_time=profile.operators.device_time_source is not None,
            warmup=0,
            steps=windows[0].steps if windows else 1,
            repeats=len(windows),
        ),
        device=DeviceConfig(profile.device or "unknown", env={}),
        tracking=TrackingConfig("local"),
    )
    return Spec(config, description=" ".join(profile.notes), tags=dict(name.tags))

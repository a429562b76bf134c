"""What a check returns, and the machine that it looks at. Used by every file of this room.

A check is a plain function (Machine, Stack) -> findings. `guarded` calls it, so that a crash inside
one check becomes a warning and the others still speak.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..schema import TrackingConfig

OK = "ok"
WARNING = "warning"
PROBLEM = "problem"
NOT_APPLICABLE = "not applicable"
REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's answer. A problem always has a cure, in words to type."""

    name: str
    status: str
    found: str
    cure: str | None = None


def _version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _may_use(path: Path) -> bool:
    return os.access(path, os.R_OK | os.W_OK)


@dataclass(frozen=True)
class Machine:
    """Where to look. Each default is this machine; tests plant another one."""

    root: Path = Path("/")
    """Where /dev, /proc, /sys, /opt and the NEFF cache are looked up."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    tracking: TrackingConfig = field(default_factory=lambda: TrackingConfig(name="local"))
    cwd: Path = field(default_factory=Path.cwd)
    repository: Path = REPOSITORY
    python: tuple[int, int] = sys.version_info[:2]
    version_of: Callable[[str], str | None] = _version_of
    """The installed version of a package; None when it is not installed."""
    may_use: Callable[[Path], bool] = _may_use

    def path(self, absolute: str | Path) -> Path:
        """Return an absolute path of the machine as it is reached from here."""
        return self.root / str(absolute).lstrip("/")

    def text(self, absolute: str) -> str | None:
        """Return a small file of the machine without its white space; None when unreadable."""
        try:
            return self.path(absolute).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None


@dataclass(frozen=True)
class Stack:
    """What the short-lived child said of torch and torch_neuronx (stack.py)."""

    signs: tuple[str, ...] = ()
    """Signs of Neuron in words, as measure/devices/signs.py finds them."""
    torch: str | None = None
    torch_error: str | None = None
    imports: bool = False
    """Did torch_neuronx import?"""
    missing: str | None = None
    """Why Trainium cannot be used, as measure/devices/neuron.py words it; None: it can."""
    cores: int | None = None
    """Logical NeuronCores that torch.neuron sees; None when it could not be asked."""
    ended: str | None = None
    """How the child ended early; None when it answered all."""

    @property
    def expected(self) -> bool:
        """Is there more of Neuron here than environment variables?"""
        return any(not sign.startswith("environment variable") for sign in self.signs)


Check = Callable[[Machine, Stack], list[Finding]]


def guarded(check: Check, machine: Machine, stack: Stack) -> list[Finding]:
    """Return what a check finds; a crash inside it is a finding too."""
    try:
        return check(machine, stack)
    except Exception as error:  # one broken check must not hide what the others know
        name = check.__name__.replace("_", " ")
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return [Finding(name, WARNING, f"this check itself failed ({said})")]


def size(count_bytes: float) -> str:
    """Word a number of bytes in GB, MB or kB of a thousand."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count_bytes >= factor:
            return f"{count_bytes / factor:.1f} {unit}"
    return f"{count_bytes:.0f} bytes"


def counted(number: int, noun: str) -> str:
    """Word a number with its noun: 1 problem, 2 problems."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

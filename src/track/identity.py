"""Who and what made a run: this process, this machine, the code, and the measurement's identity.

Called by child.py, runs.py and janitor.py. Reads /proc and git; writes nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..schema import Config

REPOSITORY = Path(__file__).resolve().parents[2]
WORKLOADS = Path(__file__).resolve().parents[1] / "measure" / "workloads"
NOT_MEASURED = ("tracking", "sweep", "explorer", "explorer_timeout_s")
TIMING_VARIABLES = ("NEURON_", "OMP_", "MKL_", "TORCH_", "PYTORCH_", "TORCHINDUCTOR_")


def git_commit(repository: Path = REPOSITORY) -> str | None:
    """Return the commit of this project's code, with -dirty when tracked files differ from it."""
    try:
        commit = _git(repository, "rev-parse", "HEAD")
        changed = _git(repository, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}-dirty" if changed else commit


def _git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=10,
    )
    return done.stdout.strip()


def measurement_id(config: Config, ready: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return a sha256 over all that can change the result: equal ids measure the same thing.

    The configuration without tracking, sweep and option names, the device with its chip, LNC and
    versions, the variables
    that change timing, and the source of the workload.
    """
    asked = {k: v for k, v in dataclasses.asdict(config).items() if k not in NOT_MEASURED}
    for group in ("variant", "input", "profiler", "device"):
        asked[group].pop("name")  # the name of an option; what it says is in the other fields
    asked["device"].pop("env", None)  # what it set is in `environ`
    source = WORKLOADS / f"{config.workload.name}.py"
    facts = {
        "config": asked,
        "device": {key: ready.get(key) for key in ("device", "versions", "chip", "lnc")},
        "environment": {
            name: value for name, value in environ.items() if name.startswith(TIMING_VARIABLES)
        },
        "source": source.read_text(encoding="utf-8")
        if source.is_file()
        else ready.get("source_sha256"),  # the user's own files, of a custom workload
    }
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def machine() -> str:
    """Name the space in which a pid means something, without giving away the host's name."""
    parts = [platform.node(), _text("/etc/machine-id")]
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


def start_time(pid: int) -> str | None:
    """Return when a process started, as text to compare; None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        after = stat.rpartition(")")[2].split()  # the name in parentheses may hold spaces
        if after[0] in ("Z", "X"):
            return None
        return f"{_text('/proc/sys/kernel/random/boot_id')}/{after[19]}"  # proc(5): field 22
    except (OSError, IndexError):
        if Path("/proc/self/stat").exists():
            return None
    return _start_time_from_ps(pid)


def _start_time_from_ps(pid: int) -> str | None:
    try:
        done = subprocess.run(
            ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def is_alive(pid: int, started: str) -> bool:
    """Is the process that had this pid and this start time still there?"""
    return start_time(pid) == started


def this_process() -> dict[str, str]:
    """Name the present process so that another one can ask later whether it still lives."""
    pid = os.getpid()
    return {"pid": str(pid), "machine": machine(), "started": start_time(pid) or "unknown"}


def has_ended(process: Mapping[str, str]) -> bool:
    """Is a process that `this_process` named surely gone? Not of this machine: cannot tell."""
    pid, started = process.get("pid", ""), process.get("started", "unknown")
    if process.get("machine") != machine() or started == "unknown" or not pid.isdigit():
        return False
    return not is_alive(int(pid), started)

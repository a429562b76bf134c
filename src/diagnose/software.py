"""Python, packages, torch, torch_neuronx and Neuron's own programs."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from . import hardware
from .finding import NOT_APPLICABLE, OK, PROBLEM, WARNING, Finding, Machine, Stack

OLDEST_PYTHON = (3, 10)  # pyproject.toml
NEURON_PYTHONS = ((3, 12), (3, 14))  # SDK 2.33 release notes
TOOLS = "/opt/aws/neuron/bin"
INSTALL = (
    'python -m pip install --upgrade "torch-neuronx=={release}.*" "neuronx-cc==2.*" nki    '
    '(from AWS\'s index: the whole line is in README.md, "On Trainium")'
)
INSTALL_TOOLS = "sudo apt-get install aws-neuronx-tools"


def python(machine: Machine, stack: Stack) -> list[Finding]:
    """Is this Python one that the project and the Neuron SDK support?"""
    shown = ".".join(map(str, machine.python))
    if machine.python < OLDEST_PYTHON:
        cure = "make an environment with Python 3.12: python3.12 -m venv .venv"
        return [Finding("python", PROBLEM, f"{shown}; 3.10 or newer is needed", cure)]
    first, last = NEURON_PYTHONS
    if stack.expected and not first <= machine.python <= last:
        cure = "if torch_neuronx fails: python3.12 -m venv .venv, and install into that"
        said = f"{shown}; the Neuron SDK is released for 3.12 to 3.14"
        return [Finding("python", WARNING, said, cure)]
    return [Finding("python", OK, f"{shown} ({sys.executable})")]


def packages(machine: Machine, stack: Stack) -> list[Finding]:
    """Are this project's dependencies there, as new as pyproject.toml asks?"""
    wanted = _lines(r"^dependencies = \[\n(.*?)^\]", machine.repository / "pyproject.toml")
    installed = {name: machine.version_of(name) for name in wanted}
    absent = [name for name, version in installed.items() if version is None]
    if absent:
        said = f"not installed: {', '.join(absent)}"
        return [Finding("packages", PROBLEM, said, "scripts/setup    (then use .venv/bin/python)")]
    from packaging.requirements import Requirement  # MLflow brings it

    old = [
        f"{name} {version} ({wanted[name]})"
        for name, version in installed.items()
        if version and not Requirement(wanted[name]).specifier.contains(version, prereleases=True)
    ]
    if old:
        return [Finding("packages", PROBLEM, f"too old: {', '.join(old)}", "scripts/setup")]
    pins = _pins(machine.repository / "constraints.txt")
    off = [
        f"{name} {version} (pinned: {pins[name]})"
        for name, version in installed.items()
        if version and name in pins and version.partition("+")[0] != pins[name]
    ]
    shown = ", ".join(f"{name} {version}" for name, version in installed.items())
    if off:
        shown = f"new enough, not as constraints.txt pins them: {', '.join(off)}"
    return [Finding("packages", OK, shown)]


def _lines(block: str, path: Path) -> dict[str, str]:
    """The quoted requirements of one list of pyproject.toml, by name (3.10 has no tomllib)."""
    found = re.search(block, path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    requirements = re.findall(r'"([^"]+)"', found[1]) if found else []
    return {re.split(r"[^\w.-]", text, maxsplit=1)[0]: text for text in requirements}


def _pins(path: Path) -> dict[str, str]:
    """The pins that hold for this Python, by name; empty when there is no constraints.txt."""
    from packaging.requirements import Requirement

    if not path.exists():
        return {}
    lines = (line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines())
    pins = [Requirement(line) for line in lines if line]
    return {
        pin.name: str(pin.specifier).removeprefix("==")
        for pin in pins
        if pin.marker is None or pin.marker.evaluate()
    }


def torch(machine: Machine, stack: Stack) -> list[Finding]:
    """Does torch import in a fresh process?"""
    if stack.torch:
        return [Finding("torch", OK, f"{stack.torch} imports")]
    if stack.missing:  # torch_neuronx, which torch loads by itself, broke it
        found, cure = divided(stack.missing)
        return [Finding("torch", PROBLEM, f"import torch fails: {found}", cure)]
    said = f"does not import ({stack.torch_error or stack.ended or 'no answer'})"
    return [Finding("torch", PROBLEM, said, "scripts/setup    (python -c 'import torch' says why)")]


def torch_neuronx(machine: Machine, stack: Stack) -> list[Finding]:
    """Does torch_neuronx import, with the profiler's names, and does it see a core?"""
    name, version = "torch_neuronx", machine.version_of("torch-neuronx") or "version unknown"
    if not stack.expected:
        return [Finding(name, NOT_APPLICABLE, "no sign of Neuron")]
    if stack.torch is None:
        return [Finding(name, NOT_APPLICABLE, "torch does not import, so it was not tried")]
    if stack.ended:
        cure = "python -X faulthandler -c 'import torch_neuronx'    (shows where)"
        return [Finding(name, PROBLEM, f"asking it failed: {stack.ended}", cure)]
    if stack.missing is None:
        said = f"{version}: the profiler's names are there, torch.neuron is available"
        return [Finding(name, OK, said)]
    if _no_core(stack.missing) and not hardware.has_devices(machine):
        return [Finding(name, NOT_APPLICABLE, "imports; no device file, so no core to open")]
    found, cure = divided(stack.missing)
    install = INSTALL.format(release=_release(stack.torch))
    if "not installed" in found:
        cure = install
    elif stack.imports and not _no_core(stack.missing):
        found = f"{version}: {found}"
        cure = f"python -m pip uninstall -y torch-neuronx torch-xla && {install}"
    return [Finding(name, PROBLEM, found, cure)]


def _no_core(missing: str) -> bool:
    """Is the library right, and only the hardware not to be had?"""
    return "is_available" in missing


def divided(missing: str) -> tuple[str, str]:
    """Divide a sentence of measure/devices/ into what is wrong and what to do."""
    words = "Install|Reinstall|Type|Ask|Another|They"
    found, *cure = re.split(rf"\.? (?=(?:{words})\b)", missing, maxsplit=1)
    return found, cure[0] if cure else "python -c 'import torch_neuronx'    (says why)"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def _release(torch_version: str) -> str:
    return ".".join(map(str, _numbers(torch_version)))


def torch_match(machine: Machine, stack: Stack) -> list[Finding]:
    """torch-neuronx 2.13.* goes with torch 2.13.*, 2.14.* with 2.14.*."""
    name = "torch match"
    ours, neuron = machine.version_of("torch"), machine.version_of("torch-neuronx")
    if ours is None or neuron is None:
        return [Finding(name, NOT_APPLICABLE, "torch-neuronx is not installed")]
    if stack.missing and not _no_core(stack.missing):
        return [Finding(name, NOT_APPLICABLE, "torch_neuronx does not work")]
    if _numbers(ours) == _numbers(neuron):
        return [Finding(name, OK, f"torch {ours} with torch-neuronx {neuron}")]
    said = f"torch {ours} with torch-neuronx {neuron}: their first two numbers should be equal"
    return [Finding(name, WARNING, said, INSTALL.format(release=_release(ours)))]


def programs(machine: Machine, stack: Stack) -> list[Finding]:
    """neuronx-cc compiles, neuron-explorer reads profiles, neuron-ls shows who holds cores."""
    names = ("neuronx-cc", "neuron-explorer", "neuron-ls")
    if not stack.expected:
        return [Finding(name, NOT_APPLICABLE, "no sign of Neuron") for name in names]
    return [_compiler(machine), _explorer(machine), _lister(machine)]


def _compiler(machine: Machine) -> Finding:
    name = "neuronx-cc"
    found = _which(machine, name)
    if found:
        return Finding(name, OK, found)
    beside = Path(sys.executable).with_name(name)
    if beside.is_file():
        cure = f'export PATH="{beside.parent}:$PATH"'
        said = f"not on PATH, but beside this Python ({beside}); without it compiling may hang"
        return Finding(name, PROBLEM, said, cure)
    said = "not on PATH; without it compiling may hang"
    return Finding(name, PROBLEM, said, 'python -m pip install "neuronx-cc==2.*"    (AWS\'s index)')


def _explorer(machine: Machine) -> Finding:
    name = "neuron-explorer"
    found = _which(machine, name) or _in_tools(machine, name)
    if found:
        return Finding(name, OK, found)
    said = "not found; profiles are recorded all the same, but only it reads the Neuron traces"
    return Finding(name, WARNING, said, INSTALL_TOOLS)


def _lister(machine: Machine) -> Finding:
    name = "neuron-ls"
    found = _which(machine, name) or _in_tools(machine, name)
    if found:
        return Finding(name, OK, found)
    said = "not found; it shows cores and who holds them"
    return Finding(name, WARNING, said, INSTALL_TOOLS)


def _which(machine: Machine, name: str) -> str | None:
    return shutil.which(name, path=machine.environ.get("PATH", ""))


def _in_tools(machine: Machine, name: str) -> str | None:
    return f"{TOOLS}/{name}" if machine.path(f"{TOOLS}/{name}").is_file() else None

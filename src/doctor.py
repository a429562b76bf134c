"""The door `python -m src.doctor`: can this machine profile, and what is in the way?

Reads, and changes nothing. Never imports torch: a short-lived child is asked (diagnose/stack.py).
Exit codes: 0 profiling works here (on a laptop: simulated runs), 1 something is in the way, 2 slip.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from .diagnose import disk, environment, hardware, shown, software, stack, tracking
from .diagnose.finding import PROBLEM, WARNING, Check, Finding, Machine, Stack, counted, guarded
from .errors import ToolError
from .schema import TrackingConfig
from .track import redact

FORMAT = 1  # of --json
CHECKS: dict[str, tuple[Check, ...]] = {
    "Machine": (
        hardware.signs,
        hardware.instance_type,
        hardware.driver,
        hardware.device_files,
        hardware.cores,
        hardware.held_cores,
    ),
    "Software": (
        software.python,
        software.packages,
        software.torch,
        software.torch_neuronx,
        software.torch_match,
        software.programs,
        environment.environment,
    ),
    "Storage": (
        tracking.tracking_store,
        tracking.pending_runs,
        tracking.abandoned_runs,
        tracking.disk,
        disk.neff_cache,
    ),
}


@dataclass(frozen=True)
class Diagnosis:
    """The answer and all findings, by subject."""

    verdict: str
    device: str
    """What device=auto would take: neuron or simulated."""
    can_run: bool
    findings: dict[str, list[Finding]]


def main(typed: Sequence[str] | None = None) -> int:
    """Look at this machine, show what was found; returns the exit code."""
    options = _parser().parse_args(typed)
    machine = Machine(tracking=TrackingConfig(name="local", root=options.root, uri=options.uri))
    try:
        tracking.located(machine)
    except ToolError as error:
        sys.stderr.write(redact.text(str(error)) + "\n")
        return error.exit_code
    try:
        with shown.busy("asking torch", quiet=options.json):
            answer = diagnose(machine)
    except KeyboardInterrupt:
        return 130
    if options.json:
        sys.stdout.write(json.dumps(to_json(answer), indent=1) + "\n")
    else:
        shown.show(answer.verdict, answer.can_run, answer.findings)
    return 0 if answer.can_run else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m src.doctor",
        description="Can this machine profile, and what is in the way? Looks, changes nothing. "
        "Exit code 0: yes (without Trainium: simulated runs work), 1: no, 2: bad arguments.",
    )
    parser.add_argument("--json", action="store_true", help="for programs: the findings as JSON")
    parser.add_argument("--root", help="as tracking.root; default: the repository's mlruns/")
    parser.add_argument("--uri", help="as tracking.uri: a server or database to try")
    return parser


def diagnose(machine: Machine) -> Diagnosis:
    """Run every check on the machine; never raises for what a check stumbles over."""
    try:
        answer = stack.ask(machine)
    except OSError as error:  # no room for a temporary folder, no process to be had
        answer = Stack(ended=f"the child that asks could not start: {error}")
    findings = {
        subject: [found for check in checks for found in guarded(check, machine, answer)]
        for subject, checks in CHECKS.items()
    }
    problems = [f for group in findings.values() for f in group if f.status == PROBLEM]
    warnings = [f for group in findings.values() for f in group if f.status == WARNING]
    verdict = _verdict(answer, len(problems))
    if warnings:
        verdict += f", {counted(len(warnings), 'warning')}"
    device = "neuron" if answer.expected else "simulated"
    return Diagnosis(verdict, device, not problems, findings)


def _verdict(answer: Stack, problems: int) -> str:
    if answer.expected and not problems:
        return "This machine can profile on Trainium"
    if answer.expected:
        return f"This machine cannot profile on Trainium: {counted(problems, 'problem')}"
    if not problems:
        return "No sign of Neuron here: runs are simulated, nothing is in their way"
    return f"No Neuron device here, and simulated runs do not work: {counted(problems, 'problem')}"


def to_json(answer: Diagnosis) -> dict[str, object]:
    """The answer as plain data; `cure` is null where nothing needs one."""
    checks = [
        {"subject": subject.lower(), **asdict(found)}
        for subject, group in answer.findings.items()
        for found in group
    ]
    return {
        "format": FORMAT,
        "verdict": answer.verdict,
        "device": answer.device,
        "can_run": answer.can_run,
        "checks": checks,
    }


if __name__ == "__main__":
    sys.exit(main())

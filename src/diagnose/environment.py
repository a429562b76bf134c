"""Environment variables that spoil a profile, or make it slow, on a Neuron machine."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .finding import NOT_APPLICABLE, OK, PROBLEM, WARNING, Finding, Machine, Stack

INSPECT = "NEURON_RT_INSPECT_ENABLE"
VISIBLE, NUMBER = "NEURON_RT_VISIBLE_CORES", "NEURON_RT_NUM_CORES"
LNC = ("NEURON_RT_VIRTUAL_CORE_SIZE", "NEURON_LOGICAL_NC_CONFIG")
LNC_FLAG = re.compile(r"--(?:lnc|logical-nc-config)[= ]+(\d+)")
AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
LOG_LEVEL = "NEURON_RT_LOG_LEVEL"
OFF = ("", "0", "false", "no", "off")
SLOW = {
    "NEURON_LAUNCH_BLOCKING": "each operator waits for the one before",
    "NEURON_RT_ENABLE_DGE_NOTIFICATIONS": "names DMAs, costs device time, and may time out",
    "TORCH_NEURONX_ENABLE_STACK_TRACE": "collects a stack for each operator",
    "TORCH_NEURONX_NEFF_DISABLE_CACHE": "compiles everything again in each run",
    "TORCH_NEURONX_DISABLE_NEFF_CACHE": "compiles everything again in each run",
}


def environment(machine: Machine, stack: Stack) -> list[Finding]:
    """One finding for each variable in the way; one that says so when there is none."""
    if not stack.expected:
        return [Finding("environment", NOT_APPLICABLE, "no sign of Neuron")]
    troubles = list(_troubles(dict(machine.environ)))
    return troubles or [Finding("environment", OK, "no variable is in the way of a profile")]


def _troubles(environ: dict[str, str]) -> Iterator[Finding]:
    if environ.get(INSPECT, "0").lower() not in OFF:
        said = f"{INSPECT}={environ[INSPECT]}: a second capture beside torch.profiler's; they clash"
        yield _finding(INSPECT, PROBLEM, said)
    if not environ.get(VISIBLE, "0").strip():
        yield _finding(VISIBLE, PROBLEM, f"{VISIBLE} is set but empty: no core may be seen")
    elif VISIBLE in environ and environ.get(NUMBER):
        said = f"{NUMBER}={environ[NUMBER]} beside {VISIBLE}={environ[VISIBLE]}, which wins"
        yield _finding(NUMBER, WARNING, said)
    elif VISIBLE in environ:
        said = f"{VISIBLE}={environ[VISIBLE]}: runs take these cores, not what cores= says"
        yield _finding(VISIBLE, WARNING, said)
    yield from _lnc(environ)
    if environ.get(AUTOLOAD) == "0":
        yield _finding(AUTOLOAD, WARNING, f"{AUTOLOAD}=0: torch does not load torch_neuronx itself")
    for name, why in SLOW.items():
        if environ.get(name, "0").lower() not in OFF:
            yield _finding(name, WARNING, f"{name}={environ[name]}: {why}")
    if environ.get(LOG_LEVEL, "").upper() in ("INFO", "DEBUG", "TRACE"):
        said = f"{LOG_LEVEL}={environ[LOG_LEVEL]}: logging costs host time inside the window"
        yield _finding(LOG_LEVEL, WARNING, said)


def _lnc(environ: dict[str, str]) -> Iterator[Finding]:
    """The runtime's and the compiler's logical core size must be the same."""
    sizes = {name: environ[name].strip() for name in LNC if environ.get(name, "").strip()}
    flag = LNC_FLAG.search(environ.get("NEURON_CC_FLAGS", ""))
    if flag:
        sizes["NEURON_CC_FLAGS --lnc"] = flag[1]
    if len(set(sizes.values())) > 1:
        said = ", ".join(f"{name}={value}" for name, value in sizes.items())
        cure = f"export {LNC[0]}=2 {LNC[1]}=2    (or 1 in both; --lnc in NEURON_CC_FLAGS the same)"
        yield Finding("environment", PROBLEM, f"core sizes disagree: {said}", cure)


def _finding(name: str, status: str, found: str) -> Finding:
    return Finding("environment", status, found, f"unset {name}")

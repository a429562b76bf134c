"""What two runs must share before their times say anything: conditions, by the axis they belong to.

Called by verdict.py and comparison.py. The axis that a comparison is made across may differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from .measured import Measured

AXES = ("variant", "input", "cores", "sdk")
# Settings of the profiler that change what the window costs, with the defaults of a run that does
# not name them. The number of windows and of warm-up calls is none of them.
PROFILER = {
    "profiler.modes": "RUNTIME",
    "profiler.steps": "1",
    "profiler.sync": "window",
    "profiler.max_events_per_nc": "",
    "profiler.capture_cores": "",
    "profiler.correlate_device_time": "True",
    "profiler.record_shapes": "False",
    "profiler.with_stack": "False",
    "profiler.with_flops": "False",
    "profiler.profile_memory": "False",
    "profiler.acc_events": "False",
}
NOT_THE_WORK = ("workload.numerics", "workload.tolerance", "workload.uses_cores")
NOTHING = "none"


@dataclass(frozen=True)
class Difference:
    """One thing in which a run differs from its baseline."""

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.name}: {self.after} against {self.before}"


@lru_cache(maxsize=2048)
def conditions(run: Measured) -> dict[str, tuple[str, str]]:
    """Return name -> (axis, value); the axis is empty for what may never differ."""
    params, tags = run.params, run.tags
    found = {
        "workload": ("", run.workload),
        "variant": ("variant", run.variant),
        "input": ("input", run.input),
        "device": ("", run.device),
        "device_time_source": ("", _either(run, "device_time_source")),
        "chip": ("", tags.get("chip", NOTHING)),
        "lnc": ("", tags.get("lnc", NOTHING)),
        "cores": ("cores", run.cores),
        "execution": ("", params.get("execution", "default")),
        "concurrent_jobs": ("", params.get("concurrent_jobs", "1")),
    }
    for key, default in PROFILER.items():
        axis = "cores" if key == "profiler.capture_cores" else ""
        found[key] = (axis, params.get(key, default) or NOTHING)
    for key, value in params.items():
        if key.startswith("variant."):
            found[key] = ("variant", value)
        elif key.startswith(("device.cost.", "workload.")) and key not in NOT_THE_WORK:
            found[key] = ("", value)
    for package, version in run.versions.items():
        found[f"version.{package}"] = ("sdk", version)
    for name, value in run.timing_variables.items():
        found[name] = ("sdk", value)
    return found


def differences(baseline: Measured, run: Measured, across: str) -> list[Difference]:
    """List what differs in the conditions, without what belongs to the axis `across`."""
    return between(conditions(baseline), conditions(run), across)


def between(
    before: dict[str, tuple[str, str]], after: dict[str, tuple[str, str]], across: str
) -> list[Difference]:
    """The same for conditions that are at hand already."""
    if before == after:
        return []
    found = []
    for name in {**before, **after}:
        axis = (before.get(name) or after[name])[0]
        old, new = (side.get(name, ("", NOTHING))[1] for side in (before, after))
        if old != new and axis != across:
            found.append(Difference(name, old, new))
    return found


def all_differences(baseline: Measured, run: Measured, across: str = "") -> list[Difference]:
    """List every difference in configuration and environment, also those that do not matter.

    Without what belongs to the axis `across`, when one is named.
    """
    before, after = conditions(baseline), conditions(run)
    found = between(before, after, across or "none of them")
    for key in sorted({*baseline.params, *run.params}):
        old, new = (side.params.get(key, NOTHING) for side in (baseline, run))
        if old != new and key not in before and key not in after and not _is_said_by_another(key):
            found.append(Difference(key, old, new))
    for key in ("git_commit", "device_name", "neff_sha256"):
        old, new = (side.tags.get(key, NOTHING) for side in (baseline, run))
        if old != new:
            found.append(Difference(key, old, new))
    return found


def _is_said_by_another(key: str) -> bool:
    return key.startswith("dim") or key in ("input.shape", "input.dtype")


def _either(run: Measured, key: str) -> str:
    return run.tags.get(key) or run.params.get(key) or NOTHING

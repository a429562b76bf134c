"""Health checks on the profiler's table, operators.json. Called by health.py; reads no file."""

from __future__ import annotations

import math
from statistics import median

from ..rundir import Operators, Window
from ..schema import Config, ProfilerConfig
from .check import Check, failed, ok, some, warning
from .operators import COMPILED_REGION, is_operator, ran_on_device

STEP_MARKS = ("ProfilerStep#", "ProfilerStep*")  # in events, and in torch's averages
DOUBLE_TOLERANCE = 0.1
COMPILE_MARK = "(dynamo_timed)"  # Dynamo's own rows while it compiles


def device_time(operators: Operators | None, profiler: ProfilerConfig) -> Check:
    """Something ran on the device, and its time comes from a lawful source."""
    name = "device_time"
    if operators is None:
        return failed(
            name,
            "There is no operators.json: the run ended before the profiler's table was read. "
            "child.log and error.txt say why.",
        )
    if not operators.windows:
        return failed(name, "No window was recorded: the run ended before the first one.")
    executions = [window.executions for window in operators.windows]
    if all(count == 0 for count in executions):
        return failed(
            name,
            "Nothing ran on the device in any window (0 executions). Does the step use its "
            "inputs on the device, or does it only make views, or fall back to the CPU?"
            + _fell_back(operators)
            + " A step that ran before the window opened needs a synchronize() at its end.",
        )
    if operators.device_time_source is None:
        return failed(name, f"No device time. {_why_no_source(operators, profiler)}")
    timed = [window for window in operators.windows if _has_device_time(window)]
    source = operators.device_time_source
    if not timed:
        return failed(
            name,
            f"{source} gave no device time in any window, so there is no self_neuron_us. Type "
            "profiler=runtime execution=blocking, and look in child.log for what the runtime said.",
        )
    if len(timed) < len(operators.windows):
        return warning(
            name,
            f"Only {len(timed)} of {len(operators.windows)} windows have device time; the medians "
            "are over those. Run again, with execution=blocking if it stays so.",
        )
    uneven = _in_some_windows(operators)
    if uneven:
        return warning(
            name,
            f"{some(uneven)} ran in each window but had device time in only some. Joined "
            "executions are credited to one operator: compare totals, or type execution=blocking.",
        )
    return ok(name, f"device time from {source}")


def _why_no_source(operators: Operators, profiler: ProfilerConfig) -> str:
    explorer = (
        "Install neuron-explorer (package aws-neuronx-tools) and type explorer=system: it reads "
        "the executions from the runtime's trace."
    )
    if not profiler.correlate_device_time:
        return (
            "profiler.correlate_device_time=false leaves it out of the table. Type "
            f"profiler.correlate_device_time=true. Or: {explorer}"
        )
    if "correlate_device_time" in operators.dropped_keywords:
        return (
            "The installed NeuronConfig does not know correlate_device_time. Install a newer "
            f"torch-neuronx. Or: {explorer}"
        )
    modes = "" if "RUNTIME" in profiler.modes else " Type profiler=combined."
    return (
        "The profiler's table has none, though correlate_device_time was asked for: nothing ran "
        f"on the device, or this release does not fill it in.{modes} {explorer}"
        + _fell_back(operators)
    )


def compile_in_window(operators: Operators, profiler: ProfilerConfig) -> Check:
    """No graph was compiled inside a window."""
    name = "compile_in_window"
    compiles = sum(window.compiles for window in operators.windows)
    marks = sorted(
        {r.name for w in operators.windows for r in w.operators if COMPILE_MARK in r.name}
    )
    neffs = sum(window.new_neffs or 0 for window in operators.windows)
    if not compiles and not marks and not neffs:
        return ok(name, "no compile in the window")
    what = f"{compiles} compile(s) inside the windows" if compiles else "A compile in the window"
    rows = f" (rows: {some(marks, 2)})" if marks else ""
    if neffs:
        rows += (
            f" ({neffs} new in the NEFF cache; where other processes use the same one, type "
            "device.env.TORCH_NEURONX_NEFF_CACHE_DIR=<a folder of its own>)"
        )
    if profiler.allow_compile_in_window:
        return ok(name, f"{what}{rows}, accepted by profiler.allow_compile_in_window=true")
    return failed(
        name,
        f"{what}{rows}, so its time is compile time. Type a larger profiler.warmup (it is "
        f"{profiler.warmup}); a step that compiles each time changes its shapes. "
        "profiler.allow_compile_in_window=true accepts it.",
    )


def steps_marked(operators: Operators) -> Check:
    """Each window has as many ProfilerStep marks as steps; else per step means nothing."""
    name = "steps_marked"
    wrong = [
        f"window {place}: {marked} marks for {window.steps} steps"
        for place, window in enumerate(operators.windows)
        if (marked := _marked_steps(window)) != window.steps
    ]
    if not wrong:
        return ok(name, "every step is marked")
    return failed(
        name,
        f"ProfilerStep marks do not match the steps ({some(wrong, 2)}), so values per step cannot "
        "be trusted. The profiler recorded other steps than asked for: set "
        "profiler.schedule.skip_first, wait and warmup back to 0.",
    )


def compiled_region_present(operators: Operators, config: Config) -> Check:
    """A compiled variant really ran compiled."""
    name = "compiled_region_present"
    if config.variant.compile is None:
        return ok(name, f"variant {config.variant.name} is not compiled")
    eager = [
        str(place)
        for place, window in enumerate(operators.windows)
        if not any(row.name.startswith(COMPILED_REGION) for row in window.operators)
    ]
    if not eager:
        return ok(name, f"{COMPILED_REGION} in every window")
    return failed(
        name,
        f"variant={config.variant.name} asks for torch.compile, but there is no {COMPILED_REGION} "
        f"in window {some(eager)}: the step ran in eager mode. Is TORCHDYNAMO_DISABLE or "
        "TORCH_COMPILE_DISABLE set, or was Dynamo's recompile limit reached? Type "
        "variant.compile.fullgraph=true to have the reason raised.",
    )


def keywords_dropped(operators: Operators) -> Check:
    """The installed NeuronConfig took every parameter."""
    name = "keywords_dropped"
    dropped = list(operators.dropped_keywords)
    if not dropped:
        return ok(name, "every parameter was taken")
    return warning(
        name,
        f"The installed NeuronConfig does not know {some(dropped, 8)}; the capture was made "
        "without. Install a newer torch-neuronx, or leave the override out.",
    )


def doubled_time(operators: Operators) -> Check:
    """Self NEURON is not twice what the executions took, as it is when LNC2 rows are added."""
    name = "doubled_time"
    ratios = [
        math.fsum(r.self_neuron_us or 0.0 for r in window.operators if is_operator(r))
        / window.executions_us
        for window in operators.windows
        if window.executions_us
    ]
    if not ratios or not any(ratios):
        return ok(name, "cannot tell: device time or the lengths of the executions are not known")
    ratio = median(ratios)
    if abs(ratio - 2) > DOUBLE_TOLERANCE:
        return ok(name, f"Self NEURON is {ratio:.2f} times the merged executions")
    return failed(
        name,
        f"Self NEURON is {ratio:.2f} times the merged executions: under LNC2 each execution has a "
        "row for each of two physical cores, and the table adds them. Halve it before comparing "
        "with another run, or measure with device.env.NEURON_RT_VIRTUAL_CORE_SIZE=1.",
    )


def neff_cache(operators: Operators) -> Check:
    """Whether the first call compiled: a cold cache makes it slow, a warm one hides it."""
    name, cache = "neff_cache", operators.neff_cache
    if cache is None:
        return ok(name, "no NEFF cache was watched")
    said = f"{cache.misses} compiled and added by the first call" if cache.misses else "all hits"
    if not cache.size:
        said = "nothing in it, so hits and misses cannot be told"
    return ok(name, f"NEFF cache {cache.state}: {said} ({cache.size} NEFFs in {cache.directory})")


def fallback(operators: Operators) -> Check:
    """No operator fell back to the CPU, where that can be told."""
    name = "fallback"
    if operators.fallback_operators is None:
        return ok(name, "cannot tell whether operators fell back to the CPU")
    if not operators.fallback_operators:
        return ok(name, "no operator fell back to the CPU")
    told = " (by the shape of the trace)" if operators.fallback_source == "trace" else ""
    return warning(
        name,
        f"{some(sorted(operators.fallback_operators), 5)} fell back to the CPU{told}, whose time "
        "is not in Self NEURON: do not compare this run with one without. Use other operators.",
    )


def _marked_steps(window: Window) -> int:
    return sum(row.calls for row in window.operators if row.name.startswith(STEP_MARKS))


def _has_device_time(window: Window) -> bool:
    by_core = window.self_neuron_by_core_us.values()
    return any(is_operator(row) and ran_on_device(row) for row in window.operators) or any(
        math.isfinite(time_us) and time_us > 0 for time_us in by_core
    )


def _in_some_windows(operators: Operators) -> list[str]:
    """Operators that are in each window, and have device time in some of them but not in all."""
    timed: dict[str, list[bool]] = {}
    for window in operators.windows:
        seen: dict[str, bool] = {}
        for row in filter(is_operator, window.operators):
            seen[row.name] = seen.get(row.name, False) or ran_on_device(row)
        for name, has_time in seen.items():
            timed.setdefault(name, []).append(has_time)
    every = len(operators.windows)
    return [n for n, has in timed.items() if len(has) == every and any(has) and not all(has)]


def _fell_back(operators: Operators) -> str:
    names = operators.fallback_operators
    return f" These fell back to the CPU: {some(sorted(names), 5)}." if names else ""

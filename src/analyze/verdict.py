"""Is a run better or worse than its baseline, or can that not be said? A word and a reason.

Called by comparison.py. The verdict is on Self NEURON alone; host times never decide it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import conditions, noise
from .measured import BUSIEST, HEADLINE, Measured

IDENTICAL, BETTER, WORSE = "identical", "better", "worse"
SAME, NO_NOISE = "same within noise", "no noise estimate"
SIMULATED, NOT_COMPARABLE = "simulated", "not comparable"
BASELINE = "baseline"
"""Stands in the verdict tag of the run that the others are compared with; no verdict itself."""
MOST_DIFFERENCES = 3


@dataclass(frozen=True)
class Verdict:
    """One word, and why."""

    word: str
    reason: str
    change: float | None = None
    """Time over the baseline's, less one: 0.1 is 10 % slower. None where it means nothing."""
    noise: float | None = None
    """The largest change that chance explains."""
    n: int | None = None
    """How many values the noise comes from, on the side that has fewer."""


def judge(
    baseline: Measured,
    run: Measured,
    *,
    across: str = "variant",
    repeats: Sequence[Measured] = (),
    baseline_repeats: Sequence[Measured] = (),
    allow_simulated: bool = False,
) -> Verdict:
    """Compare one run with its baseline; `across` names the axis on which the two may differ.

    `repeats` and `baseline_repeats` are runs with the same measurement_id, each with its run.
    """
    if run.run_id == baseline.run_id:
        return Verdict(IDENTICAL, "the same run" + _mark(run), 0.0)
    refused = _refusal(baseline, run, across)
    if refused:
        return Verdict(NOT_COMPARABLE, refused)
    if run.simulated and not allow_simulated:
        return Verdict(
            SIMULATED, "both times come from a cost model and are no measurement of Trainium"
        )
    key = _key(baseline, run)
    verdict = _timed(baseline, run, key, repeats or (run,), baseline_repeats or (baseline,))
    verdict = _with_fallbacks(verdict, baseline, run)
    if run.simulated:
        return Verdict(
            verdict.word, f"simulated: {verdict.reason}", verdict.change, verdict.noise, verdict.n
        )
    return verdict


def _mark(run: Measured) -> str:
    return " (simulated)" if run.simulated else ""


def _refusal(baseline: Measured, run: Measured, across: str) -> str:
    """Why the two times must not be compared; empty when they may."""
    for side, who in ((run, "this run"), (baseline, "the baseline")):
        if not side.finished:
            error = " ".join(side.tags.get("error", "").split())[:160]
            return f"{who} is {side.status}{': ' + error if error else ''}"
    found = conditions.differences(baseline, run, across)
    if found:
        # What changes the meaning of all else comes first, as in conditions().
        more = len(found) - MOST_DIFFERENCES
        listed = "; ".join(map(str, found[:MOST_DIFFERENCES]))
        return listed + (f"; and {more} more" if more > 0 else "") + _declare(found, across)
    if across == "input" and run.input != baseline.input:
        return "another input is other work; the table shows how time grows with it"
    for side, who in ((run, "this run"), (baseline, "the baseline")):
        if side.tags.get("capture_health") == "incomplete":
            return f"{who}: {side.tags.get('capture_health_line', 'its capture is incomplete')}"
        time_us = side.metric(_key(baseline, run))
        if time_us is None:
            return f"{who} has no device time ({HEADLINE})"
        if time_us <= 0:
            return f"{who} has a device time of {time_us:g} us, which nothing can be compared with"
    extra = _extra_fallbacks(baseline, run)
    if extra:
        return f"{extra} fell back to the CPU here and not in the baseline; that time is missing"
    return ""


def _declare(found: Sequence[conditions.Difference], across: str) -> str:
    sdk = {name for name in (d.name for d in found) if name.startswith("version.")}
    if sdk and across != "sdk" and len(sdk) == len(found):
        return " (declare it with --across sdk)"
    return ""


def _extra_fallbacks(baseline: Measured, run: Measured) -> str:
    """Operators that fell back here and not in the baseline, as words; empty when none."""
    names = sorted(run.fallback_names - baseline.fallback_names)
    if names:
        return ", ".join(names[:MOST_DIFFERENCES])
    before, after = baseline.fallbacks or 0, run.fallbacks or 0
    return f"{after - before} operator(s)" if after > before else ""


def _with_fallbacks(verdict: Verdict, baseline: Measured, run: Measured) -> Verdict:
    """Take back or qualify a verdict where the two sides' fall-backs are not the same."""
    fewer = _extra_fallbacks(run, baseline)
    if fewer and verdict.word in (WORSE, SAME):
        reason = f"{fewer} fell back to the CPU in the baseline only; its time is missing there"
        return Verdict(NOT_COMPARABLE, reason)
    if verdict.word == BETTER and run.fallbacks is None and baseline.fallbacks is not None:
        reason = "whether operators fell back to the CPU is not known here, and is in the baseline"
        return Verdict(NOT_COMPARABLE, reason)
    return verdict


def _key(baseline: Measured, run: Measured) -> str:
    """Several cores are compared by the busiest one: their sum is no time anyone waits for."""
    both = run.metric(BUSIEST) is not None and baseline.metric(BUSIEST) is not None
    return BUSIEST if both and run.cores != baseline.cores else HEADLINE


def _timed(
    baseline: Measured,
    run: Measured,
    key: str,
    repeats: Sequence[Measured],
    baseline_repeats: Sequence[Measured],
) -> Verdict:
    before, after = baseline.metric(key), run.metric(key)
    assert before is not None
    assert after is not None
    if run.windows_us and run.windows_us == baseline.windows_us and before == after:
        same = "and the same binary" if run.neff and run.neff == baseline.neff else ""
        return Verdict(IDENTICAL, f"the same times in every window {same}".strip(), 0.0)
    others = [other for other in baseline_repeats if other.run_id != run.run_id]
    equals = noise.sample(baseline, others)
    if len(others) < len(baseline_repeats) and equals is not None and equals.kind == "runs":
        before, estimate = equals.middle_us, noise.of_one(equals, run)
        return _said(baseline, run, before, after, estimate)
    old, new = noise.sample(baseline, baseline_repeats), noise.sample(run, repeats)
    if old is None or new is None:
        side = "this run" if new is None else "the baseline"
        return _said(baseline, run, before, after, None, side)
    before = old.middle_us if old.kind == "runs" else before
    after = new.middle_us if new.kind == "runs" else after
    estimate = noise.between(old, new)
    return _said(baseline, run, before, after, estimate)


def _said(
    baseline: Measured,
    run: Measured,
    before: float,
    after: float,
    estimate: noise.Noise | None,
    without: str = "",
) -> Verdict:
    change = after / before - 1
    speed = "slower" if change > 0 else "faster"
    amount = f"{abs(change):.1%} {speed} ({after:,.1f} against {before:,.1f} us)"
    binary = ""
    if run.neff is not None and run.neff == baseline.neff:
        binary = "; same binary (equal NEFF hash)"
    if estimate is None:
        reason = (
            f"{amount}, and {without} has fewer than {noise.FEWEST} windows and fewer than "
            f"{noise.FEWEST} repeated runs: type profiler.repeats=5"
        )
        return Verdict(NO_NOISE, reason + binary, change)
    band = f"noise up to {estimate.fraction:.1%} from {estimate.source}"
    if abs(change) <= estimate.fraction:
        word = SAME
    else:
        word = WORSE if change > 0 else BETTER
    return Verdict(word, f"{amount}; {band}{binary}", change, estimate.fraction, estimate.n)

"""sweep.order=interleaved: variants alternate, and Hydra runs the jobs in that order."""

from __future__ import annotations

from pathlib import Path

from src.track import order

from .. import running


def test_each_variant_comes_early_as_often_as_late() -> None:
    jobs = [[f"variant={v}", f"input.seed={s}"] for v in "ab" for s in range(4)]
    said = [job[0][-1] + job[1][-1] for job in order.interleaved(jobs)]
    assert said == ["a0", "b0", "b1", "a1", "a2", "b2", "b3", "a3"]


def test_no_job_is_lost_or_added() -> None:
    jobs = [
        [f"variant={v}", f"input={i}", "cores=0"] for v in "abc" for i in ("small", "medium", "big")
    ]
    assert sorted(order.interleaved(jobs)) == sorted(jobs)


def test_a_sweep_without_variants_keeps_its_order() -> None:
    jobs = [[f"input.seed={s}"] for s in range(3)]
    assert order.interleaved(jobs) == jobs


def test_the_jobs_run_in_the_order_that_the_preview_shows(tmp_path: Path) -> None:
    axes = ("variant=naive,fused", "input.shape=8x8,8x16", "sweep.order=interleaved")
    shown = running.run(tmp_path / "mlruns", "-m", *axes, "sweep.preview=true")
    assert shown.returncode == 0, shown.stderr
    said = [line.split()[1:3] for line in shown.stdout.splitlines() if line.split()[:1] != []]
    planned = [" ".join(words) for words in said if words and words[0].startswith("variant=")]
    assert planned == [
        "variant=naive input.shape=8x8",
        "variant=fused input.shape=8x8",
        "variant=fused input.shape=8x16",
        "variant=naive input.shape=8x16",
    ]
    fast = ("profiler.repeats=1", "profiler.warmup=0", "profiler.latency_calls=0")
    done = running.run(tmp_path / "mlruns", "-m", *axes, "device=simulated", *fast)
    assert done.returncode == 0, done.stderr
    runs = [r for r in running.tracked(tmp_path / "mlruns") if r.data.tags.get("kind") == "profile"]
    ran = [
        f"variant={r.data.params['variant']} input.shape={r.data.params['input.shape']}"
        for r in runs
    ]
    assert ran == planned

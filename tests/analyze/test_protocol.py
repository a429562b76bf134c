"""Metrics of the protocol, from files written by hand and values worked out on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from src import rundir
from src.analyze import check_result, protocol
from src.measure import latency
from src.rundir import Operators, Window
from src.schema import Config, ProfilerConfig, Spec


def spec(sync: str = "window") -> Spec:
    return Spec(Config(profiler=ProfilerConfig(name="runtime", sync=sync)))


def windows(*host_us: float | None, steps: int = 1) -> Operators:
    made = tuple(Window(steps, (), 0.0, host_us=value) for value in host_us)
    return Operators(device_time_source="simulated", windows=made)


def test_tokens_are_divided_by_pipelined_host_time_and_device_time_by_tokens(
    tmp_path: Path,
) -> None:
    timed = {"synchronized_us": [500.0], "pipelined_us_per_step": 250.0, "steps": 1}
    rundir.write_json(tmp_path / rundir.LATENCY, timed)
    rundir.write_json(tmp_path / rundir.WORK, {"tokens": 64})
    found = protocol.metrics(tmp_path, spec(), None, 320.0)
    assert found["tokens_per_s"] == 64 / 250e-6
    assert found["self_neuron_us_per_token"] == 5.0


def test_what_nobody_wrote_gives_no_metric_and_a_broken_file_costs_only_itself(
    tmp_path: Path,
) -> None:
    assert protocol.metrics(tmp_path, spec(), None, None) == {}
    (tmp_path / rundir.LATENCY).write_text("[1, 2")
    rundir.write_json(tmp_path / rundir.MEMORY, {"peak_allocated_bytes": None})
    rundir.write_json(tmp_path / rundir.PHASES, {"import_us": 7, "odd_us": "x"})
    assert protocol.metrics(tmp_path, spec(), None, 1.0) == {"phase/import_us": 7.0}


def test_percentiles_are_by_nearest_rank_and_need_enough_calls() -> None:
    few = protocol.latencies([30.0, 10.0, 20.0])
    assert few == {"latency/p50_us": 20.0, "latency/min_us": 10.0, "latency/mean_us": 20.0}
    many = protocol.latencies([float(n) for n in range(1, 101)])
    assert (many["latency/p50_us"], many["latency/p90_us"], many["latency/p99_us"]) == (50, 90, 99)


@pytest.mark.parametrize(
    ("sync", "steps", "ratio"),
    [("window", 1, 1.5), ("step", 4, 0.375), ("window", 4, 0.75)],
)
def test_overhead_compares_like_with_like(sync: str, steps: int, ratio: float) -> None:
    # 300 us a window; synchronized calls take 200 us, pipelined ones 100 us
    found = protocol.overhead(spec(sync), windows(300.0, steps=steps), [200.0], 100.0)
    assert found == ratio


def test_windows_without_host_time_have_no_overhead() -> None:
    assert protocol.overhead(spec(), windows(None), [200.0], 100.0) is None


@pytest.mark.parametrize(
    ("passed", "status"), [(True, ["ok"]), (None, ["ok"]), (False, ["warning"])]
)
def test_a_wrong_result_is_a_warning(tmp_path: Path, passed: Any, status: list[str]) -> None:
    rundir.write_json(tmp_path / rundir.NUMERICS, {"passed": passed, "message": "said"})
    checks = check_result.numerics(tmp_path)
    assert [check.status for check in checks] == status
    assert "said" in checks[0].message


class Clock:
    """Time that only a step spends."""

    def __init__(self, step_ns: int) -> None:
        self.now, self.step_ns, self.calls = 0, step_ns, 0

    def __call__(self) -> int:
        return self.now

    def step(self) -> None:
        self.now += self.step_ns
        self.calls += 1


def test_latency_makes_the_calls_that_were_asked_for_each_way() -> None:
    clock = Clock(1000)
    found = latency.measure(clock.step, lambda: None, 5, clock=clock)
    assert found == latency.Latency((1.0,) * 5, 1.0, 5)
    assert clock.calls == 10


def test_a_slow_step_is_called_once_and_its_time_stands_for_both() -> None:
    clock = Clock(30 * 10**9)
    found = latency.measure(clock.step, lambda: None, 100, clock=clock)
    assert found == latency.Latency((30e6,), 30e6, 1)
    assert clock.calls == 1


def test_no_calls_no_latency() -> None:
    assert latency.measure(lambda: None, lambda: None, 0) is None

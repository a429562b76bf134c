"""The second look is part of what comes of a run, and never costs it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from src import rundir
from src.analyze import deeper
from src.track import outcome

from . import making


def test_its_metrics_are_tracked_and_its_sections_reported(tmp_path: Path) -> None:
    asked = making.spec(tmp_path)
    directory = making.run_directory(tmp_path, asked)
    rundir.write_json(directory / rundir.WORK, {"bytes_moved": 725_000, "dtype": "bfloat16"})
    result = outcome.conclude(directory, asked)
    assert result.metrics["roofline/floor_us"] == 1.0
    summary = rundir.read_json(directory / rundir.SUMMARY)
    assert summary["metrics"]["roofline/floor_us"] == 1.0
    assert "## Where is the limit, simulated" in (directory / rundir.REPORT).read_text()


def test_an_error_in_it_costs_a_warning_and_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> deeper.Deeper:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(deeper, "examine", broken)
    asked = making.spec(tmp_path)
    directory = making.run_directory(tmp_path, asked)
    with caplog.at_level(logging.WARNING):
        result = outcome.conclude(directory, asked)
    assert result.status == "FINISHED"
    assert result.metrics["self_neuron_us"] == 5.0
    assert "ZeroDivisionError: a bug" in caplog.text
    assert (directory / rundir.REPORT).is_file()

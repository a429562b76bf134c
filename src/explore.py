"""The door to neuron-explorer: `python -m src.explore RUN_ID|DIR` reads a profile that is there.

A tracked run gets the metrics added; a directory gets explorer.json, which ingest takes along.
Never imports torch, and takes no device.
"""

from __future__ import annotations

import argparse
import logging
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import fetch, rundir
from .analyze import explored
from .analyze.explored import Explored
from .errors import StoreError, ToolError, UserError
from .explorer import explore
from .track import connect, fetched, late_metrics, redact

DEFAULT_S = 600.0


def main(typed: Sequence[str] | None = None) -> int:
    """Explore what the command line names; returns the exit code (see errors.py)."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    options = _parser().parse_args(typed)
    try:
        if not (math.isfinite(options.timeout_s) and options.timeout_s > 0):
            raise UserError(f"--timeout-s {options.timeout_s}: not a time limit. Type 600.")
        place = Path(options.what)
        found = _directory(place, options) if place.is_dir() else _run(options)
    except ToolError as error:
        print(redact.text(str(error)), file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"{error.filename}: {error.strerror or error}", file=sys.stderr)
        return StoreError.exit_code
    except KeyboardInterrupt:
        print("stopped; nothing was changed", file=sys.stderr)
        return 130
    for words in found.warnings:
        print(words, file=sys.stderr)
    return 0 if found.engines or any(one.device_time for one in found.sessions) else 1


def _directory(place: Path, options: argparse.Namespace) -> Explored:
    """A run directory, or any folder with a profile in it."""
    manifest = rundir.read_json(place / rundir.MANIFEST)
    if manifest is not None:
        run_id = (manifest.get("where") or {}).get("run_id") or "RUN_ID"
        raise UserError(
            f"{place}: this run is tracked. Type python -m src.explore {run_id}, so that its "
            "metrics and its manifest stay in step."
        )
    is_run = (place / rundir.SPEC).is_file()
    found = _explored(place / rundir.PROFILE if is_run else place, options)
    explored.write(place, found)
    print(f"{place / rundir.EXPLORER}: {_said(found)}")
    named = "" if is_run else " --workload NAME --variant NAME"
    print(f"Track it with: python -m src.ingest {place}{named}")
    return found


def _run(options: argparse.Namespace) -> Explored:
    """A tracked run, whose files are on this computer or are fetched for the time of it."""
    if "/" in options.what or not options.what.isalnum():
        raise UserError(
            f"{options.what}: neither a directory nor the id of a run. Type the path of a profile, "
            "or a RUN_ID as a run's page in MLflow shows it."
        )
    target = fetch.locate(options.root, options.uri)
    client = connect.connect(target)
    run = fetched.find(client, target, options.what)
    with tempfile.TemporaryDirectory() as scratch:
        directory = fetched.local_directory(run)
        if directory is None:
            directory = Path(scratch) / "run"
            fetched.fetch(client, target, run, directory)
        found = _explored(directory / rundir.PROFILE, options)
        added = late_metrics.add(client, target, run, directory, found)
    print(f"run {run.info.run_id}: {_said(found)}; {added} metrics added")
    lacks = run.data.tags.get("device_time_source") == "none"
    if lacks and any(one.device_time for one in found.sessions):
        print(
            "It had no Self NEURON. To have it from here: scripts/fetch_profile "
            f"{run.info.run_id} DIR and python -m src.ingest DIR, which tracks it once more."
        )
    return found


def _explored(profile: Path, options: argparse.Namespace) -> Explored:
    def say(words: str) -> None:
        print(words, file=sys.stderr)

    return explore.explore(profile, options.mode, options.timeout_s, on_session=say)


def _said(found: Explored) -> str:
    times = [one.device_time for one in found.sessions if one.device_time]
    said = f"{len(times)} of {len(found.sessions)} sessions read"
    if times:
        executions, busy_us = sum(t.executions for t in times), sum(t.busy_us for t in times)
        said += f", {executions} executions, {busy_us:,.1f} us busy"
    return said + (f", {len(found.engines)} engine metrics" if found.engines else "")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m src.explore",
        description="Let neuron-explorer read a profile that was captured: device time of each "
        "execution, and how busy the engines were.",
    )
    parser.add_argument("what", metavar="RUN_ID|DIR")
    parser.add_argument(
        "--mode",
        choices=(explore.SYSTEM, explore.FULL),
        default=explore.FULL,
        help="system: executions; full: the engines too (default)",
    )
    parser.add_argument(
        "--timeout-s", type=float, default=DEFAULT_S, help="for all of it; default 600"
    )
    fetch.add_store(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""The door for directories: `python -m src.ingest DIR` tracks a run directory, again or at last.

Or a profile that another script captured, which --workload and --variant name. Tracking without a
child: the same files, the same analysis, the same rules as run.py. Never deletes a directory
outside `pending`.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .errors import StoreError, ToolError, UserError
from .schema import Spec, TrackingConfig
from .track import connect, facts, foreign_spec, intake, janitor, outcome, redact, runs, store

REPOSITORY = Path(__file__).resolve().parents[1]


def main(typed: Sequence[str] | None = None) -> int:
    """Track each directory named on the command line; returns the exit code (see errors.py)."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    options = _parser().parse_args(typed)
    try:
        named = foreign_spec.named(options.workload, options.variant, options.tag)
        directories = _directories(options)
    except ToolError as error:
        print(redact.text(str(error)), file=sys.stderr)
        return error.exit_code
    codes = [0]
    for directory in directories:
        try:
            print(ingest(directory, options, named))
        except ToolError as error:
            print(redact.text(str(error)), file=sys.stderr)
            codes.append(error.exit_code)
        except OSError as error:
            said = error.strerror or str(error)
            print(f"{directory}: {said} ({error.filename}). It is as it was.", file=sys.stderr)
            codes.append(StoreError.exit_code)
        except KeyboardInterrupt:
            print(f"stopped; {directory} is as it was", file=sys.stderr)
            return 130
    return max(codes)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m src.ingest",
        description="Track run directories: those that a store could not take, those of "
        "tracking=none, or any run once more; and profiles that another script captured, which "
        "--workload and --variant name. A directory outside pending/ is copied, never moved.",
    )
    parser.add_argument("directories", nargs="*", type=Path, metavar="DIR")
    parser.add_argument("--workload", metavar="NAME", help="of a profile captured elsewhere")
    parser.add_argument("--variant", metavar="NAME", help="of a profile captured elsewhere")
    parser.add_argument(
        "--tag", action="append", default=[], metavar="NAME=VALUE", help="a tag for the run"
    )
    parser.add_argument("--pending", action="store_true", help="all that is left in pending/")
    parser.add_argument("--root", help="as tracking.root; default: the repository's mlruns/")
    parser.add_argument("--uri", help="as tracking.uri; default: what the run was made with")
    parser.add_argument("--experiment", help="as tracking.experiment; default: the run's own")
    parser.add_argument(
        "--allow-simulated",
        action="store_true",
        help="let simulated runs go to a tracking server",
    )
    parser.add_argument("--strict-names", action="store_true", help="replace : in metric names")
    return parser


def _directories(options: argparse.Namespace) -> list[Path]:
    if not options.directories and not options.pending:
        raise UserError(
            "python -m src.ingest: nothing to track. Type the path of a run directory, or "
            "--pending for all that are left in pending/."
        )
    found = list(options.directories)
    if options.pending:
        tracking = TrackingConfig(name="local", root=options.root)
        pending = store.locate(tracking, Path.cwd(), REPOSITORY).pending
        spooled = sorted(path for path in pending.glob("*") if path.is_dir())
        if not spooled:
            print(f"nothing is left in {pending}")
        found += spooled
    return found


def ingest(
    directory: Path, options: argparse.Namespace, named: foreign_spec.Named | None = None
) -> str:
    """Track one directory; returns the line that says where it is now."""
    arrival = intake.look_at(directory, named)
    spec = _retargeted(arrival.spec, directory, options)
    tracking = spec.config.tracking
    simulated = arrival.ready["device"] == "simulated"
    target = store.locate(tracking, Path.cwd(), REPOSITORY)
    store.check(target, simulated=simulated, allow_simulated=tracking.allow_simulated)
    if named is not None and named.tags:
        own = facts.tags(replace(spec, tags={}), arrival.ready, "") | arrival.tags()
        foreign_spec.refuse_reserved(named.tags, own)
    for name in arrival.changed:
        print(f"{directory}: not as its manifest.json says: {name}", file=sys.stderr)
    client = connect.connect(target)
    janitor.close_abandoned(client, target)
    ours, copied = intake.bring_in(arrival, target)
    try:
        result = outcome.conclude(ours, spec, arrival.error, killed=arrival.killed)
        run = runs.open_run(client, target, spec, arrival.ready, ours, arrival.tags())
        where = runs.close_run(run, result)
    except BaseException as error:
        if not copied:
            raise
        shutil.rmtree(ours, ignore_errors=True)
        if isinstance(error, StoreError):
            said = str(error).partition("\n")[0]
            raise StoreError(f"{said}\n{directory} is as it was.") from error
        raise
    said = f"simulated run {run.run_id}" if simulated else f"run {run.run_id}"
    return f"{directory}: {said}, {result.status}, in {where}"


def _retargeted(spec: Spec, directory: Path, options: argparse.Namespace) -> Spec:
    """Aim the specification at the store that the options name, or else its own."""
    old = spec.config.tracking
    spool = directory.resolve().parent
    own_root = str(spool.parent) if spool.name == store.PENDING else None
    tracking = replace(
        old,
        name="local",
        root=options.root or own_root,
        uri=options.uri or (None if options.root else old.uri),
        experiment=options.experiment or old.experiment,
        allow_simulated=old.allow_simulated or options.allow_simulated,
        strict_names=old.strict_names or options.strict_names,
    )
    return replace(spec, config=replace(spec.config, tracking=tracking))


if __name__ == "__main__":
    sys.exit(main())

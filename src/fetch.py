"""The door to a run's files: `scripts/fetch_profile RUN_ID [DEST]` brings them back, verified."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from .errors import StoreError, ToolError, UserError
from .schema import TrackingConfig
from .track import connect, fetched, redact, store

REPOSITORY = Path(__file__).resolve().parents[1]


def main(typed: Sequence[str] | None = None) -> int:
    """Fetch the run that the command line names; returns the exit code (see errors.py)."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    options = _parser().parse_args(typed)
    try:
        print(fetch(options))
    except ToolError as error:
        print(redact.text(str(error)), file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"{error.filename}: {error.strerror or error}", file=sys.stderr)
        return StoreError.exit_code
    except KeyboardInterrupt:
        print("stopped; nothing was fetched", file=sys.stderr)
        return 130
    return 0


def fetch(options: argparse.Namespace) -> str:
    """Bring one run's directory back; returns the line that says where it is."""
    target = locate(options.root, options.uri)
    client = connect.connect(target)
    run = fetched.find(client, target, options.run_id)
    place = options.dest or Path(run.info.run_id)
    count = fetched.fetch(client, target, run, place)
    return f"{place}: {count} files of run {run.info.run_id}, each as its manifest.json says"


def locate(root: str | None, uri: str | None) -> store.Store:
    """Return the store that is meant; UserError when there is none."""
    target = store.locate(TrackingConfig("local", root=root, uri=uri), Path.cwd(), REPOSITORY)
    if target.database is not None and not target.database.exists():
        raise UserError(
            f"{target.database}: there is no store. Type --root <the folder that the run was "
            "tracked in>, or --uri http://host:5000 for a server."
        )
    return target


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which store."""
    parser.add_argument("--root", help="as tracking.root; default: the repository's mlruns/")
    parser.add_argument("--uri", help="as tracking.uri, for a server")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/fetch_profile",
        description="Bring the complete directory of a tracked run back from its store, verified "
        "against its manifest: size, sha256 and number of files.",
    )
    parser.add_argument("run_id", metavar="RUN_ID", help="or its unique beginning")
    parser.add_argument("dest", nargs="?", type=Path, metavar="DEST", help="default: ./RUN_ID")
    add_store(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())

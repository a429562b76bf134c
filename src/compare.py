"""The door for comparing: `python -m src.compare --sweep ID` puts tracked runs side by side.

Reads the store with one search and no artifacts. With --fail-if-slower it is a gate for CI: exit
code 0, 1 for a regression, 3 when it cannot be said, 2 for a slip.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from .analyze import comparison_json, comparison_text, gate
from .analyze.comparison import Comparison, axis_of, compare
from .analyze.conditions import AXES
from .analyze.measured import Measured
from .errors import ToolError, UserError, nearest
from .schema import TrackingConfig
from .track import connect, query, redact, store

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

REPOSITORY = Path(__file__).resolve().parents[1]
RUN_ID = re.compile(r"[0-9a-f]{6,32}")
PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?%")


class _Parser(argparse.ArgumentParser):
    """Says a slip in one line; argparse would print its usage as well."""

    def error(self, message: str) -> NoReturn:
        typed = re.search(r"unrecognized arguments: (\S+)", message)
        options = [option for action in self._actions for option in action.option_strings]
        close = nearest(typed[1], options) if typed else None
        instead = f" Type {close}." if close else " --help lists what there is."
        raise UserError(f"python -m src.compare: {message}.{instead}")


def main(typed: Sequence[str] | None = None) -> int:
    """Compare what the command line names; returns the exit code."""
    try:
        return _main(typed)
    except ToolError as error:
        print(redact.text(str(error)), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def _main(typed: Sequence[str] | None) -> int:
    options = _parser().parse_args(typed)
    limit = _limit(options.fail_if_slower)
    if options.across is not None and options.across not in AXES:
        close = nearest(options.across, AXES) or AXES[0]
        raise UserError(
            f"--across {options.across}: one of {', '.join(AXES)} is wanted. Type --across {close}."
        )
    tracking = TrackingConfig(name="local", root=options.root, uri=options.uri)
    target = store.locate(tracking, Path.cwd(), REPOSITORY)
    if target.database is not None and not target.database.exists():
        raise UserError(
            f"There is no store at {target.database}. Type --root <the tracking.root of the runs>, "
            "or make a first run: python -m src.run"
        )
    client = connect.connect(target)
    runs, scope = _selected(client, target, options)
    baselines = _baselines(client, target, options, runs)
    # A gate must not change its meaning with the runs that it happens to find.
    guessed = axis_of(runs) if limit is None else "variant"
    found = compare(
        runs,
        across=options.across or guessed,
        baselines=baselines,
        allow_simulated=options.allow_simulated,
    )
    verdict = None
    if limit is not None:
        named = frozenset(run.run_id for run in baselines or ())
        verdict = gate.check(found, limit, named)
    _show(found, verdict, scope, options)
    return verdict.code if verdict else 0


def _show(
    found: Comparison, verdict: gate.Gate | None, scope: str, options: argparse.Namespace
) -> None:
    if options.html is not None:
        from .analyze.page import page

        try:
            options.html.write_text(page(found, f"Comparison of {scope}"), encoding="utf-8")
        except OSError as error:
            raise UserError(
                f"--html {options.html}: {error.strerror or error}. Type a file in a folder that "
                "exists and that you may write to."
            ) from None
    if options.json:
        print(json.dumps(comparison_json.as_data(found, verdict), indent=1, allow_nan=False))
        return
    print(f"Comparison of {scope}\n")
    print(comparison_text.text(found), end="")
    if options.html is not None:
        print(f"\nPage: {options.html}")
    for line in verdict.lines if verdict else ():
        print(line, file=sys.stderr if verdict and verdict.code else sys.stdout)


def _selected(
    client: MlflowClient, target: store.Store, options: argparse.Namespace
) -> tuple[list[Measured], str]:
    """The runs to compare, and what they are in words."""
    if options.runs:
        others = [f"--{key}" for key in ("sweep", "filter") if getattr(options, key)]
        if others:
            raise UserError(
                f"--runs beside {' and '.join(others)}: ids name the runs. Type one of them."
            )
        return query.by_ids(client, target, options.runs), f"{len(options.runs)} runs"
    parts = []
    if options.sweep:
        if not re.fullmatch(r"[\w.:-]+", options.sweep):
            raise UserError(f"--sweep {options.sweep!r}: not a sweep id. {_sweeps(client, target)}")
        parts.append(f"tags.sweep_id = '{options.sweep}'")
    if options.filter:
        parts.append(options.filter)
    found = query.search(client, target, " and ".join(parts), experiment=options.experiment)
    if options.sweep and not found:
        raise UserError(f"--sweep {options.sweep}: no run of it. {_sweeps(client, target)}")
    if not parts and options.experiment is None:
        scope, newest = query.newest_scope(found)
        return newest, scope or "nothing"
    said = [f"sweep {options.sweep}"] if options.sweep else []
    said += [f"experiment {options.experiment}"] if options.experiment else []
    said += [f"runs with {options.filter}"] if options.filter else []
    return found, ", ".join(said)


def _sweeps(client: MlflowClient, target: store.Store) -> str:
    runs = query.search(client, target)
    known = list(dict.fromkeys(run.sweep for run in runs if run.sweep))
    if not known:
        return f"There is no sweep in {target.shown_uri}. Make one: python -m src.run -m ..."
    return f"Type --sweep with one of {', '.join(known[:5])}."


def _baselines(
    client: MlflowClient, target: store.Store, options: argparse.Namespace, runs: list[Measured]
) -> list[Measured] | None:
    """The runs that --baseline names; a filter prefers the compared runs to all others."""
    typed = options.baseline
    if typed is None:
        return None
    if RUN_ID.fullmatch(typed):
        chosen = [run for run in runs if run.run_id.startswith(typed)]
        return chosen if len(chosen) == 1 else query.by_ids(client, target, [typed])
    if not re.search(r"[=<>]| (?:LIKE|IN|IS) ", typed, re.IGNORECASE):
        raise UserError(
            f"--baseline {typed!r}: neither the id of a run nor an MLflow filter. Type an id, or "
            f"for example --baseline \"params.variant = '{typed}'\"."
        )
    found = query.search(client, target, typed, experiment=options.experiment)
    shown = {run.run_id for run in runs}
    chosen = [run for run in found if run.run_id in shown] or found
    chosen = [run for run in chosen if run.finished] or chosen
    if not chosen:
        raise UserError(
            f"--baseline {typed!r}: no profile run matches. Type another filter, or a run's id."
        )
    return chosen


def _limit(typed: str | None) -> float | None:
    if typed is None:
        return None
    found = PERCENT.fullmatch(typed.strip())
    if not found:
        instead = f"{typed}%" if re.fullmatch(r"[0-9.]+", typed) else "5%"
        raise UserError(
            f"--fail-if-slower {typed}: a percentage is wanted. Type --fail-if-slower {instead}."
        )
    return float(found[1]) / 100


def _parser() -> _Parser:
    parser = _Parser(
        prog="python -m src.compare",
        description="Puts tracked runs side by side: times, speed-ups, operators, differences, "
        "verdicts. Without a selection: the newest sweep, or the newest run.",
        epilog="Exit codes: 0; with --fail-if-slower 1 for a regression and 3 when it cannot be "
        "said; 2 when what was typed cannot be done.",
    )
    parser.add_argument("--sweep", metavar="ID", help="the runs of one sweep")
    parser.add_argument("--experiment", metavar="NAME", help="the runs of one experiment")
    parser.add_argument("--runs", metavar="ID", nargs="+", help="these runs")
    parser.add_argument("--filter", metavar="FILTER", help="\"params.input.dtype = 'bfloat16'\"")
    parser.add_argument(
        "--baseline",
        metavar="RUN|FILTER",
        help="what the others are compared with (default: variant naive, else the first)",
    )
    parser.add_argument(
        "--across",
        metavar="AXIS",
        help=f"{'|'.join(AXES)}: what may differ (default: what does; variant with a gate)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write one interactive page")
    parser.add_argument("--root", help="as tracking.root; default: the repository's mlruns/")
    parser.add_argument("--uri", help="as tracking.uri")
    parser.add_argument(
        "--fail-if-slower", metavar="PERCENT", help="5%%: exit 1 when a run loses more"
    )
    parser.add_argument(
        "--allow-simulated", action="store_true", help="judge simulated runs, to test a pipeline"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

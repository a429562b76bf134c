"""How to look at a run in Neuron Explorer: which folder or pair to open, and the exact commands.

Called by track/outcome.py for the report. A simulated profile gets none: there is nothing in it for
Neuron software.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ..rundir import NEFF_PAIRS, PROFILE
from .markup import cell, grid

PROGRAM = "/opt/aws/neuron/bin/neuron-explorer"
UI_PORT, API_PORT = 3001, 3002
MOST_PAIRS = 10
TUNNEL = f"ssh -N -L {UI_PORT}:localhost:{UI_PORT} -L {API_PORT}:localhost:{API_PORT} USER@HOST"


def section(listed: Mapping[str, Any], system: Sequence[str]) -> str | None:
    """Return the report's part: `listed` is neff_pairs.json, `system` the folders with ntrace.pb.

    Folders are relative to profile/. None when there is nothing to look at.
    """
    files, pairs = listed.get("files") or {}, listed.get("pairs") or []
    if listed.get("device") == "simulated":
        if not files:
            return None
        return (
            "## Compiled graphs, simulated\n\n"
            f"{len(files)} simulated files stand for NEFFs and NTFFs ({NEFF_PAIRS}). They are JSON "
            "and cannot be opened in Neuron Explorer."
        )
    if not files and not system:
        return None
    parts = ["## In Neuron Explorer", _viewing(system, pairs)]
    if pairs:
        rows = [
            (
                f"`{cell(pair['neff'])}`",
                f"`{files[pair['neff']]['sha256'][:16]}`",
                ", ".join(f"`{cell(name)}`" for name in pair["ntffs"][:3])
                + (f" and {len(pair['ntffs']) - 3} more" if len(pair["ntffs"]) > 3 else ""),
                pair["how"],
            )
            for pair in pairs[:MOST_PAIRS]
        ]
        parts.append(grid(("NEFF (in profile/)", "sha256", "NTFF", "Matched"), rows, align="---"))
        if len(pairs) > MOST_PAIRS:
            parts.append(f"{len(pairs) - MOST_PAIRS} more pairs are in {NEFF_PAIRS}.")
    lonely = [name for name in listed.get("without_partner") or () if name.endswith(".ntff")]
    if lonely:
        parts.append(
            f"{len(lonely)} .ntff without a .neff in their folder, so they cannot be opened: the "
            "graph came from a cache (profiler.neff_cache_dir names it). The first: "
            f"`{cell(lonely[0])}`."
        )
    return "\n\n".join(parts)


def commands(system: Sequence[str], pairs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the shell lines, to be typed in the run's own folder, one after the other."""
    lines = [f"{PROGRAM} view --data-path ~/explorer --display-name runs --port {UI_PORT}"]
    upload = f"{PROGRAM} upload --endpoint http://localhost:{API_PORT}"
    if system:
        folder = shlex.quote(_below_profile(system[0]))
        lines.append(f"{upload} --profile-directory {folder} --name system --wait")
    if pairs:
        neff, ntff = (_below_profile(name) for name in (pairs[0]["neff"], pairs[0]["ntffs"][0]))
        lines.append(
            f"{upload} --neff {shlex.quote(neff)} --ntff {shlex.quote(ntff)} --name device --wait"
        )
    return lines


def _viewing(system: Sequence[str], pairs: Sequence[Mapping[str, Any]]) -> str:
    serve, *uploads = commands(system, pairs)
    what = []
    if system:
        what.append(
            "system profile: the complete directory, with its .neff and .ntff: "
            f"`{cell(_below_profile(system[0]))}`"
            + (f" (or another of the {len(system)} windows)" if len(system) > 1 else "")
        )
    if pairs:
        what.append("device profile: one .neff with its .ntff, from the table below")
    shown = "\n".join(
        [
            "# on the machine with the Neuron tools: the server, in a shell of its own",
            serve,
            "# there, in this run's folder (scripts/fetch_profile RUN_ID brings it)",
            *uploads,
            f"# on your computer, then open http://localhost:{UI_PORT}",
            TUNNEL,
        ]
    )
    listed = "\n".join(f"- {line}" for line in what)
    return (
        f"What to upload:\n\n{listed}\n\n```sh\n{shown}\n```\n\n"
        f"Both ports are needed: the page is on {UI_PORT} and asks {API_PORT} for its data."
    )


def _below_profile(name: str) -> str:
    return PROFILE if name == "." else f"{PROFILE}/{name}"

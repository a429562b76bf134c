"""A comparison for readers: plain text for the terminal, Markdown for MLflow's descriptions.

Called by compare.py, track/summary_run.py and page.py. Microseconds of one step; what is missing
is a dash, and a table with simulated runs says so in its first line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from . import conditions, verdict
from .aligning import OperatorChange
from .comparison import Comparison, Grid, Group, Row, grid, operators
from .markup import NONE, count, number
from .markup import text as escaped

SIMULATED_LINE = (
    "SIMULATED: device times come from a cost model, host times are one computer's Python. "
    "Neither is a measurement of Trainium."
)
HEADER = ("Run", "NEURON time (us)", "Self CPU (us)", "Operator calls", "Speed-up", "Verdict")
NUMBER = re.compile(r"(sim )?[+-]?[\d.,]+(x|$| \()")
LONGEST_CELL = 48
MOST_OPERATORS = 12
MOST_PAIRS = 4  # operator tables in text; the page and the JSON have all


@dataclass(frozen=True)
class Table:
    """Cells as text."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def text(comparison: Comparison) -> str:
    """Lay everything out for a terminal."""
    return "\n\n".join(_parts(comparison, _plain)) + "\n"


def markdown(comparison: Comparison) -> str:
    """The same as Markdown; foreign text cannot format anything."""
    return "\n\n".join(markdown_parts(comparison)) + "\n"


def markdown_parts(comparison: Comparison) -> list[str]:
    """The Markdown, table by table, so that a reader with little room can take whole ones."""
    return _parts(comparison, _grid)


def markdown_of(group: Group) -> str:
    """One group's table as Markdown, for a text that says itself what is simulated."""
    return _grid(group_table(group))


def _parts(comparison: Comparison, lay: Callable[[Table], str]) -> list[str]:
    parts = [SIMULATED_LINE] if comparison.simulated else []
    parts += [lay(table) for table in tables(comparison)]
    return parts if comparison.groups else ["There is no run to compare."]


def tables(comparison: Comparison) -> list[Table]:
    """Every table of the comparison, in the order in which they are read."""
    found = [group_table(group) for group in comparison.groups]
    laid = grid(comparison)
    if laid:
        found.append(grid_table(laid))
    found += [operator_table(row) for row in pairs(comparison)[:MOST_PAIRS]]
    differing = difference_table(comparison)
    return [*found, differing] if differing else found


def pairs(comparison: Comparison) -> list[Row]:
    """The rows worth a look operator by operator: the fastest of each group, or the only one."""
    fastest = [group.fastest() for group in comparison.groups]
    return [row for row in fastest if row is not None and operators(row)]


def group_table(group: Group) -> Table:
    """The published kind of table: a run a line."""
    rows, notes = [], []
    labels = [row.label for row in group.rows]
    for row in group.rows:
        label = row.label if labels.count(row.label) == 1 else f"{row.label} {row.run.short_id}"
        device_us, host_us, calls = row.headline
        rows.append(
            (
                ("sim " if row.run.simulated else "") + label,
                number(device_us),
                number(host_us),
                count(calls),
                speedup(row),
                word(row),
            )
        )
        if not row.is_baseline:
            notes.append(f"{label}: {row.verdict.word}: {row.verdict.reason}")
    return Table(group.title, HEADER, tuple(rows), tuple(_merged(notes)))


def _merged(notes: Sequence[str]) -> list[str]:
    """Say a reason that many runs share once."""
    by_reason: dict[str, list[str]] = {}
    for note in notes:
        label, _, rest = note.partition(": ")
        by_reason.setdefault(rest, []).append(label)
    return [f"{', '.join(labels)}: {rest}" for rest, labels in by_reason.items()]


def word(row: Row) -> str:
    """The verdict, or that the row is what the others are compared with."""
    return verdict.BASELINE if row.is_baseline else row.verdict.word


def grid_table(laid: Grid) -> Table:
    """Times over inputs and variants, with the speed-up over the baseline."""
    rows = [(name, *map(_cell, cells)) for name, cells in laid.rows]
    title = "NEURON time (us) by input and variant, with the speed-up"
    return Table(title, ("Input", *laid.columns), tuple(rows))


def _cell(row: Row | None) -> str:
    if row is None or row.run.device_us is None:
        return NONE
    ratio = "" if row.is_baseline or row.speedup is None else f" ({speedup(row)})"
    mark = "sim " if row.run.simulated else ""
    return f"{mark}{number(row.run.device_us)}{ratio}"


def operator_table(row: Row) -> Table:
    """What changed operator by operator, the largest saving first."""
    changes = operators(row)
    shown = changes[:MOST_OPERATORS]
    assert row.baseline is not None
    before, after = row.baseline.variant, row.run.variant
    if before == after:
        before, after = row.baseline.short_id, row.run.short_id
    more = len(changes) - len(shown)
    mark = "sim " if row.run.simulated else ""
    where = f"{mark}{row.run.workload} {row.run.input}"
    return Table(
        f"Operators, {where}: {after} against {before}",
        (f"{before}", f"{after}", f"{before} (us)", f"{after} (us)", "Saved (us)"),
        tuple(_operator_cells(change) for change in shown),
        (f"{more} more in comparison.json",) if more > 0 else (),
    )


def _operator_cells(change: OperatorChange) -> tuple[str, ...]:
    return (
        " + ".join(change.before) or NONE,
        " + ".join(change.after) or NONE,
        number(change.before_us),
        number(change.after_us),
        f"{change.saved_us:+,.1f}",
    )


def difference_table(comparison: Comparison) -> Table | None:
    """What differs in configuration and environment beside the axis; None when nothing does."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in comparison.rows:
        if row.baseline is None or row.is_baseline:
            continue
        for differing in conditions.all_differences(row.baseline, row.run, comparison.across):
            key = (differing.name, differing.before, differing.after)
            found.setdefault(key, []).append(row.label)
    if not found:
        return None
    cells = [(*key, ", ".join(dict.fromkeys(labels))) for key, labels in found.items()]
    title = f"What differs beside the {comparison.across}"
    return Table(title, ("Setting", "Baseline", "Run", "In"), tuple(cells))


def speedup(row: Row) -> str:
    """As 5.56x; a dash where the two must not be compared."""
    return NONE if row.speedup is None else f"{row.speedup:.2f}x"


def short(cell: str, longest: int = LONGEST_CELL) -> str:
    """One line of at most `longest` characters."""
    cell = " ".join(cell.split())
    return cell if len(cell) <= longest else cell[: longest - 3] + "..."


def _plain(table: Table) -> str:
    cells = [tuple(short(cell) for cell in row) for row in (table.header, *table.rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.header))]
    left = _left(table)
    lines = [
        "  ".join(
            cell.ljust(width) if is_left else cell.rjust(width)
            for cell, width, is_left in zip(row, widths, left, strict=True)
        ).rstrip()
        for row in cells
    ]
    rule = "  ".join("-" * width for width in widths)
    notes = [f"  {short(note, 400)}" for note in table.notes]
    return "\n".join([short(table.title, 160), lines[0], rule, *lines[1:], *notes])


def _grid(table: Table) -> str:
    rule = tuple("---" if is_left else "---:" for is_left in _left(table))
    rows = [tuple(escaped(short(cell, 200)) for cell in row) for row in (table.header, *table.rows)]
    lines = [f"| {' | '.join(cells)} |" for cells in (rows[0], rule, *rows[1:])]
    notes = [f"- {escaped(note)}" for note in table.notes]
    parts = [f"**{escaped(short(table.title, 300))}**", "\n".join(lines)]
    return "\n\n".join([*parts, *(["\n".join(notes)] if notes else [])])


def _left(table: Table) -> list[bool]:
    """Which columns are aligned to the left: the first, and those that are no numbers."""
    columns = range(len(table.header))
    return [not column or _is_text(row[column] for row in table.rows) for column in columns]


def _is_text(cells: Iterable[str]) -> bool:
    return not all(cell == NONE or NUMBER.match(cell) for cell in cells)

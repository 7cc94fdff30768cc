"""The table of docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.table import Table

from benchmarks.machine import Machine
from benchmarks.peers.peer import Load, Row
from benchmarks.report import DOCS, markdown_row, replace_part

COMMAND = "python -m benchmarks.peers --write"
BEGIN = f"<!-- peers: begin, written by `{COMMAND}` -->"
END = "<!-- peers: end -->"
FIGURES = {
    Load.BULK: "bulk push",
    Load.MANY: "64 callers, one job a call",
    Load.SINGLE: "one after another",
    Load.DRAIN: "drain",
}
HEADS = ["system", "durability", "syncs a push", *FIGURES.values()]


def sorted_rows(rows: Sequence[Row]) -> list[Row]:
    """Those whose pushes are on disk when they are answered, then the others, then those without
    figures; each by what 64 callers push.
    """

    def place(row: Row) -> tuple[bool, bool, float]:
        return bool(row.failed), not row.is_synced, -row.rates.get(Load.MANY, 0.0)

    return sorted(rows, key=place)


def cells(row: Row) -> list[str]:
    """A row as people read it."""
    about = [row.system, row.durability]
    if row.failed:
        return [*about, "", row.failed, *[""] * (len(FIGURES) - 1)]
    return [*about, _syncs(row.syncs), *(_rate(row.rates.get(load)) for load in FIGURES)]


def _syncs(syncs: float | None) -> str:
    return "not counted" if syncs is None else f"{syncs:.2f}"


def _rate(rate: float | None) -> str:
    """Three digits: no more than a repeat would confirm."""
    if rate is None:
        return "–"
    step = 10 ** max(0, len(str(int(rate))) - 3)
    return f"{round(rate / step) * step:,}"


def shown(rows: Sequence[Row]) -> Table:
    """All rows on a terminal."""
    table = Table(title="Jobs a second", title_justify="left")
    for head in HEADS:
        table.add_column(head, justify="left" if head in HEADS[:2] else "right")
    for row in sorted_rows(rows):
        table.add_row(*cells(row), style="red" if row.failed else None)
    return table


def markdown(rows: Sequence[Row], machine: Machine) -> str:
    """The same, with where and when, as it stands in the docs."""
    ordered = sorted_rows(rows)
    lines = [
        f"Measured {datetime.now(UTC):%-d %B %Y} by `{COMMAND}`: jobs a second.",
        "",
        *["| machine | |", "|---|---|"],
        *(markdown_row(pair) for pair in machine.lines()),
        "",
        markdown_row(HEADS),
        "|---|---|" + "--:|" * (len(HEADS) - 2),
        *(markdown_row(cells(row)) for row in ordered),
        "",
        *["| system | version | bulk push |", "|---|---|---|"],
    ]
    versions = {(row.system, row.version, row.bulk): row for row in ordered if not row.failed}
    lines += [
        markdown_row([system, version, bulk or "has none"]) for system, version, bulk in versions
    ]
    return "\n".join(lines)


def write(rows: Sequence[Row], machine: Machine, path: Path = DOCS) -> None:
    """Keeps the table in the docs."""
    replace_part(path, markdown(rows, machine), BEGIN, END)

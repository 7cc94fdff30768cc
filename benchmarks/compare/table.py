"""What is shown: a line per row as it is measured, and the table, in Markdown where it is piped."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from benchmarks.compare.pairs import NotCompared, Outcome
from benchmarks.compare.rows import Row
from benchmarks.compare.verdict import Comparison, Judge, Speed, Verdict
from benchmarks.figures import shown

Shown = Outcome | tuple[Row, NotCompared]

STYLES = {Verdict.SLOWER: "red", Verdict.FASTER: "green"}


def cells(shown_row: Shown) -> list[str]:
    """Number, what, the other's figure, this tree's, both ratios, the verdict."""
    if isinstance(shown_row, tuple):
        row, error = shown_row
        why = " ".join(str(error).split())
        return [row.number, row.what, "", "", "", "", f"not compared: {why[:160]}"]
    row, found = shown_row.row, shown_row.comparison
    said = str(shown_row.verdict)
    if shown_row.first is not None:
        said += f" (measured twice; first {_first(shown_row.first)})"
    return [
        row.number,
        row.what,
        shown(found.there, row.unit),
        shown(found.here, row.unit),
        _speed(found.figure, found.judge is Judge.FIGURE),
        _speed(found.processor, found.judge is Judge.PROCESSOR),
        said,
    ]


def _first(comparison: Comparison) -> str:
    parts = [_speed(comparison.figure, False), _speed(comparison.processor, False)]
    return ", ".join(part for part in parts if part)


def _speed(speed: Speed | None, is_judge: bool) -> str:
    """A ratio and its spread; a star at the one that repeats best."""
    if speed is None:
        return ""
    return f"{speed.median:.2f} ± {speed.spread:.2f}{' *' if is_judge else ''}"


def heads(other: str, here: str) -> list[str]:
    """The names of the columns."""
    return ["#", "what", other, here, "figure", "processor", "verdict"]


def legend(pairs: int) -> str:
    """How the table is read."""
    return (
        f"Ratios are speeds, this tree's over the other's: above 1 is faster. Medians of {pairs}"
        " pairs, ± half the distance between their quartiles. figure: the rate, time or size;"
        " processor: its time per job or call; * repeats best and judges the row."
    )


def rich_table(names: list[str], rows: Sequence[Shown]) -> Table:
    """For a terminal."""
    table = Table(title_justify="left")
    for name in names:
        table.add_column(name, justify="left" if name in ("#", "what", "verdict") else "right")
    for row in rows:
        style = "yellow" if isinstance(row, tuple) else STYLES.get(row.verdict)
        table.add_row(*cells(row), style=style)
    return table


def markdown(names: list[str], rows: Sequence[Shown]) -> str:
    """For a file, or a text that shows it."""
    lines = [names, ["---", "---", "--:", "--:", "--:", "--:", "---"], *map(cells, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

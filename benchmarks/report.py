"""Figures as people see them: a table on the terminal, and the same in docs and README."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figures import Figure, shown, shown_target
from benchmarks.machine import Machine

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs" / "benchmarks.md"
README = ROOT / "README.md"
BEGIN = "<!-- figures: begin, written by `python -m benchmarks --write` -->"
END = "<!-- figures: end -->"
# The table of the long benchmarks, which are also run by themselves.
BEGIN_LONG = "<!-- long figures: begin, written by `python -m benchmarks --write` -->"
END_LONG = "<!-- long figures: end -->"
COMMAND = "python -m benchmarks --write"

# What the README shows, by number and the beginning of what was measured: the figures that people
# ask for first, with the one-at-a-time figure beside the batched ones.
README_ROWS = (
    ("P1", "push, 1,000 plain jobs"),
    ("P1", "push, 10,000 plain jobs"),
    ("P2", "push, 1,000 jobs with options"),
    ("P3", "pull 1,000"),
    ("P3", "one stream"),
    ("P4", ""),
    ("P5", ""),
    ("P6", "AsyncClient.push"),
    ("P7", ""),
    ("P8", ""),
)
TRANSPORT_OF_README = ", native"


def verdict(figure: Figure) -> str:
    """What is said about a figure."""
    if figure.met is None:
        return ""
    return "reached" if figure.met else "missed"


def show(console: Console, machine: Machine) -> None:
    """The machine, before anything is measured."""
    for name, value in machine.lines():
        console.print(f"[dim]{name:>10}[/dim]  {value}", highlight=False)


def table(figures: Sequence[Figure]) -> Table:
    """All figures."""
    shown_table = Table(title="Jobline on this machine", title_justify="left")
    for name in ("#", "what", "figure", "target", "ratio", "verdict"):
        shown_table.add_column(name, justify="right" if name in ("figure", "target") else "left")
    number = ""
    for figure in figures:
        if figure.number != number:
            shown_table.add_section()
        shown_table.add_row(*_cells(figure), style="red" if figure.met is False else None)
        number = figure.number
    return shown_table


def line(figure: Figure) -> str:
    """One figure as soon as it is measured."""
    number, what, value, target, said, judged = _cells(figure)
    against = " · ".join(part for part in (target, said, judged) if part)
    return f"{number:>4}  {what}: [bold]{value}[/bold]" + (f"  ({against})" if against else "")


def _cells(figure: Figure) -> list[str]:
    said = "; ".join(part for part in (figure.ratio, figure.note) if part)
    return [
        figure.number,
        figure.what,
        shown(figure.value, figure.unit),
        shown_target(figure.target, figure.unit),
        said,
        verdict(figure),
    ]


def write(figures: Sequence[Figure], machine: Machine) -> list[Path]:
    """Keeps figures in the docs, and in the README where it has a place for them."""
    written = [DOCS]
    replace_part(DOCS, _docs_part(figures, machine, COMMAND), BEGIN, END)
    if README.exists() and BEGIN in README.read_text():
        replace_part(README, _readme_part(figures, machine), BEGIN, END)
        written.append(README)
    return written


def write_long(figures: Sequence[Figure], machine: Machine, only: str) -> list[Path]:
    """Keeps the figures of the long benchmarks in the docs; `only` are those asked for by name."""
    command = f"{COMMAND} --only {only}" if only else COMMAND
    replace_part(DOCS, _docs_part(figures, machine, command), BEGIN_LONG, END_LONG)
    return [DOCS]


def _docs_part(figures: Sequence[Figure], machine: Machine, command: str) -> str:
    about = [f"Measured {datetime.now(UTC):%-d %B %Y} by `{command}`.", ""]
    about += ["| machine | |", "|---|---|"]
    about += [f"| {name} | {value} |" for name, value in machine.lines()]
    head = ["", "| # | what | figure | target | ratio | verdict |", "|---|---|--:|--:|---|---|"]
    return "\n".join([*about, *head, *(markdown_row(_cells(figure)) for figure in figures)])


def _readme_part(figures: Sequence[Figure], machine: Machine) -> str:
    rows = [
        markdown_row([figure.what.removesuffix(TRANSPORT_OF_README), _cells(figure)[2]])
        for number, start in README_ROWS
        for figure in figures
        if figure.number == number
        and figure.what.startswith(start)
        and TRANSPORT_OF_README in figure.what
    ]
    about = (
        f"Every push and ack on disk (`synchronous=FULL`, fsync {machine.fsync_p50 * 1e6:.0f} µs)"
        f" before it is answered; payload 100 bytes; server on one core of {machine.processor}."
    )
    return "\n".join([about, "", "| what | figure |", "|---|--:|", *rows])


def markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def replace_part(path: Path, part: str, first: str, last: str) -> None:
    """Puts a part between two lines of a file."""
    before, begin, rest = path.read_text().partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"{path} has no place for figures: a line {first!r} and a line {last!r}")
    path.write_text(f"{before}{first}\n{part}\n{last}{after}")

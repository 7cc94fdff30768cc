"""What a command prints: tables for people, JSON for programs, notes on stderr.

Data goes to stdout, everything else to stderr, so that a pipe carries only data. With `--json` a
command prints one document, or one line an item. Text that came from a server is never taken for
markup or terminal codes.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TextIO, TypeVar

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from jobline._printable import printable

T = TypeVar("T")
# Rows whose columns are aligned; a longer list goes on below them, without the titles.
_ROWS = 1_000
# Wide enough that nothing is cut when a table goes through a pipe.
PIPE_WIDTH = 240
# Between two columns; what a column that yields keeps; what one that does not may keep from it.
_GAP = 2
_CELLS_MIN = 8
_CELLS_MAX = 32


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column of a table: its title, what it shows of an item, and how. It is left out where the
    terminal has fewer than `from_width` characters a line. One that `yields` is cut to what the
    others leave; numbers and ids, which are aligned to the `right`, are never cut.
    """

    title: str
    shown: Callable[[T], str]
    right: bool = False
    style: str = ""
    from_width: int = 0
    yields: bool = False


class _Console(Console):
    """A console that leaves a closed pipe to the command: rich would end the process with 1."""

    def on_broken_pipe(self) -> None:
        """Says so, as any other file does."""
        raise BrokenPipeError


class _Notes(Console):
    """What is said on stderr, which may have no reader or no room: no reason to fail."""

    def print(self, *objects: Any, **how: Any) -> None:
        """Prints, or falls silent for good."""
        try:
            super().print(*objects, **how)
        except OSError:
            fall_silent(sys.stderr)

    def on_broken_pipe(self) -> None:
        """Says so, as any other file does."""
        raise BrokenPipeError


class Output:
    """Where a command prints."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        width = None if sys.stdout.isatty() else PIPE_WIDTH
        # No emoji: `:x:` in a job's words, or in a filter, is what it is.
        self.console = _Console(width=width, highlight=False, soft_wrap=False, emoji=False)
        self.notes = _Notes(stderr=True, highlight=False, emoji=False)

    def document(self, value: Any, shown: RenderableType) -> None:
        """One thing: a JSON document, or what is shown to a person."""
        if self.as_json:
            self.line(value)
        else:
            self.console.print(printable(shown) if isinstance(shown, str) else shown)

    def line(self, value: Any) -> None:
        """One line of JSON, at once, so that a reader of the pipe need not wait."""
        sys.stdout.write(json.dumps(value, ensure_ascii=_is_narrow(), separators=(",", ":")) + "\n")
        sys.stdout.flush()

    def items(
        self,
        items: Iterable[T],
        to_json: Callable[[T], Any],
        columns: list[Column[T]],
        *,
        none: str | Callable[[], str] = "Nothing there.",
        limit: int = 0,
        narrower: str = "--limit",
    ) -> int:
        """Many things: a line of JSON each, or a table; returns how many. With a `limit` the first
        ones; where there are more, it says so, and what shows them.
        """
        left = iter(items)
        count = self._shown(islice(left, limit or None), to_json, columns, none)
        if limit and count == limit and next(left, None) is not None:
            self.warn(f"The first {limit:,}, and there are more: {narrower}.")
        return count

    def _shown(
        self,
        items: Iterable[T],
        to_json: Callable[[T], Any],
        columns: list[Column[T]],
        none: str | Callable[[], str],
    ) -> int:
        if self.as_json:
            count = 0
            for item in items:
                self.line(to_json(item))
                count += 1
            return count
        count, left = 0, iter(items)
        # A million rows at once would be silent for minutes, and in memory.
        while page := list(islice(left, _ROWS)):
            shown = table(page, columns, width=self.console.width)
            shown.show_header = not count
            self.console.print(shown)
            count += len(page)
        if not count:
            self.note(none if isinstance(none, str) else none())
        return count

    def note(self, text: str, style: str = "dim") -> None:
        """A remark for a person, on stderr; none with `--json`."""
        if not self.as_json:
            self.notes.print(Text(printable(text), style=style))

    def warn(self, text: str) -> None:
        """A remark that counts for programs, too: on stderr, with `--json` a line of it."""
        if self.as_json:
            self.notes.print(json.dumps({"warning": text}), markup=False, soft_wrap=True)
        else:
            self.note(text)

    @contextmanager
    def progress(self, title: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """A bar on stderr while something lasts; call what it yields with how much was done."""
        if self.as_json or not self.notes.is_terminal:
            yield lambda _done: None
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeRemainingColumn(), console=self.notes, transient=True) as bar:
            task = bar.add_task(title, total=total)
            yield lambda done: bar.advance(task, done)


def table(items: Iterable[T], columns: list[Column[T]], width: int = PIPE_WIDTH) -> Table:
    """A table of items, a row and a line each, as wide as `width` characters."""
    columns = [column for column in columns if column.from_width <= width]
    rows = [[Text(one_line(column.shown(item))) for column in columns] for item in items]
    needed = [
        max([cell_len(column.title), *(row[place].cell_len for row in rows)])
        for place, column in enumerate(columns)
    ]
    kept = sum(
        _GAP + (0 if column.yields else min(cells, _CELLS_MAX))
        for column, cells in zip(columns, needed, strict=True)
    )
    left = max(width - kept, _CELLS_MIN)
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column, cells in zip(columns, needed, strict=True):
        shown.add_column(
            column.title,
            justify="right" if column.right else "left",
            style=column.style,
            no_wrap=column.right or column.yields,
            min_width=cells if column.right else None,
            max_width=left if column.yields else None,
        )
    for row in rows:
        shown.add_row(*row)
    return shown


def in_lines(facts: Iterable[Text], width: int) -> list[Text]:
    """Fills lines with facts; none is broken."""
    lines: list[Text] = []
    for fact in facts:
        if lines and lines[-1].cell_len + _GAP + fact.cell_len <= width:
            lines[-1].append(" " * _GAP).append_text(fact)
        else:
            lines.append(fact.copy())
    return lines


def pairs(rows: Iterable[tuple[str, str]]) -> Table:
    """Names and values, a line each; those without a value are left out."""
    shown = Table(box=None, show_header=False, pad_edge=False)
    shown.add_column(style="dim")
    shown.add_column(overflow="fold")
    for name, value in rows:
        if value:
            shown.add_row(name, Text(printable(value)))
    return shown


def counted(count: int, what: str) -> str:
    """So many of them: `1 job`, `2,000 jobs`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def fall_silent(stream: TextIO | None = None) -> None:
    """Has stdout, or another stream, drop the rest: it has no reader, or no room. Without this the
    interpreter complains while it ends.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())


def speak_narrow() -> None:
    """Has a stdout that cannot encode a character write `?` in its place instead of failing."""
    if _is_narrow() and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _is_narrow() -> bool:
    return not (sys.stdout.encoding or "").lower().startswith("utf")


def one_line(text: str) -> str:
    """The text in one line, as a cell of a table holds it."""
    return printable(" ".join(text.split()) if any(char in text for char in "\n\r\t") else text)

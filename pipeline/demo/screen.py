"""What the demo shows: lines and a bar while it runs, tables at its end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from demo.counted import Difference, Totals

# Where there is no terminal, lines are as long as they need to be, and progress is told in parts.
_WIDTH_WITHOUT_TERMINAL = 120
_PARTS = 4


class Screen:
    """Shows what happens on stdout."""

    def __init__(self) -> None:
        width = None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL
        self.console = Console(highlight=False, width=width)

    def say(self, text: str, style: str = "") -> None:
        """Prints a line."""
        self.console.print(Text(text, style=style))

    def title(self, text: str) -> None:
        """Prints a line that begins something."""
        self.console.print()
        self.say(text, "bold")

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[[float], None]]:
        """Shows a bar, or a line for each quarter; yields what is told how far it is, 0 … 1."""
        if not self.console.is_terminal:
            self.say(what)
            told = 0

            def tell_parts(share: float) -> None:
                nonlocal told
                if (part := int(share * _PARTS)) > told:
                    told = part
                    self.say(f"{part / _PARTS:.0%} of the time", "dim")

            yield tell_parts
            return
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console, transient=True) as bar:
            task = bar.add_task(what, total=1.0)
            yield lambda share: bar.update(task, completed=min(share, 1.0))

    def table(self, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
        """Prints rows; `columns` maps what is shown to its title."""
        shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for name, title in columns.items():
            is_number = any(isinstance(row[name], int | float) for row in rows)
            shown.add_column(title, justify="right" if is_number else "left", overflow="fold")
        for row in rows:
            shown.add_row(*(Text(_shown(name, row[name])) for name in columns))
        self.console.print(shown)

    def totals(self, server: Mapping[str, Totals]) -> None:
        """Prints what the server counted."""
        rows = [
            {"queue": queue, **{name: getattr(each, name) for name in Totals.__slots__}}
            for queue, each in server.items()
        ]
        self.table(rows, {"queue": "queue", **{n: n.replace("_", " ") for n in Totals.__slots__}})

    def verdict(self, found: Sequence[Difference], totals: int) -> None:
        """Prints whether the tables say what the server counted."""
        if not found:
            self.say(
                f"All {totals} totals of the tables are those of the server's own counters.",
                "bold green",
            )
            return
        self.say(
            f"{len(found)} totals of the tables differ from the server's counters:", "bold red"
        )
        for each in found:
            self.say(
                f"  {each.queue} {each.what}: {each.server:,} counted, {each.tables:,} in tables",
                "red",
            )


def _shown(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.1%}" if name.endswith(("rate", "share", "before")) else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)

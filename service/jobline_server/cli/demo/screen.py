"""The demo's output: a live table on a terminal, plain lines elsewhere, results at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

# Without a terminal, one line is printed for each of this many parts of the work.
_PLAIN_PARTS = 10
_LINES_WITHOUT_TERMINAL = 24
_WIDTH_WITHOUT_TERMINAL = 120
# Lines of a screen around the table of results.
_LINES_AROUND = 14
_SHA256_SHOWN = 12
_WIDTH_FOR_SHA256 = 80
_PROBLEMS_SHOWN = 20
_LOG_LINES_SHOWN = 20


@dataclass(slots=True)
class WorkerRow:
    """The state of a worker, by the journal."""

    name: str
    begun: int = 0
    finished: int = 0
    payload_bytes: int = 0
    doing: str = "starting"
    killed: bool = False


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A file, the result of a worker, and whether it is right."""

    path: str
    size: int
    sha256: str
    worker: str
    reason: str
    verdict: str


class Screen:
    """Shows the progress and the results."""

    def __init__(self, total: int, tree: Path) -> None:
        width = None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL
        self.console = Console(highlight=False, width=width)
        self._total = total
        self._tree = tree
        self._live: Live | None = None
        self._parts_shown = 0

    def running(self) -> AbstractContextManager[object]:
        """Shows the live table for the length of the block."""
        if not self.console.is_terminal:
            return nullcontext()
        self._live = Live(console=self.console, refresh_per_second=10, transient=True)
        return self._live

    def say(self, text: str, style: str = "") -> None:
        """Prints a line."""
        self.console.print(Text(text, style=style))

    def update(self, workers: Iterable[WorkerRow], *, pushed: int, ended: int) -> None:
        """Updates the progress."""
        if self._live is not None:
            self._live.update(self._view(workers, pushed, ended))
            return
        part = ended * _PLAIN_PARTS // self._total
        if part > self._parts_shown:
            self._parts_shown = part
            each = ", ".join(f"{row.name} {row.finished}" for row in workers)
            self.say(f"{ended:>6,} of {self._total:,} done ({each})")

    def _view(self, workers: Iterable[WorkerRow], pushed: int, ended: int) -> RenderableType:
        shown = Table(box=None, pad_edge=False, header_style="bold")
        for title, right in (("worker", False), ("files", True), ("MiB", True), ("doing", False)):
            shown.add_column(title, justify="right" if right else "left", no_wrap=True)
        for row in workers:
            doing = "killed" if row.killed else self.short(row.doing)
            shown.add_row(
                row.name,
                f"{row.finished:,}",
                f"{row.payload_bytes / (1 << 20):,.1f}",
                Text(doing),
                style="red" if row.killed else "",
            )
        bar = ProgressBar(total=self._total, completed=ended)
        head = f"{pushed:,} of {self._total:,} pushed, {ended:,} done"
        return Group(Text(head), bar, "", shown)

    def results(self, rows: list[ResultRow]) -> None:
        """Prints the table of results, cut to a screenful."""
        height = self.console.size.height - _LINES_AROUND
        room = max(height if self.console.is_terminal else _LINES_WITHOUT_TERMINAL, 6)
        chosen, left_out = screenful(rows, room)
        titles = ["size", "worker", "handed out", ""]
        cells = [[f"{row.size:,}", row.worker, row.reason.lower(), row.verdict] for row in chosen]
        if self.console.width >= _WIDTH_FOR_SHA256:
            titles.insert(1, "sha256")
            for row, line in zip(chosen, cells, strict=True):
                line.insert(1, row.sha256[:_SHA256_SHOWN])
        # The path takes the rest of the width; the table alone would cut all columns alike.
        widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
        room_for_path = max(self.console.width - sum(width + 1 for width in widths), 8)
        shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        shown.add_column("path", overflow="ellipsis", no_wrap=True, max_width=room_for_path)
        for title, width in zip(titles, widths, strict=True):
            justify: JustifyMethod = "right" if title == "size" else "left"
            shown.add_column(title, justify=justify, no_wrap=True, min_width=width)
        for row, (*line, verdict) in zip(chosen, cells, strict=True):
            style = "green" if verdict == "right" else "bold red"
            shown.add_row(Text(self.short(row.path)), *line, Text(verdict, style=style))
        self.console.print(shown)
        if left_out:
            self.say(f"… and {left_out:,} more", "dim")

    def totals(
        self, rows: list[ResultRow], *, took: float, killed: list[str], taken_over: int
    ) -> None:
        """Prints the sums, and what became of the killed worker's jobs."""
        size = sum(row.size for row in rows) / (1 << 20)
        self.say(f"\n{len(rows):,} files, {size:,.1f} MiB in {took:.1f} s", "bold")
        done = Counter(row.worker for row in rows if row.worker)
        self.say(", ".join(f"{name} {count:,}" for name, count in sorted(done.items())))
        for name in killed:
            again = sum(row.reason == "STALLED" for row in rows)
            self.say(
                f"{name} was killed with {taken_over:,} files begun; {again:,} jobs that it had "
                "were done by others"
            )

    def verdict(self, problems: list[str], *, calls: int, hand_outs: int) -> None:
        """Prints whether all guarantees held."""
        if not problems:
            self.say(
                f"Every checksum is right. The journal of {calls:,} pushes and {hand_outs:,} "
                "hand-outs shows no job lost, none handed out twice under one delivery.",
                "bold green",
            )
            return
        self.say(f"{len(problems):,} problems:", "bold red")
        for problem in problems[:_PROBLEMS_SHOWN]:
            self.say(f"  {problem}", "red")

    def short(self, path: str) -> str:
        """Returns a path relative to the tree."""
        found = Path(path)
        return str(found.relative_to(self._tree)) if found.is_relative_to(self._tree) else path


def screenful(rows: list[ResultRow], room: int) -> tuple[list[ResultRow], int]:
    """Returns as many rows as fit, and how many were left out. Prefers wrong rows, then those that
    took more than one hand-out.
    """
    if len(rows) <= room:
        return rows, 0
    ranked = sorted(rows, key=lambda row: (row.verdict == "right", row.reason == "FIRST"))
    chosen = set(map(id, ranked[:room]))
    return [row for row in rows if id(row) in chosen], len(rows) - room


def say_failure(why: str, folder: Path) -> None:
    """Prints why the demo failed, and the last lines of the logs."""
    console = Console(stderr=True, highlight=False)
    console.print(Text(f"the demo failed: {why}", style="bold red"))
    for log in sorted(folder.glob("*.log")):
        lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES_SHOWN:]
        console.print(Text(f"--- {log.name}", style="dim"))
        console.print(Text("\n".join(lines)))

"""The last hour of a queue: a line of bars for each figure, a character a minute.

Pure: the moment is an argument. The minute that goes on is not among them: it is kept as it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.table import Table

from jobline._queue_history import QueueMinute
from jobline.cli.durations import show_span
from jobline.cli.output import Column, table

HOUR = timedelta(hours=1)
_MINUTES = 60
_BARS = "▁▂▃▄▅▆▇█"
# Between two columns; and bars below which there are none.
_GAP = 2
_BARS_MIN = 10

Figure = Callable[[QueueMinute], float | None]


@dataclass(frozen=True, slots=True)
class HourRow:
    """A figure of each minute, the earliest first; None: there was none in it."""

    name: str
    values: Sequence[float | None]
    is_time: bool = False

    def bars(self, count: int) -> str:
        """Returns the latest minutes as bars, held against the most of the hour."""
        most = max([value for value in self.values if value is not None], default=0.0)
        return "".join(_bar(value, most) for value in self.values[-count:])

    def latest(self) -> str:
        """Returns the figure of the last minute that has one."""
        return self._shown(next((one for one in reversed(self.values) if one is not None), None))

    def most(self) -> str:
        """Returns the largest figure."""
        return self._shown(max([one for one in self.values if one is not None], default=None))

    def total(self) -> str:
        """Returns the sum; times have none."""
        return "" if self.is_time else self._shown(sum(one or 0.0 for one in self.values))

    def _shown(self, value: float | None) -> str:
        if value is None:
            return ""
        return show_span(value) if self.is_time else f"{value:,.0f}"


def rows(minutes: Iterable[QueueMinute], now: datetime) -> list[HourRow]:
    """Returns the figures of the hour before this minute; none if nothing happened in it."""
    by_minute: list[QueueMinute | None] = [None] * _MINUTES
    this_minute = int(now.timestamp()) // 60
    for one in minutes:
        at = _MINUTES + int(one.start_time.timestamp()) // 60 - this_minute
        if 0 <= at < _MINUTES:
            by_minute[at] = one
    if not any(by_minute):
        return []
    return [
        HourRow(name, [0 if one is None else count(one) for one in by_minute])
        for name, count in _COUNTS
    ] + [
        HourRow(name, [None if one is None else time(one) for one in by_minute], is_time=True)
        for name, time in _TIMES
    ]


def view(found: Sequence[HourRow], width: int) -> Table:
    """Returns the figures as a table, with as many bars as there is room for."""
    columns: list[Column[HourRow]] = [
        Column("last hour", lambda row: row.name),
        Column("last minute", HourRow.latest, right=True),
        Column("most", HourRow.most, right=True),
        Column("in all", HourRow.total, right=True),
    ]
    beside = sum(
        max([len(column.title), *(len(column.shown(row)) for row in found)]) + _GAP
        for column in columns
    )
    count = min(width - beside, _MINUTES)
    if count >= _BARS_MIN:
        columns.insert(1, Column("", lambda row: row.bars(count), right=True))
    return table(found, columns, width)


def _bar(value: float | None, most: float) -> str:
    if value is None:
        return " "
    share = value / most if most else 0.0
    # Whatever happened is higher than nothing.
    return _BARS[0] if not value else _BARS[max(1, round(share * (len(_BARS) - 1)))]


def _seconds(value: timedelta | None) -> float | None:
    return None if value is None else value.total_seconds()


_COUNTS: tuple[tuple[str, Callable[[QueueMinute], int]], ...] = (
    ("pushed", lambda minute: minute.pushed),
    ("completed", lambda minute: minute.completed),
    ("failed", lambda minute: minute.failed),
    ("dead", lambda minute: minute.dead),
)
_TIMES: tuple[tuple[str, Figure], ...] = (
    ("waited p50", lambda minute: _seconds(minute.waited_p50)),
    ("waited p95", lambda minute: _seconds(minute.waited_p95)),
)

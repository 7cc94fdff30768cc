"""Encodes rows of a shard as Parquet, one open file for each hour.

Files are encoded in memory, which needs little: they are compressed. So what could not be written
can be tried again, and a crash leaves no half of a file; the journal has its events. One call at a
time; it belongs in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jobline_server.history.parquet import ParquetFile
from jobline_server.history.rows import Rows
from jobline_server.history.schema import path_of

HOUR_MS = 3_600_000
# A row group has rows of about so much memory: some hundred thousand values that differ from job to
# job, or any number of jobs that are alike. None has more jobs than that.
GROUP_BYTES, GROUP_JOBS = 16 << 20, 4_000_000


class Encoded(NamedTuple):
    """A finished file: its path below the history, its bytes, its rows, the time of its oldest one
    in milliseconds, and the offset of the first.
    """

    path: str
    content: Any
    rows: int
    oldest_ms: int
    first: int = 0


class NotEncoded(NamedTuple):
    """A row group or a file that could not be encoded: the offset of its first row, and why."""

    first: int
    error: Exception


class Written(NamedTuple):
    """What came of rows: the bytes of all files that `close` would return, and the row groups and
    files that are in none of them.
    """

    open_bytes: int
    failed: list[NotEncoded]


class Closed(NamedTuple):
    """Finished files, and those that could not be finished."""

    files: list[Encoded]
    failed: list[NotEncoded]


@dataclass(slots=True)
class _Open:
    file: ParquetFile
    first: int
    oldest_ms: int
    last: int = 0


class OpenFiles:
    """The files of a shard that are being encoded. `rest` is called often: others go on then."""

    def __init__(self, shard: int, rest: Callable[[], None] = lambda: None) -> None:
        self._shard = shard
        self._rest = rest
        self._open: dict[int, _Open] = {}
        self._closed: list[Encoded] = []

    def write(self, rows: Sequence[Rows | None], firsts: Sequence[int]) -> Written:
        """Adds rows. Where None is among them, and where some cannot be encoded, its
        files are finished, so that the names of files say what is in them.
        """
        failed: list[NotEncoded] = []
        for group in _groups(rows, firsts):
            if group is None:
                failed += self._finish()
                continue
            try:
                self._add(*group)
            except Exception as error:  # noqa: BLE001  # the journal has it all
                failed += self._finish()
                failed.append(NotEncoded(group.firsts[0], error))
        return Written(self._bytes(), failed)

    def _bytes(self) -> int:
        closed = sum([len(each.content) for each in self._closed])
        return closed + sum([len(each.file.content) for each in self._open.values()])

    def _add(self, rows: Sequence[Rows], firsts: Sequence[int]) -> None:
        """Adds rows of one hour as a row group, or nothing at all."""
        hour = rows[0].at // HOUR_MS
        opened = self._open.get(hour)
        if opened is None:
            opened = _Open(ParquetFile(self._shard, self._rest), firsts[0], rows[0].at)
        opened.file.add(rows, firsts)
        opened.last = firsts[-1] + rows[-1].total - 1
        self._open[hour] = opened

    def _finish(self) -> list[NotEncoded]:
        """Finishes the files; returns those that could not be, which are lost."""
        failed: list[NotEncoded] = []
        for hour in sorted(self._open):
            each = self._open.pop(hour)
            try:
                path = path_of(self._shard, hour, each.first, each.last)
                rows, content = each.file.rows, each.file.close()
            except Exception as error:  # noqa: BLE001  # the journal has it all
                failed.append(NotEncoded(each.first, error))
            else:
                self._closed.append(Encoded(str(path), content, rows, each.oldest_ms, each.first))
        return failed

    def close(self) -> Closed:
        """Finishes and returns the files."""
        failed = self._finish()
        closed, self._closed = self._closed, []
        return Closed(closed, failed)

    def oldest_ms(self) -> list[int]:
        """Returns the time of the oldest row of each file. Any thread may call it."""
        closed = [each.oldest_ms for each in list(self._closed)]
        return closed + [each.oldest_ms for each in list(self._open.values())]


class _Group(NamedTuple):
    rows: list[Rows]
    firsts: list[int]


def _groups(rows: Sequence[Rows | None], firsts: Sequence[int]) -> Iterator[_Group | None]:
    """Yields neighbours of one hour, up to the size of a row group; None where there is None."""
    group = _Group([], [])
    memory_bytes = jobs = 0
    for each, first in zip(rows, firsts, strict=True):
        is_over = memory_bytes >= GROUP_BYTES or jobs >= GROUP_JOBS
        if group.rows and (
            is_over or each is None or each.at // HOUR_MS != group.rows[0].at // HOUR_MS
        ):
            yield group
            group, memory_bytes, jobs = _Group([], []), 0, 0
        if each is None:
            yield None
        else:
            group.rows.append(each)
            group.firsts.append(first)
            memory_bytes += each.memory_bytes
            jobs += each.total
    if group.rows:
        yield group

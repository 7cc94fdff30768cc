"""Rows: one event of many jobs of a shard, as the ids that it concerns and its columns.

A thousand jobs of a lot that are pushed, leased or completed together are one `Rows`, and so are a
thousand single jobs of one fact. The names of the columns are those of `schema`; times are in
milliseconds, and what is not there is NULL.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

# A row's offset is the journal's offset times this, plus its index among the rows of that entry. No
# commit has as many: it takes what gathers while the one before it is written.
ROWS_PER_ENTRY = 1 << 24
# What is taken to be the memory of one `Rows`, and of one value of one job of it.
ROWS_BYTES, VALUE_BYTES = 1_000, 16


class Rows:
    """`starts=[7], counts=[3]` names jobs 7, 8, 9, which makes `total` 3. Without `starts` it is
    one row of no job; `counts` None are ones. A column is one value for all rows, a `list` with one
    for each, `Sizes` or `Later`. Columns that many `Rows` share do not change any more, and their
    memory is not counted.
    """

    __slots__ = ("are_shared", "at", "columns", "counts", "memory_bytes", "starts", "total")

    def __init__(
        self,
        at: int,
        columns: dict[str, Any],
        starts: Sequence[int] = (),
        counts: Sequence[int] | None = None,
        *,
        are_shared: bool = False,
    ) -> None:
        total = (len(starts) or 1) if counts is None else sum(counts)
        if total == len(starts):
            counts = None  # jobs that were acked in any order
        self.at = at
        self.columns = columns
        self.are_shared = are_shared
        # Not as objects: these would be all over the memory by the time they are encoded.
        # An array is taken as it is.
        self.starts = np.asarray(starts, np.int64)
        self.counts: Any = None if counts is None else _numbers_of(counts)
        self.total = total
        self.memory_bytes = ROWS_BYTES

    def measure(self) -> int:
        """Sets `memory_bytes`, and returns it: about how much memory it takes."""
        memory_bytes = ROWS_BYTES + VALUE_BYTES * len(self.starts)
        for value in () if self.are_shared else self.columns.values():
            kind = type(value)
            if kind is str:
                memory_bytes += len(value)
            elif kind is list:
                memory_bytes += VALUE_BYTES * self.total + _held_bytes(value)
            elif kind is Later:
                memory_bytes += value.memory_bytes
            elif kind is tuple:
                memory_bytes += _held_bytes([value])
        self.memory_bytes = memory_bytes
        return memory_bytes


def _numbers_of(counts: Sequence[int]) -> Any:
    """Returns an array of counts, which are small if there are many: so bytes do, and are made in
    a third of the time.
    """
    try:
        return np.frombuffer(bytes(counts if type(counts) is list else list(counts)), np.uint8)
    except ValueError:
        return np.array(counts, np.int64)


def _held_bytes(values: list[Any]) -> int:
    """Returns about how much the values of a column hold, beside themselves: texts, and tuples of
    numbers, texts or pairs of texts. The first that is not empty says what they are.
    """
    first = next(filter(None, values), None)
    if type(first) is str:
        return sum(map(len, filter(None, values)))
    if type(first) is not tuple:
        return 0
    held = list(chain.from_iterable(filter(None, values)))
    texts = chain.from_iterable(held) if type(held[0]) is tuple else held
    text_bytes = 0 if type(held[0]) is int else sum(map(len, texts))
    return VALUE_BYTES * len(held) + text_bytes


class Later:
    """A column that is made when it is encoded, in the thread of that: `each` returns the value of
    each job. `memory_bytes` is about how much these take.
    """

    __slots__ = ("each", "memory_bytes")

    def __init__(self, each: Callable[[], list[Any]], memory_bytes: int) -> None:
        self.each = each
        self.memory_bytes = memory_bytes


class Sizes:
    """The payload bytes of members of a lot that differ in size, made of the sums that the lot has
    anyway: `sums[i]` are the bytes before the job with the id `first_id + i`.
    """

    __slots__ = ("_counts", "_first_id", "_starts", "_sums")

    def __init__(
        self, sums: array[int], first_id: int, starts: Sequence[int], counts: Sequence[int]
    ) -> None:
        self._sums = sums
        self._first_id = first_id
        self._starts = starts
        self._counts = counts

    def each(self) -> list[int]:
        """Returns the size of each job."""
        sizes = np.diff(np.frombuffer(self._sums, np.uint32).astype(np.int64))
        found: list[int] = []
        for start, count in zip(self._starts, self._counts, strict=True):
            at = start - self._first_id
            found += sizes[at : at + count].tolist()
        return found


class ShardRows:
    """The rows of a shard that are in no file yet, with the offset of the first row of each, and
    the journal's offset up to which they go. None among them: entries before it are missing, so
    no file may have rows from both sides of it.
    """

    __slots__ = ("count", "firsts", "journal_offset", "memory_bytes", "rows")

    def __init__(self, journal_offset: int) -> None:
        self.rows: list[Rows | None] = []
        self.firsts: list[int] = []
        self.count = 0
        self.memory_bytes = 0
        self.journal_offset = journal_offset

    def add(self, journal_offset: int, rows: Sequence[Rows]) -> None:
        """Adds the rows of the next entry. Raises `OverflowError` if they are too many to be told
        apart by their offsets.
        """
        base = journal_offset * ROWS_PER_ENTRY
        firsts: list[int] = []
        index = memory_bytes = 0
        for each in rows:
            firsts.append(base + index)
            index += each.total
            memory_bytes += each.measure()
        if index > ROWS_PER_ENTRY:
            raise OverflowError(f"{index} rows in one entry")
        self.rows += rows
        self.firsts += firsts
        self.count += index
        self.memory_bytes += memory_bytes
        self.journal_offset = journal_offset

    def skip(self, journal_offset: int) -> None:
        """Leaves out the next entry."""
        self.rows.append(None)
        self.firsts.append(0)
        self.journal_offset = journal_offset

    @property
    def oldest_ms(self) -> int | None:
        """Returns the time of the first row; None without any."""
        return next((each.at for each in self.rows if each is not None), None)

    def take(self) -> tuple[list[Rows | None], list[int]]:
        """Removes and returns the rows and their offsets."""
        rows, firsts = self.rows, self.firsts
        self.rows, self.firsts, self.count, self.memory_bytes = [], [], 0, 0
        return rows, firsts

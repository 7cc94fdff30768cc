"""The payloads of a lot, with the columns of the values that each of its jobs has of its own.

Lots, facts, leases and the ended store pass the columns on with the payloads. Sizes count both, as
both take memory and room in messages; only `bytes_max` and `size_of`, by which jobs find their
lane, are the payload's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Self

from jobline_server.engine.columns import LotColumns
from jobline_server.engine.packed import PackedValues
from jobline_server.engine.values import JobOptions


class Payloads(PackedValues):
    """Payloads by index. `columns` is None if the jobs have no values of their own, as most."""

    __slots__ = ("columns",)

    def __init__(
        self,
        block: bytes,
        count: int,
        lengths: Iterable[int],
        *,
        skipped: int = 0,
        columns: LotColumns | None = None,
    ) -> None:
        PackedValues.__init__(self, block, count, lengths, skipped=skipped)
        self.columns = columns

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Concatenates several, which have the same columns or none."""
        joined = super().joined(parts)
        columns = [part.columns for part in parts if part.columns is not None]
        if columns:
            joined.columns = LotColumns.joined(columns)
        return joined

    @property
    def bytes_each(self) -> int:
        """Bytes of each job if all take the same, otherwise -1."""
        if self._sums is not None:
            return -1
        if self.columns is None:
            return self.bytes_max
        columns_bytes = self.columns.bytes_each
        return -1 if columns_bytes < 0 else self.bytes_max + columns_bytes

    @property
    def job_bytes_max(self) -> int:
        """An upper bound of the bytes of each job."""
        return self.bytes_max + (0 if self.columns is None else self.columns.bytes_max)

    @property
    def job_keys(self) -> Iterable[bytes]:
        """The idempotency keys, b"" for jobs without one; empty if no job has one."""
        columns = self.columns
        return () if columns is None or columns.job_keys is None else columns.job_keys

    def __eq__(self, other: object) -> bool:
        same = PackedValues.__eq__(self, other)
        return same if same is not True else self.columns == getattr(other, "columns", None)

    __hash__ = PackedValues.__hash__

    def part(self, start: int, count: int) -> Self:
        """Returns `count` neighbours from index `start` on, with indexes from 0."""
        if count == self._count and not self.skipped:
            return self
        part = PackedValues.part(self, start, count)
        if self.columns is not None:
            part.columns = self.columns.part(start, count)
        return part

    def rest(self, start: int) -> Self:
        """Returns the payloads from index `start` on, at their old indexes."""
        rest = PackedValues.rest(self, start)
        if self.columns is not None and rest is not self:
            rest.columns = self.columns.rest(start)
        return rest

    def picked(self, indexes: Sequence[int]) -> Payloads:
        """Returns the payloads with these indexes."""
        picked = Payloads.of([self[index] for index in indexes])
        if self.columns is not None:
            picked.columns = self.columns.picked(indexes)
        return picked

    def bytes_of(self, start: int, count: int) -> int:
        """Returns the bytes of neighbours: of their payloads and columns."""
        if self._sums is None:
            size = count * self.bytes_max
        else:
            at = start - self.skipped
            size = self._sums[at + count] - self._sums[at]
        return size if self.columns is None else size + self.columns.bytes_of(start, count)

    def fitting(self, start: int, count: int, room_bytes: int) -> int:
        """Returns how many of these neighbours fit into `room_bytes`."""
        if self.bytes_of(start, count) <= room_bytes:
            return count
        if room_bytes < 0:
            return 0
        each = self.bytes_each
        if each >= 0:
            return room_bytes // each
        if self.columns is None and self._sums is not None:
            at = start - self.skipped
            return bisect_right(self._sums, self._sums[at] + room_bytes, at) - 1 - at
        counts = range(count + 1)
        return bisect_right(counts, room_bytes, key=lambda fits: self.bytes_of(start, fits)) - 1

    def options_of(self, index: int, shared: JobOptions) -> JobOptions:
        """Returns the options of one job: the lot's, with the job's own headers."""
        return shared if self.columns is None else self.columns.options_of(index, shared)

    def job_key_of(self, index: int) -> str:
        """Returns the idempotency key of one job, "" if it has none."""
        return "" if self.columns is None else self.columns.job_key_of(index)


NO_PAYLOADS = Payloads(b"", 0, ())

"""Columns: the values that each job of a lot has of its own beside its payload: headers, one column
per header key, and idempotency keys.

A column is one block of bytes (`packed`), laid out as `HeaderColumn.values` on the wire, so it goes
from a push to the journal, the checkpoint and the worker without a string per job. Only a job that
is split off its lot gets its own options object, with its headers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from jobline_server.engine.packed import PackedValues
from jobline_server.engine.values import JobOptions

# What a value takes beside its block where lengths differ. Counted for every value: the columns of
# part of a lot may have one length, and the sizes of all parts are to add up to that of the lot.
INDEX_BYTES = 8


class LotColumns:
    """The columns of some jobs, by index. A value of "" means that the job has none.

    Sizes are those of the blocks, with the header of each value, and of their indexes: empty values
    take memory, too. `bytes_each` is -1 if not all jobs take the same.
    """

    __slots__ = ("bytes_each", "bytes_max", "headers", "job_keys")

    def __init__(
        self, headers: Sequence[tuple[str, PackedValues]], job_keys: PackedValues | None = None
    ) -> None:
        self.headers = tuple(headers)
        self.job_keys = job_keys
        columns = self._columns()
        self.bytes_max = sum([column.block_bytes_max + INDEX_BYTES for column in columns])
        self.bytes_each = self.bytes_max if all(column.is_even for column in columns) else -1

    @classmethod
    def joined(cls, parts: Sequence[LotColumns]) -> LotColumns:
        """Concatenates several, which have the same columns."""
        headers = [
            (column[0][0], PackedValues.joined([values for _, values in column]))
            for column in zip(*[part.headers for part in parts], strict=True)
        ]
        keys = [part.job_keys for part in parts if part.job_keys is not None]
        return cls(headers, PackedValues.joined(keys) if keys else None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LotColumns):
            return NotImplemented
        return (self.headers, self.job_keys) == (other.headers, other.job_keys)

    def __hash__(self) -> int:
        return hash((self.headers, self.job_keys))

    @property
    def header_keys(self) -> tuple[str, ...]:
        """The keys of the headers that have a column."""
        return tuple([key for key, _ in self.headers])

    def part(self, start: int, count: int) -> LotColumns:
        """Returns the columns of `count` neighbours from index `start` on, with indexes from 0."""
        return self._each(lambda column: column.part(start, count))

    def rest(self, start: int) -> LotColumns:
        """Returns the columns from index `start` on, at their old indexes."""
        return self._each(lambda column: column.rest(start))

    def picked(self, indexes: Sequence[int]) -> LotColumns:
        """Returns the columns of the jobs with these indexes."""
        return self._each(lambda column: PackedValues.of([column[index] for index in indexes]))

    def bytes_of(self, start: int, count: int) -> int:
        """Returns the bytes of neighbours."""
        if self.bytes_each >= 0:
            return count * self.bytes_each
        columns = self._columns()
        own = sum([column.block_bytes_of(start, count) for column in columns])
        return own + len(columns) * count * INDEX_BYTES

    def headers_of(self, index: int) -> dict[str, str]:
        """Returns the own headers of one job."""
        return {key: value.decode() for key, values in self.headers if (value := values[index])}

    def options_of(self, index: int, shared: JobOptions) -> JobOptions:
        """Returns the options of one job: the lot's, with the job's own headers."""
        headers = self.headers_of(index)
        if not headers:
            return shared
        return replace(shared, headers=tuple(sorted({**dict(shared.headers), **headers}.items())))

    def job_key_of(self, index: int) -> str:
        """Returns the idempotency key of one job, "" if it has none."""
        return "" if self.job_keys is None else self.job_keys[index].decode()

    def _columns(self) -> list[PackedValues]:
        columns = [values for _, values in self.headers]
        return columns if self.job_keys is None else [*columns, self.job_keys]

    def _each(self, change: Callable[[PackedValues], PackedValues]) -> LotColumns:
        keys = self.job_keys
        return LotColumns(
            [(key, change(values)) for key, values in self.headers],
            None if keys is None else change(keys),
        )

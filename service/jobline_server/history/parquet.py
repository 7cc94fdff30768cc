"""Writes Parquet of runs: a row group is encoded in a time that grows with its runs, not its rows.

A general writer takes each value of each of 38 columns into its hands, most of which are NULL, or
the same for a thousand jobs: that is a third of what a push of a job costs the server. Here each
chunk of a column is a dictionary, and one page of indexes in runs (`encodings`).

    https://parquet.apache.org/docs/file-format/ and parquet.thrift of apache/parquet-format
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from jobline_server.history import schema
from jobline_server.history.columns import (
    Column,
    Group,
    column,
    column_of,
    group_of,
    ids_of,
    nested_of,
)
from jobline_server.history.encodings import counting, hybrid, one_run, width_of
from jobline_server.history.footer import (
    BOOLEAN,
    BYTE_ARRAY,
    DELTA,
    DICTIONARY,
    INT32,
    INT64,
    PLAIN,
    Chunk,
    Statistics,
    dictionary_page,
    footer,
    row_group,
    values_page,
)
from jobline_server.history.rows import Rows

MAGIC = b"PAR1"
COMPRESSION_LEVEL = 1
# Less than that is not worth a compressor's look.
_SMALL_BYTES = 128
# Those by which readers skip row groups, or find that something is missing.
_WITH_STATISTICS = frozenset({schema.AT, "event", "queue"})
_ONE = np.ones(1, np.int64)


class Leaf(NamedTuple):
    """A column that holds values, and the type of these in the file."""

    path: tuple[str, ...]
    kind: int


class Distinct(NamedTuple):
    """The distinct values of a column."""

    values: bytes
    number: int


class Content(NamedTuple):
    """What a column of a row group holds: levels and values, of `total` levels, or rows if it is
    not nested.
    """

    leaf: Leaf
    encoding: int
    total: int
    values: bytes
    statistics: Statistics | None = None
    distinct: Distinct | None = None


_OFFSETS, _IDS = Leaf((schema.OFFSET,), INT64), Leaf((schema.JOB_ID,), INT64)


class ParquetFile:
    """A file of one shard that is being written, in memory."""

    def __init__(self, shard: int, rest: Callable[[], None]) -> None:
        self._shard = shard
        self._rest = rest
        self._codec = pa.Codec("zstd", compression_level=COMPRESSION_LEVEL)
        self._groups: list[bytes] = []
        self.content = bytearray(MAGIC)
        self.rows = 0

    def add(self, rows: Sequence[Rows], firsts: Sequence[int]) -> None:
        """Adds a row group; `firsts` are the offsets of the first of each."""
        group = group_of(rows)
        total = group.total
        known = set().union(*group.distinct)
        chunks: list[Chunk] = []
        for field in schema.SCHEMA:
            if field.name == schema.OFFSET:
                chunks.append(self._offsets(np.array(firsts, np.int64), group))
            elif field.name in known or field.name in schema.ALWAYS:
                chunks += self._chunks(field, group)
            else:
                chunks += nothing(field, total)
                continue
            self._rest()
        self._groups.append(row_group(chunks, total, len(self._groups), at=len(self.content)))
        for chunk in chunks:
            self.content += chunk.pages
        self.rows += total

    def close(self) -> bytearray:
        """Finishes and returns the file."""
        end = footer(schema.SCHEMA, self._groups, self.rows)
        self.content += end + len(end).to_bytes(4, "little") + MAGIC
        return self.content

    def _chunks(self, field: pa.Field, group: Group) -> list[Chunk]:
        """Encodes a column; one of maps is two chunks."""
        name, kind, total = field.name, field.type, group.total
        if name == schema.JOB_ID:
            return [self._ids(group)]
        if pa.types.is_nested(kind):
            return self._nested(field, group.rows)
        if name in (schema.SHARD, schema.VERSION):
            value = self._shard if name == schema.SHARD else schema.SCHEMA_VERSION
            own = column([value], _ONE * total, kind)
        elif name == schema.AT:
            own = column([each.at for each in group.rows], group.totals, pa.int64())
        else:
            own = column_of(name, group, pa.int64() if pa.types.is_timestamp(kind) else kind)
        return [self._of(field, own, total)]

    def _offsets(self, firsts: Any, group: Group) -> Chunk:
        total, totals = group.total, group.totals
        found = Statistics(0, _long(firsts[0]), _long(firsts[-1] + totals[-1] - 1))
        values = _all(1, total) + counting(firsts, totals)
        return self._chunk(Content(_OFFSETS, DELTA, total, values, found))

    def _ids(self, group: Group) -> Chunk:
        starts, counts = ids_of(group.rows)
        has_jobs = np.array([len(each.starts) > 0 for each in group.rows], np.int64)
        total = group.total
        nulls = total - (len(starts) if counts is None else int(counts.sum()))
        found = Statistics(nulls)
        if len(starts):
            ends = starts if counts is None else starts + counts - 1
            found = Statistics(nulls, _long(starts.min()), _long(ends.max()))
        values = _level(has_jobs, group.totals, 1) + counting(starts, counts)
        return self._chunk(Content(_IDS, DELTA, total, values, found))

    def _of(self, field: pa.Field, own: Column, total: int) -> Chunk:
        leaf = Leaf((field.name,), _type_of(field.type))
        if own.is_there is None:
            levels, nulls = _all(1, total), 0
        else:
            levels = _level(own.is_there.astype(np.int64), own.all_counts, 1)
            nulls = total - int(own.counts.sum())
        if leaf.kind == BOOLEAN:
            bits = np.repeat(own.distinct.to_numpy(zero_copy_only=False)[own.indexes], own.counts)
            content = np.packbits(bits, bitorder="little").tobytes()
            return self._chunk(Content(leaf, PLAIN, total, levels + content))
        distinct = own.distinct
        if pa.types.is_timestamp(field.type):
            distinct = pa.array(distinct.to_numpy() * 1_000)
        found = None
        if field.name in _WITH_STATISTICS:
            found = _statistics(nulls, distinct, leaf.kind)
        return self._indexed(leaf, total, levels, own._replace(distinct=distinct), found)

    def _nested(self, field: pa.Field, rows: Sequence[Rows]) -> list[Chunk]:
        own = nested_of(field.name, rows)
        total = int(own.counts.sum())
        chunks: list[Chunk] = []
        for path, kind, depth in leaves(field):
            values = own.keys if path[-1] == "key" and own.keys is not None else own.values
            # What may be NULL in a list has a level more, and never is.
            definitions = np.where(own.definitions == 2, depth, own.definitions)
            levels = _level(own.repetitions, own.counts, 1)
            levels += _level(definitions, own.counts, 2)
            held = column(values, np.ones(len(values), np.int64), kind)
            chunks.append(self._indexed(Leaf(path, _type_of(kind)), total, levels, held))
        return chunks

    def _indexed(
        self, leaf: Leaf, total: int, levels: bytes, own: Column, found: Statistics | None = None
    ) -> Chunk:
        width = width_of(len(own.distinct))
        content = bytes([width]) + hybrid(own.indexes, own.counts, width)
        distinct = Distinct(_plain(own.distinct, leaf.kind), len(own.distinct))
        return self._chunk(Content(leaf, DICTIONARY, total, levels + content, found, distinct))

    def _chunk(self, own: Content) -> Chunk:
        """Makes the pages of a column."""
        distinct = own.distinct
        size = len(own.values) + (0 if distinct is None else len(distinct.values))
        codec = self._codec if size > _SMALL_BYTES else None
        pages, plain_bytes = b"", 0
        if distinct is not None:
            pages, plain_bytes = dictionary_page(distinct.values, distinct.number, codec)
        page, page_bytes = values_page(own.values, own.total, own.encoding, codec)
        return Chunk(
            path=own.leaf.path,
            kind=own.leaf.kind,
            encoding=own.encoding,
            values=own.total,
            pages=pages + page,
            plain_bytes=plain_bytes + page_bytes,
            values_at=len(pages),
            is_packed=codec is not None,
            statistics=own.statistics,
        )


def nothing(field: pa.Field, total: int) -> list[Chunk]:
    """Returns the chunks of a column that is NULL in all rows."""
    page = _page_of_nothing(total, levels=2 if pa.types.is_nested(field.type) else 1)
    paths = leaves(field) if pa.types.is_nested(field.type) else [((field.name,), field.type, 1)]
    return [
        Chunk(path, _type_of(kind), PLAIN, total, *page, 0, False, None) for path, kind, _ in paths
    ]


@lru_cache(maxsize=4)
def _page_of_nothing(total: int, *, levels: int) -> tuple[bytes, int]:
    """Returns the page of such a column: NULL once, with these many levels."""
    return values_page(_all(0, total) * levels, total, PLAIN, None)


def leaves(field: pa.Field) -> list[tuple[tuple[str, ...], pa.DataType, int]]:
    """Returns the paths of the leaves of a nested column, their types, and the definition level of
    a value that is there.
    """
    if pa.types.is_map(field.type):
        return [
            ((field.name, "key_value", "key"), field.type.key_type, 2),
            ((field.name, "key_value", "value"), field.type.item_type, 3),
        ]
    return [((field.name, "list", "element"), field.type.value_type, 3)]


def _type_of(kind: pa.DataType) -> int:
    if pa.types.is_boolean(kind):
        return BOOLEAN
    if pa.types.is_string(kind):
        return BYTE_ARRAY
    return INT32 if kind == pa.int32() else INT64


def _all(level: int, count: int) -> bytes:
    content = one_run(level, count, 1)
    return len(content).to_bytes(4, "little") + content


def _level(values: Any, counts: Any, width: int) -> bytes:
    content = hybrid(values, counts, width)
    return len(content).to_bytes(4, "little") + content


def _plain(distinct: Any, kind: int) -> bytes:
    if kind != BYTE_ARRAY:
        return bytes(distinct.to_numpy(zero_copy_only=False).tobytes())
    words = [word.encode() for word in distinct.to_pylist()]
    return b"".join([len(word).to_bytes(4, "little") + word for word in words])


def _long(value: Any) -> bytes:
    return int(value).to_bytes(8, "little", signed=True)


def _statistics(nulls: int, distinct: Any, kind: int) -> Statistics:
    if not len(distinct):
        return Statistics(nulls)
    if kind == BYTE_ARRAY:
        words = [word.encode() for word in distinct.to_pylist()]
        return Statistics(nulls, min(words), max(words))
    numbers = distinct.to_numpy()
    return Statistics(nulls, _long(numbers.min()), _long(numbers.max()))

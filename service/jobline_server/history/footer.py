"""The metadata of Parquet: headers of pages, of row groups and of the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from jobline_server.history.thrift import (
    BINARY,
    BOOL,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    fields_of,
    list_of,
    struct,
)

# Type, Encoding, CompressionCodec and others of parquet.thrift.
BOOLEAN, INT32, INT64, BYTE_ARRAY = 0, 1, 2, 6
PLAIN, RLE, DELTA, DICTIONARY = 0, 3, 5, 8
_ZSTD, _UNCOMPRESSED = 6, 0
_VALUES, _DISTINCT = 0, 2
_REQUIRED, _OPTIONAL, _REPEATED = 0, 1, 2
_UTF8, _MAP, _LIST, _MICROS = 0, 1, 3, 10
_NOTHING = struct()
CREATED_BY = b"jobline-server"


class Statistics(NamedTuple):
    """Of a chunk: how many values are NULL, the least and the greatest."""

    nulls: int
    least: bytes | None = None
    greatest: bytes | None = None

    def encoded(self) -> bytes:
        """Returns the struct."""
        return struct((3, I64, self.nulls), (5, BINARY, self.greatest), (6, BINARY, self.least))


class Chunk(NamedTuple):
    """A column of a row group: its pages, the bytes of these before they were compressed, where
    among them the page of values begins (0: there is no dictionary), and what its metadata says.
    """

    path: tuple[str, ...]
    kind: int
    encoding: int
    values: int
    pages: bytes
    plain_bytes: int
    values_at: int
    is_packed: bool
    statistics: Statistics | None

    def encoded(self, at: int) -> bytes:
        """Returns the struct of a chunk that begins there in the file."""
        begin = _chunk_of(self.kind, self.encoding, self.path, self.is_packed)
        rest = struct(
            (5, I64, self.values),
            (6, I64, self.plain_bytes),
            (7, I64, len(self.pages)),
            (9, I64, at + self.values_at),
            (11, I64, at if self.values_at else None),
            (12, STRUCT, None if self.statistics is None else self.statistics.encoded()),
            after=4,
        )
        return struct((2, I64, at), (3, STRUCT, begin + rest))


@lru_cache(maxsize=1_000)
def _chunk_of(kind: int, encoding: int, path: tuple[str, ...], is_packed: bool) -> bytes:
    """Returns the first fields of a chunk's metadata, which are the same in all row groups."""
    encodings = {RLE, encoding} | ({PLAIN} if encoding == DICTIONARY else set())
    return fields_of(
        (1, I32, kind),
        (2, LIST, list_of(I32, sorted(encodings))),
        (3, LIST, list_of(BINARY, [name.encode() for name in path])),
        (4, I32, _ZSTD if is_packed else _UNCOMPRESSED),
    )


def dictionary_page(content: bytes, count: int, codec: Any) -> tuple[bytes, int]:
    """Returns a page of distinct values, and its size before it was compressed."""
    header = struct((1, I32, count), (2, I32, PLAIN))
    return _page(_DISTINCT, content, codec, (7, STRUCT, header))


def values_page(content: bytes, count: int, encoding: int, codec: Any) -> tuple[bytes, int]:
    """Returns a page of levels and values, and its size before it was compressed."""
    header = struct((1, I32, count), (2, I32, encoding), (3, I32, RLE), (4, I32, RLE))
    return _page(_VALUES, content, codec, (5, STRUCT, header))


def _page(kind: int, content: bytes, codec: Any, more: tuple[int, int, bytes]) -> tuple[bytes, int]:
    packed = content if codec is None else codec.compress(content, asbytes=True)
    header = struct((1, I32, kind), (2, I32, len(content)), (3, I32, len(packed)), more)
    return header + packed, len(header) + len(content)


def row_group(chunks: Sequence[Chunk], rows: int, number: int, *, at: int) -> bytes:
    """Returns the struct of a row group that begins there in the file."""
    columns: list[bytes] = []
    begin = at
    for chunk in chunks:
        columns.append(chunk.encoded(at))
        at += len(chunk.pages)
    return struct(
        (1, LIST, list_of(STRUCT, columns)),
        (2, I64, sum(chunk.plain_bytes for chunk in chunks)),
        (3, I64, rows),
        (5, I64, begin),
        (6, I64, at - begin),
        (7, I16, number),
    )


def footer(fields: pa.Schema, groups: Sequence[bytes], rows: int) -> bytes:
    """Returns the metadata of a file."""
    root = struct((4, BINARY, b"schema"), (5, I32, len(fields)))
    elements = [root, *[each for field in fields for each in _elements(field)]]
    leaves = sum(2 if pa.types.is_map(field.type) else 1 for field in fields)
    order = struct((1, STRUCT, _NOTHING))
    return struct(
        (1, I32, 2),
        (2, LIST, list_of(STRUCT, elements)),
        (3, I64, rows),
        (4, LIST, list_of(STRUCT, groups)),
        (6, BINARY, CREATED_BY),
        (7, LIST, list_of(STRUCT, [order] * leaves)),
    )


def _elements(field: pa.Field) -> Iterator[bytes]:
    kind, name = field.type, field.name
    if pa.types.is_map(kind):
        yield _group(name, _OPTIONAL, 1, _MAP, 2)
        yield _group("key_value", _REPEATED, 2)
        yield _leaf("key", kind.key_type, _REQUIRED)
        yield _leaf("value", kind.item_type, _OPTIONAL)
    elif pa.types.is_list(kind):
        yield _group(name, _OPTIONAL, 1, _LIST, 3)
        yield _group("list", _REPEATED, 1)
        yield _leaf("element", kind.value_type, _OPTIONAL)
    else:
        yield _leaf(name, kind, _OPTIONAL)


def _group(
    name: str, repetition: int, children: int, converted: int | None = None, logical: int = 0
) -> bytes:
    return struct(
        (3, I32, repetition),
        (4, BINARY, name.encode()),
        (5, I32, children),
        (6, I32, converted),
        (10, STRUCT, struct((logical, STRUCT, _NOTHING)) if logical else None),
    )


def _leaf(name: str, kind: pa.DataType, repetition: int) -> bytes:
    physical = INT64
    converted = logical = None
    if pa.types.is_string(kind):
        physical, converted, logical = BYTE_ARRAY, _UTF8, struct((1, STRUCT, _NOTHING))
    elif pa.types.is_timestamp(kind):
        unit = struct((2, STRUCT, _NOTHING))
        converted = _MICROS
        logical = struct((8, STRUCT, struct((1, BOOL, True), (2, STRUCT, unit))))
    elif pa.types.is_boolean(kind):
        physical = BOOLEAN
    elif kind == pa.int32():
        physical = INT32
    return struct(
        (1, I32, physical),
        (3, I32, repetition),
        (4, BINARY, name.encode()),
        (6, I32, converted),
        (10, STRUCT, logical),
    )

"""Thrift's compact protocol, as much of it as the metadata of Parquet needs: writing.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Iterable

from jobline_server.history.encodings import varint, zigzag

I16, I32, I64, BINARY, LIST, STRUCT, BOOL = 4, 5, 6, 8, 9, 12, 1
_FALSE = 2
_LONG_LIST = 15

Value = int | bool | bytes
Field = tuple[int, int, Value | None]


def struct(*fields: Field) -> bytes:
    """Encodes a struct of (id, type, value), by rising ids; without those that are None. The values
    of structs and lists are encoded already.
    """
    found = bytearray()
    last = 0
    for number, kind, value in fields:
        if value is None:
            continue
        step, last = (number - last) << 4, number
        if kind == BOOL:
            found.append(step | (BOOL if value else _FALSE))
        else:
            found.append(step | kind)
            found += _encoded(kind, value)
    found.append(0)
    return bytes(found)


def list_of(kind: int, values: Iterable[Value]) -> bytes:
    """Encodes a list of values of one type."""
    values = list(values)
    short = min(len(values), _LONG_LIST)
    found = bytearray([short << 4 | kind])
    if short == _LONG_LIST:
        found += varint(len(values))
    for value in values:
        found += _encoded(kind, value)
    return bytes(found)


def _encoded(kind: int, value: Value) -> bytes:
    if isinstance(value, bytes):
        return varint(len(value)) + value if kind == BINARY else value
    return varint(zigzag(value))

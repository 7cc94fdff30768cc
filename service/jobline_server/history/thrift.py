"""Thrift's compact protocol, as much of it as the metadata of Parquet needs: writing.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Iterable

from jobline_server.history.encodings import zigzag
from jobline_server.wire.raw_fields import varint

I16, I32, I64, BINARY, LIST, STRUCT, BOOL = 4, 5, 6, 8, 9, 12, 1
_FALSE = 2
_LONG_LIST = 15

Value = int | bool | bytes
Field = tuple[int, int, Value | None]


def struct(*fields: Field, after: int = 0) -> bytes:
    """Encodes a struct of (id, type, value), by rising ids; without those that are None. The values
    of structs and lists are encoded already. With `after` it is the rest of a struct whose last
    field so far has that id.
    """
    return fields_of(*fields, after=after) + b"\0"


def fields_of(*fields: Field, after: int = 0) -> bytes:
    """Encodes the fields of a struct that goes on."""
    found: list[bytes] = []
    for number, kind, value in fields:
        if value is None:
            continue
        step, after = (number - after) << 4, number
        if kind == BOOL:
            found.append(bytes((step | (BOOL if value else _FALSE),)))
        else:
            found.append(bytes((step | kind,)))
            found.append(_encoded(kind, value))
    return b"".join(found)


def list_of(kind: int, values: Iterable[Value]) -> bytes:
    """Encodes a list of values of one type."""
    values = list(values)
    short = min(len(values), _LONG_LIST)
    head = bytes((short << 4 | kind,))
    if short == _LONG_LIST:
        head += varint(len(values))
    return head + b"".join([_encoded(kind, value) for value in values])


def _encoded(kind: int, value: Value) -> bytes:
    if type(value) is bytes:
        return varint(len(value)) + value if kind == BINARY else value
    return varint(zigzag(value))  # type: ignore[arg-type]  # all others are numbers

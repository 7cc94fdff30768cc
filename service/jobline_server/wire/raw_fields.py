"""Serialises tags and varints, for messages that are written field by field.

A field is its tag, its length and its bytes; two messages written one after the other are read as
their merge. So fields that many messages share are serialised once.
"""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor

VARINT, LENGTH_DELIMITED = 0, 2
_ONE_BYTE = [bytes([value]) for value in range(0x80)]


def tag_of(message: Descriptor, field: str, wire_type: int = LENGTH_DELIMITED) -> bytes:
    """Returns the tag of a field."""
    return varint(message.fields_by_name[field].number << 3 | wire_type)


def varint(value: int) -> bytes:
    """Returns an unsigned number, of any size, as protobuf and Thrift write it: seven bits per
    byte, the lowest first.
    """
    if value <= 0x7F:
        return _ONE_BYTE[value]
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)

"""Fields of messages as bytes: a field of a message is its tag, its length and its bytes, and one
message written after another is both merged. So what neighbours share is written once.
"""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor

VARINT, LENGTH_DELIMITED = 0, 2


def tag_of(message: Descriptor, field: str, wire_type: int = LENGTH_DELIMITED) -> bytes:
    """What stands before a field of a message."""
    return varint(message.fields_by_name[field].number << 3 | wire_type)


def varint(value: int) -> bytes:
    """A number as protobuf writes it: seven bits a byte, the lowest first."""
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)

"""Messages for the fuzzer: made from descriptors, or good ones with something wrong in them.

All of it follows from a `Random`, so a seed names a message. Values are those at which code breaks
(the ends of ranges, words of other scripts, enum values that nobody knows), and the names and ids
that the server really has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import EncodeError, Message

QUEUES = ["fuzz", "known", "after", "", "_system", "a/b", "q" * 257, "ключ", "a\0"]
WORDS = [*QUEUES, "n", "k1", "*", "lease", "x" * 70, "\x1b[0m", "a\nb", "é" * 129, "y" * 20_000]
BYTES = [b"", b"x", b"\xff\xfe", b'{"a": 1}', bytes(300), bytes(70_000)]
REALS = [0.0, 0.1, 50.0, 100.0, 100.5, -1.0, 1e308, float("inf"), float("-inf"), float("nan")]
SMALL = [0, 1, 2, 5, 100, 1_000, 1_001]
ENDS = {
    Field.CPPTYPE_INT32: [*SMALL, -1, -(2**31), 2**31 - 1],
    Field.CPPTYPE_INT64: [*SMALL, -1, -(2**63), 2**63 - 1, 315_576_000_000],
    Field.CPPTYPE_UINT32: [*SMALL, 2**32 - 1],
    Field.CPPTYPE_UINT64: [*SMALL, 2**43 + 1, 2**53, 2**64 - 1],
}
# How deep messages are made, how many fields of one are set, and how long lists mostly are.
DEPTH = 3
FIELDS_SET_MAX = 4
LIST_LENGTHS = [0, 1, 1, 2, 3, 17]


class Maker:
    """Makes messages. `ids` are numbers of jobs, and of their leases, that the server has."""

    def __init__(self, random: Random, ids: Sequence[int] = ()) -> None:
        self._random = random
        self._ids = list(ids)

    def fuzzed(self, good: Message) -> bytes:
        """The bytes of a message that is like a good one, or like none."""
        kind = self._random.random()
        if kind < 0.35:
            return mutated(self._random, good.SerializeToString())
        message = type(good)()
        if kind < 0.85:
            message.CopyFrom(good)
            changes = 1 + self._random.randrange(2)
        else:
            changes = FIELDS_SET_MAX
        for _ in range(changes):
            self._change(message, DEPTH)
        try:
            return message.SerializeToString()
        except EncodeError:  # a text that is no UTF-8 after all
            return good.SerializeToString()

    def _change(self, message: Any, depth: int) -> None:
        """Sets one field, clears it, or goes on in the message that is in it."""
        if not message.DESCRIPTOR.fields:
            return
        field: Field = self._random.choice(message.DESCRIPTOR.fields)
        chance = self._random.random()
        if field.is_repeated:
            self._change_list(message, field, depth)
        elif chance < 0.15:
            message.ClearField(field.name)
        elif field.message_type is None:
            setattr(message, field.name, self._value(field))
        elif depth:
            getattr(message, field.name).SetInParent()
            self._change(getattr(message, field.name), depth - 1)

    def _change_list(self, message: Any, field: Field, depth: int) -> None:
        values = getattr(message, field.name)
        length = self._random.choice(LIST_LENGTHS)
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            key, value = inner.fields_by_name["key"], inner.fields_by_name["value"]
            for _ in range(length):
                values[self._value(key)] = self._value(value)
        elif inner is None:
            values.extend(self._value(field) for _ in range(length))
        elif depth:
            rows = [values.add() for _ in range(length)] if not len(values) else list(values)
            for row in rows[:3]:
                self._change(row, depth - 1)

    def _value(self, field: Field) -> Any:
        random, kind = self._random, field.cpp_type
        if kind in ENDS:
            is_id = self._ids and random.random() < 0.5
            return random.choice(self._ids if is_id and kind in IDS else ENDS[kind])
        if field.enum_type is not None:
            return random.choice([*field.enum_type.values_by_number, 99, -1])
        makers: dict[int, Callable[[], Any]] = {
            Field.CPPTYPE_BOOL: lambda: random.random() < 0.5,
            Field.CPPTYPE_DOUBLE: lambda: random.choice(REALS),
            Field.CPPTYPE_FLOAT: lambda: random.choice(REALS),
        }
        if kind in makers:
            return makers[kind]()
        if field.type == Field.TYPE_BYTES:
            return random.choice(BYTES)
        return random.choice(QUEUES if "queue" in field.name else WORDS)


IDS = {Field.CPPTYPE_INT64, Field.CPPTYPE_UINT64}


def mutated(random: Random, good: bytes) -> bytes:
    """Bytes that are nearly a message, or nothing like one."""
    data = bytearray(good)
    kind = random.randrange(6)
    if kind == 0 or not data:
        return random.randbytes(random.randrange(40))
    place = random.randrange(len(data))
    if kind == 1:
        data[place] = random.randrange(256)
    elif kind == 2:
        data[place] ^= 1 << random.randrange(8)
    elif kind == 3:
        del data[place : place + random.randrange(1, 5)]
    elif kind == 4:
        data[place:place] = random.randbytes(random.randrange(1, 12))
    else:
        data += data[random.randrange(len(data)) :]
    return bytes(data)

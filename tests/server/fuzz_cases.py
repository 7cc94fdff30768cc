"""What the fuzzer sends: every method that a server has, messages that are nearly right, and whole
requests that are not. All of it follows from a `Random`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from tests.server.calling import PACKAGE, SERVICES
from tests.server.fuzzing import Maker, mutated
from tests.server.valid_requests import VALID

HEALTH = "grpc.health.v1.Health"
REFLECTION = "grpc.reflection.v1alpha.ServerReflection"
OTHERS = (f"{PACKAGE}.TestService", "externalscaler.ExternalScaler", HEALTH, REFLECTION)
# Calls that may wait for something: the fuzzer gives them up.
WAITING = {"Pull", "Stream", "Wait", "Watch", "StreamIsActive", "ServerReflectionInfo"}


@dataclass(frozen=True, slots=True)
class Method:
    """A method, and a good request of it."""

    path: str
    descriptor: MethodDescriptor
    good: Message
    good_json: Any

    @property
    def is_unary(self) -> bool:
        """Returns whether both sides send one message."""
        return not self.descriptor.client_streaming and not self.descriptor.server_streaming

    @property
    def waits(self) -> bool:
        """Returns whether a call may wait."""
        return self.descriptor.name in WAITING


def all_methods() -> list[Method]:
    """Every method of a server, also those that are for everybody, and those that it refuses."""
    names = [*(f"{PACKAGE}.{name}" for name in SERVICES), *OTHERS]
    found = [
        _method(f"/{name}/{method.name}", method)
        for name in names
        for method in Default().FindServiceByName(name).methods
    ]
    newer = [one for one in found if REFLECTION in one.path]
    return found + [_method(one.path.replace("v1alpha", "v1"), one.descriptor) for one in newer]


def _method(path: str, descriptor: MethodDescriptor) -> Method:
    good_json = VALID.get(path.removeprefix(f"/{PACKAGE}."), {})
    good = ParseDict(good_json, GetMessageClass(descriptor.input_type)())
    return Method(path, descriptor, good, good_json)


def message_of(random: Random, maker: Maker, method: Method) -> bytes:
    """A message that is nearly one of the method."""
    raw = maker.fuzzed(method.good)
    return wilder(random, raw) if random.random() < 0.3 else raw


def frames_of(random: Random, maker: Maker, method: Method) -> list[bytes]:
    """The messages of one call: several where the caller may send a stream."""
    if not method.descriptor.client_streaming:
        return [message_of(random, maker, method)]
    opening = method.good.SerializeToString()
    first = opening if random.random() < 0.5 else message_of(random, maker, method)
    return [first, *(message_of(random, maker, method) for _ in range(random.randrange(3)))]


def varint(number: int) -> bytes:
    """A number as protobuf writes it."""
    text = b""
    while number > 0x7F:
        text += bytes([number & 0x7F | 0x80])
        number >>= 7
    return text + bytes([number])


def wilder(random: Random, raw: bytes) -> bytes:
    """A message with what no library would write in it."""
    tag = random.choice([1, 2, 3, 15, 16, 19_000, 2**29 - 1, 2**29]) << 3
    extra = random.choice(
        [
            varint(tag) + b"\xff" * 9 + b"\x01",  # the largest number
            varint(tag) + b"\xff" * 12,  # a number without an end
            varint(tag | 2) + varint(2**31 - 1),  # a length beyond the message
            varint(tag | 2) + varint(2**63),
            varint(tag | 2) + b"\x04\xff\xfe\x00\x80",  # text that is no UTF-8
            varint(tag | 3) * 200,  # groups in groups
            varint(tag | 3) * 50 + varint(tag | 4) * 50,
            varint(tag | 4),
            varint(tag | 5) + b"\1\2",  # half a number
            varint(tag | 1) + bytes(8),
            varint(tag | 6),  # wire types that there are none of
            varint(tag | 7),
            b"\x00",
            nested(random, tag),
        ]
    )
    place = random.choice([0, len(raw), random.randrange(len(raw) + 1)])
    return raw[:place] + extra + raw[place:]


def nested(random: Random, tag: int) -> bytes:
    """Messages in messages in messages."""
    inner = b""
    for _ in range(random.choice([10, 99, 101, 500])):
        inner = varint(tag | 2) + varint(len(inner)) + inner
    return inner


VALUES: list[Any] = [
    None, True, 0, -1, 1.5, 1e300, 2**63, -(2**70), "", "x", "1", "-1", "1e3", "NaN", "Infinity",
    "1.5s", "-1s", "9" * 30 + "s", "2026-01-31T12:00:00Z", "0000-00-00T00:00:00Z", "2026-13-01T00Z",
    "a.b,c", "YQ==", "====", "\ud800", "\0", "é" * 300, [], [[]], [None], {}, {"": {}}, {"a": 1},
    ["x"] * 50, [{}] * 50, "x" * 70_000,
]  # fmt: skip
# Texts of JSON that no library writes, or that few read alike.
TEXTS: list[Callable[[bytes], bytes]] = [
    lambda _: b"[" * 100_000,
    lambda _: b'{"queue":' * 5_000 + b"1" + b"}" * 5_000,
    lambda _: b'{"queue": ' + b"9" * 5_000 + b"}",
    lambda _: b'{"pageSize": 1e999999}',
    lambda _: b'{"pageSize": NaN, "queue": -Infinity}',
    lambda good: b"\xef\xbb\xbf" + good,
    lambda good: good.replace(b'"', b"'"),
    lambda good: good[: len(good) // 2],
    lambda good: good + good,
    lambda good: good.replace(b"a", b"\xff"),
    lambda good: good.decode().encode("utf-16"),
    lambda good: good.replace(b"{", b'{"queue": "a", "queue": "b", ', 1),
    lambda _: b'{"' + b"x" * 100_000 + b'": 1}',
    lambda _: b"null",
    lambda _: b'"text"',
    lambda _: b"",
]


def json_of(random: Random, good: Any) -> bytes:
    """JSON like a good request with something wrong in it, or bytes that are nearly JSON."""
    text = json.dumps(good)
    kind = random.random()
    if kind < 0.25:
        return mutated(random, text.encode())
    if kind < 0.4:
        return random.choice(TEXTS)(text.encode())
    value = json.loads(text)
    for _ in range(1 + random.randrange(2)):
        change(random, value)
    return json.dumps(value).encode()


def change(random: Random, value: Any) -> None:
    """Replaces, adds or removes one member, at any depth."""
    if isinstance(value, list) and value:
        place = random.randrange(len(value))
        if isinstance(value[place], (dict, list)) and random.random() < 0.7:
            change(random, value[place])
        else:
            value[place] = deepcopy(random.choice(VALUES))
    elif isinstance(value, dict):
        name = random.choice([*value, "unknown", "queue", "__class__", "pageSize"])
        if isinstance(value.get(name), (dict, list)) and random.random() < 0.6:
            change(random, value[name])
        elif random.random() < 0.2:
            value.pop(name, None)
        else:
            value[name] = deepcopy(random.choice(VALUES))


def one_of(random: Random, usual: str, others: Sequence[str], share: float = 0.1) -> str:
    """Mostly what is usual."""
    return random.choice(others) if random.random() < share else usual

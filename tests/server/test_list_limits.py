"""Every list and map of every request has a limit, and meets it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from jobline_server.rpc.validate.list_limits import LIST_LIMITS, NOT_SERVED
from tests.server.calling import all_rpcs, call, encoded, method_of
from tests.server.test_wire_fuzz import VALID

Path = tuple[FieldDescriptor, ...]
# Messages of others that hold no list of their own.
PLAIN = {"google.protobuf.Duration", "google.protobuf.Timestamp"}


def lists_of(message: Descriptor, before: Path = ()) -> Iterator[Path]:
    """The ways from a request to each list and map in it."""
    for field in message.fields:
        path = (*before, field)
        inner = field.message_type
        if field.is_repeated:
            yield path
        if inner is not None and not inner.GetOptions().map_entry and inner.full_name not in PLAIN:
            yield from lists_of(inner, path)


CASES = [(rpc, path) for rpc in all_rpcs() for path in lists_of(method_of(rpc).input_type)]


def name_of(path: Path) -> str:
    """As a person writes it."""
    return ".".join(field.name for field in path)


def fill(field: FieldDescriptor, message: Any, count: int) -> None:
    """Puts so many entries into a list or a map."""
    values = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        for index in range(count):
            values[f"name{index}"] = "value"
    elif field.message_type is not None:
        for _ in range(count):
            values.add()
    else:
        one: Any = {FieldDescriptor.TYPE_STRING: "a", FieldDescriptor.TYPE_BYTES: b"a"}
        values.extend([one.get(field.type, 1)] * count)


def overfull(rpc: str, path: Path) -> list[bytes]:
    """What is sent for a list with one entry more than its limit, in a request that is good."""
    message: Message = GetMessageClass(method_of(rpc).input_type)()
    good = {} if rpc == "JobService/Stream" else VALID[rpc]
    ParseDict(good, message)
    *outer, last = path
    holder: Any = message
    for field in outer:
        inner = getattr(holder, field.name)
        holder = (inner[0] if inner else inner.add()) if field.is_repeated else inner
    holder.ClearField(last.name)
    fill(last, holder, LIST_LIMITS[last.full_name] + 1)
    if rpc != "JobService/Stream" or path[0].name == "open":
        return [message.SerializeToString()]
    return [encoded(rpc, {"open": {"queues": [{"queue": "q"}]}}), message.SerializeToString()]


def test_every_list_of_every_request_has_a_limit() -> None:
    """Trial E2: whoever adds a list to a request gives it a limit in the table."""
    known = {path[-1].full_name for _, path in CASES}

    assert known == set(LIST_LIMITS)


@pytest.mark.parametrize(("rpc", "path"), CASES, ids=lambda value: str(value)[:30])
async def test_a_list_over_its_limit_is_refused(filled: aio.Channel, rpc: str, path: Path) -> None:
    """Trial E2: with TOO_LARGE, whatever else the request holds."""
    refusal = await call(filled, rpc, overfull(rpc, path))

    assert refusal is not None, name_of(path)
    served = LIST_LIMITS[path[-1].full_name] != NOT_SERVED
    assert refusal.reason == ("TOO_LARGE" if served else "NOT_SERVED"), (name_of(path), refusal)


async def test_a_frame_is_limited_as_a_whole(filled: aio.Channel) -> None:
    """Trial E2: a thousand settles of a thousand leases each are too much for one frame."""
    settle = {"ackIds": {"repeat": 1_000, "of": "1"}, "ackDeliveries": {"repeat": 1_000, "of": "1"}}
    frames = ({"open": {"queues": [{"queue": "q"}]}}, {"settles": {"repeat": 1_000, "of": settle}})

    refusal = await call(
        filled, "JobService/Stream", [encoded("JobService/Stream", frame) for frame in frames]
    )

    assert refusal is not None
    assert (refusal.reason, refusal.field) == ("TOO_LARGE", "settles")

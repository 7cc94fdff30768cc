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
from tests.server.test_bad_input import DEFINITE
from tests.server.valid_requests import VALID

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


def texts_of(message: Descriptor, before: Path = ()) -> Iterator[Path]:
    """The ways from a request to each text and each field of bytes in it."""
    for field in message.fields:
        path, inner = (*before, field), field.message_type
        if inner is None and field.type in (
            FieldDescriptor.TYPE_STRING,
            FieldDescriptor.TYPE_BYTES,
        ):
            yield path
        elif inner is not None and inner.full_name not in PLAIN:
            yield from texts_of(inner, path)


# Texts that may be longer than any name, and why.
LONG_TEXTS = {
    "jobline.v1.BatchCallback.data": "a payload, ≤ 64 KiB",
    "jobline.v1.BatchCallback.text": "a payload, ≤ 64 KiB",
    "jobline.v1.NewJob.data": "a payload, by the server's setting",
    "jobline.v1.NewJob.text": "a payload, by the server's setting",
    "jobline.v1.PushRequest.payloads": "payloads, by the server's setting",
    "jobline.v1.AckItem.result": "1 MiB",
    "jobline.v1.ExtendItem.phase_result": "1 MiB",
    "jobline.v1.JobError.message": "cut, so that a job can always fail",
    "jobline.v1.JobError.stack": "cut, so that a job can always fail",
    "jobline.v1.JobError.details": "cut, so that a job can always fail",
    "jobline.v1.LogLines.lines": "cut, so that a lease can always be kept",
    "jobline.v1.StreamLog.lines": "cut, so that a lease can always be kept",
    "jobline.v1.ExtendItem.message": "cut, so that a lease can always be kept",
}
# Longer than any other text may be.
LONG = 100_000
TEXTS = [
    (rpc, path)
    for rpc in all_rpcs()
    for path in texts_of(method_of(rpc).input_type)
    if path[-1].full_name not in LONG_TEXTS
]
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


def good_and_holder(rpc: str, path: Path) -> tuple[Message, Any]:
    """A request that is good, and the message or the map in it that holds the last field."""
    message: Message = GetMessageClass(method_of(rpc).input_type)()
    is_later_frame = rpc == "JobService/Stream" and path[0].name != "open"
    ParseDict({} if is_later_frame else VALID[rpc], message)
    holder: Any = message
    for field in path[:-1]:
        inner = getattr(holder, field.name)
        is_list = field.is_repeated and not hasattr(inner, "keys")
        holder = (inner[0] if len(inner) else inner.add()) if is_list else inner
    return message, holder


def frames_of(rpc: str, path: Path, message: Message) -> list[bytes]:
    """What is sent: on a stream, frames that come later follow a good first one."""
    opening = {"open": {"queues": [{"queue": "q"}]}}
    is_later_frame = rpc == "JobService/Stream" and path[0].name != "open"
    before = [encoded(rpc, opening)] if is_later_frame else []
    return [*before, message.SerializeToString()]


def overfull(rpc: str, path: Path) -> list[bytes]:
    """What is sent for a list with one entry more than its limit."""
    message, holder = good_and_holder(rpc, path)
    holder.ClearField(path[-1].name)
    fill(path[-1], holder, LIST_LIMITS[path[-1].full_name] + 1)
    return frames_of(rpc, path, message)


def overlong(rpc: str, path: Path) -> list[bytes]:
    """What is sent for a text that is too long."""
    message, holder = good_and_holder(rpc, path)
    last = path[-1]
    text: Any = "x" * LONG if last.type == FieldDescriptor.TYPE_STRING else bytes(LONG)
    if hasattr(holder, "keys"):
        key, value = ("x" * LONG, "v") if last.name == "key" else ("k", "x" * LONG)
        holder[key] = value
    elif last.is_repeated:
        getattr(holder, last.name).append(text)
    else:
        setattr(holder, last.name, text)
    return frames_of(rpc, path, message)


def test_every_list_of_every_request_has_a_limit() -> None:
    """Trial E2: each list that is added to a request needs a limit in the table."""
    known = {path[-1].full_name for _, path in CASES}

    # KEDA's own service has tests of its own.
    assert known == {name for name in LIST_LIMITS if not name.startswith("externalscaler.")}


@pytest.mark.parametrize(("rpc", "path"), CASES, ids=lambda value: str(value)[:30])
async def test_a_list_over_its_limit_is_refused(filled: aio.Channel, rpc: str, path: Path) -> None:
    """Trial E2: with TOO_LARGE, whatever else the request holds."""
    refusal = await call(filled, rpc, overfull(rpc, path))

    assert refusal is not None, name_of(path)
    served = LIST_LIMITS[path[-1].full_name] != NOT_SERVED
    assert refusal.reason == ("TOO_LARGE" if served else "NOT_SERVED"), (name_of(path), refusal)


@pytest.mark.parametrize(("rpc", "path"), TEXTS, ids=lambda value: str(value)[:30])
async def test_a_text_that_is_too_long_is_refused(
    filled: aio.Channel, rpc: str, path: Path
) -> None:
    """Trial E2: every text has a limit, but for those that are payloads or are cut."""
    refusal = await call(filled, rpc, overlong(rpc, path))

    assert refusal is not None, name_of(path)
    assert refusal.code in DEFINITE, (name_of(path), refusal)


async def test_a_frame_is_limited_as_a_whole(filled: aio.Channel) -> None:
    """Trial E2: a thousand settles of a thousand leases each are too much for one frame."""
    settle = {"ackIds": {"repeat": 1_000, "of": "1"}, "ackDeliveries": {"repeat": 1_000, "of": "1"}}
    frames = ({"open": {"queues": [{"queue": "q"}]}}, {"settles": {"repeat": 1_000, "of": settle}})

    refusal = await call(
        filled, "JobService/Stream", [encoded("JobService/Stream", frame) for frame in frames]
    )

    assert refusal is not None
    assert (refusal.reason, refusal.field) == ("TOO_LARGE", "settles")

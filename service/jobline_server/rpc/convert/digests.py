"""Digests that detect another call with the same request id.

Trace context is no part of the digest of a call that a program repeats itself: it does so in
another span. https://www.w3.org/TR/trace-context/
"""

from __future__ import annotations

from typing import TypeVar
from zlib import crc32

from google.protobuf.message import Message

from jobline.v1 import flow_service_pb2, job_pb2, job_service_pb2

TRACE_HEADERS = ("traceparent", "tracestate")

M = TypeVar("M", bound=Message)


def digest_of(message: Message) -> int:
    """Returns the length of a message in the upper half, a checksum in the lower. That is enough to
    detect mistakes, and every push of our clients pays for it.
    """
    # Deterministic, because the order of a map's entries differs between two sends of one message.
    content = message.SerializeToString(deterministic=True)
    return len(content) << 32 | crc32(content)


def digest_of_push(request: job_service_pb2.PushRequest) -> int:
    """Returns the digest of a push but for its trace context."""
    has_columns = any(column.key in TRACE_HEADERS for column in request.header_columns)
    if has_columns or _is_traced(request) or any(map(_is_traced, request.jobs)):
        request = _copy_of(request)
        columns = [each for each in request.header_columns if each.key not in TRACE_HEADERS]
        del request.header_columns[:]
        request.header_columns.extend(columns)
        _untrace(request)
        for job in request.jobs:
            _untrace(job)
    return digest_of(request)


def digest_with(
    digest: int, message: flow_service_pb2.FlowJob | flow_service_pb2.FlowParent
) -> int:
    """Returns the digest with one more message of a flow, but for its trace context."""
    if isinstance(message, flow_service_pb2.FlowJob) and _is_traced(message.job):
        message = _copy_of(message)
        _untrace(message.job)
    content = message.SerializeToString(deterministic=True)
    length, checksum = (digest >> 32) + len(content), digest & 0xFFFF_FFFF
    return length << 32 | crc32(content, crc32(b"%d:" % len(content), checksum))


def _is_traced(owner: job_service_pb2.PushRequest | job_pb2.NewJob) -> bool:
    headers = owner.options.headers
    return any(name in headers for name in TRACE_HEADERS)


def _untrace(owner: job_service_pb2.PushRequest | job_pb2.NewJob) -> None:
    if not _is_traced(owner):
        return
    for name in TRACE_HEADERS:
        owner.options.headers.pop(name, None)
    # As if there had never been one: a repeat may be in no span.
    if not owner.options.ByteSize():
        owner.ClearField("options")


def _copy_of(message: M) -> M:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy

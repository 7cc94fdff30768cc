"""Calls any RPC on bytes and reads its error, without message classes."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2
from grpc import aio

# Loads the descriptors of every service.
from jobline_server.rpc import services  # noqa: F401

PACKAGE = "jobline.v1"
# The error of grpc.aio's client for a write after the end of the call.
CLIENTS_OWN = "Internal error from Core"
SERVICES = (
    "JobService",
    "JobAdminService",
    "QueueService",
    "LimiterService",
    "ScheduleService",
    "BatchService",
    "WebhookService",
    "FlowService",
    "DeadLetterService",
    "AdminService",
)


@dataclass(frozen=True)
class Refusal:
    """The code, reason and details of an error."""

    code: str
    message: str
    reason: str
    domain: str
    field: str
    details: tuple[str, ...]


def method_of(rpc: str) -> MethodDescriptor:
    """The descriptor of `Service/Method`."""
    service, name = rpc.split("/")
    found: ServiceDescriptor = descriptor_pool.Default().FindServiceByName(f"{PACKAGE}.{service}")
    return found.methods_by_name[name]


def all_rpcs() -> list[str]:
    """Every RPC as `Service/Method`."""
    pool = descriptor_pool.Default()
    found = (pool.FindServiceByName(f"{PACKAGE}.{name}") for name in SERVICES)
    return [f"{service.name}/{method.name}" for service in found for method in service.methods]


def expand(value: Any) -> Any:
    """The table's short forms, written out."""
    if isinstance(value, list):
        return [expand(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "repeat" in value:
        return [expand(value["of"])] * value["repeat"]
    if isinstance(value.get("text"), int):
        return value.get("of", "x") * value["text"]
    if isinstance(value.get("bytes"), int):
        return base64.b64encode(bytes(value["bytes"])).decode()
    if isinstance(value.get("entries"), int):
        return {f"name{index}": "value" for index in range(value["entries"])}
    return {name: expand(item) for name, item in value.items()}


def encoded(rpc: str, request: dict[str, Any]) -> bytes:
    """The bytes of a request of the table: JSON, or `hex`."""
    if set(request) == {"hex"}:
        return bytes.fromhex(request["hex"])
    message = GetMessageClass(method_of(rpc).input_type)()
    return ParseDict(expand(request), message).SerializeToString()


# Without serializers a channel carries bytes, which its types do not know.
BytesChannel = Any


async def call(channel: BytesChannel, rpc: str, requests: Sequence[bytes]) -> Refusal | None:
    """Calls an RPC with these messages; what it was refused with, or None."""
    method = method_of(rpc)
    path = f"/{PACKAGE}.{rpc}"
    try:
        if method.client_streaming:
            await _stream(channel.stream_stream(path)(), requests)
        elif method.server_streaming:
            async for _ in channel.unary_stream(path)(requests[0]):
                break
        else:
            await channel.unary_unary(path)(requests[0])
    except aio.AioRpcError as error:
        return refusal_of(error)
    return None


async def _stream(stream: Any, requests: Sequence[bytes]) -> None:
    for request in requests:
        # Only the last one is refused: a write that came after the refusal would hide it.
        await stream.write(request)
    await stream.done_writing()
    while await stream.read() is not aio.EOF:
        pass
    if await stream.code() is not grpc.StatusCode.OK:
        raise aio.AioRpcError(
            await stream.code(),
            await stream.initial_metadata(),
            await stream.trailing_metadata(),
            details=await stream.details(),
        )


def refusal_of(error: aio.AioRpcError) -> Refusal:
    """Returns the parts of an error, details included."""
    metadata = dict(error.trailing_metadata() or ())
    status = status_pb2.Status.FromString(metadata.get("grpc-status-details-bin", b""))
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    kinds = []
    for detail in status.details:
        kinds.append(detail.TypeName().removeprefix("google.rpc."))
        detail.Unpack(info)
        detail.Unpack(bad)
    return Refusal(
        code=error.code().name,
        message=error.details() or "",
        reason=info.reason,
        domain=info.domain,
        field=bad.field_violations[0].field if bad.field_violations else "",
        details=tuple(kinds),
    )

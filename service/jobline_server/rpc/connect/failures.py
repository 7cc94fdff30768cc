"""Errors as the Connect protocol writes them: the table from gRPC's codes, and their JSON."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.any_pb2 import Any
from google.protobuf.json_format import MessageToDict
from google.protobuf.message_factory import GetMessageClass
from google.rpc import status_pb2

from jobline_server.rpc.errors import DETAILS_KEY, Status

JSON = "application/json"
# The last frame of a reply to a call that is a stream.
END_OF_STREAM = 0x02

# The name and the HTTP status of each code, by the protocol's table.
CODES: dict[grpc.StatusCode, tuple[str, int]] = {
    grpc.StatusCode.CANCELLED: ("canceled", 499),
    grpc.StatusCode.UNKNOWN: ("unknown", 500),
    grpc.StatusCode.INVALID_ARGUMENT: ("invalid_argument", 400),
    grpc.StatusCode.DEADLINE_EXCEEDED: ("deadline_exceeded", 504),
    grpc.StatusCode.NOT_FOUND: ("not_found", 404),
    grpc.StatusCode.ALREADY_EXISTS: ("already_exists", 409),
    grpc.StatusCode.PERMISSION_DENIED: ("permission_denied", 403),
    grpc.StatusCode.RESOURCE_EXHAUSTED: ("resource_exhausted", 429),
    grpc.StatusCode.FAILED_PRECONDITION: ("failed_precondition", 400),
    grpc.StatusCode.ABORTED: ("aborted", 409),
    grpc.StatusCode.OUT_OF_RANGE: ("out_of_range", 400),
    grpc.StatusCode.UNIMPLEMENTED: ("unimplemented", 501),
    grpc.StatusCode.INTERNAL: ("internal", 500),
    grpc.StatusCode.UNAVAILABLE: ("unavailable", 503),
    grpc.StatusCode.DATA_LOSS: ("data_loss", 500),
    grpc.StatusCode.UNAUTHENTICATED: ("unauthenticated", 401),
}


class Reply(NamedTuple):
    """A reply of the HTTP port."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


@dataclass(slots=True)
class Failed(Exception):
    """Ends a call with a status. `http` replaces the HTTP status of its code; `stream` is the media
    type of a call in the framing of streams.
    """

    status: Status
    http: int = 0
    stream: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list)

    def reply(self) -> Reply:
        """Returns the error as a reply."""
        if self.stream:
            return end_of_stream(self.status, self.stream)
        return error_reply(self.status, self.http, self.headers)


def error_reply(status: Status, http: int = 0, headers: Sequence[tuple[str, str]] = ()) -> Reply:
    """Returns the reply with the JSON of an error."""
    body = json.dumps(error_of(status), ensure_ascii=False).encode()
    named = [("content-type", JSON), *headers]
    if status.code is grpc.StatusCode.UNAUTHENTICATED:
        # HTTP asks for it (RFC 9110, 15.5.2).
        named.append(("www-authenticate", "Bearer"))
    return Reply(http or CODES[status.code][1], named, body)


def end_of_stream(status: Status, media_type: str) -> Reply:
    """Returns the reply to a call of a stream: one frame, which has the error."""
    body = json.dumps({"error": error_of(status)}, ensure_ascii=False).encode()
    head = bytes([END_OF_STREAM]) + len(body).to_bytes(4, "big")
    return Reply(200, [("content-type", media_type)], head + body)


def error_of(status: Status) -> dict[str, object]:
    """Returns the JSON of an error. A detail has its bytes for programs, and `debug` for people."""
    error: dict[str, object] = {"code": CODES[status.code][0], "message": status.message}
    metadata = dict(status.metadata)
    if DETAILS_KEY in metadata:
        packed = status_pb2.Status.FromString(metadata[DETAILS_KEY])
        error["details"] = [_detail(detail) for detail in packed.details]
    return error


def _detail(packed: Any) -> dict[str, object]:
    name = packed.TypeName()
    message = GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(name))()
    message.ParseFromString(packed.value)
    value = b64encode(packed.value).decode().rstrip("=")
    return {"type": name, "value": value, "debug": MessageToDict(message)}

"""Serves calls over HTTP: one handler for all methods, by their descriptors.

`web` asks in this order: `refusal` with the head of a request, before its body is read; `answer`
with the body; `untaken` where the reply could not be written. All three run in one task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from grpc import aio

from jobline_server.engine.commands import Refused
from jobline_server.rpc.admission import Admission, ending
from jobline_server.rpc.connect.bodies import Bodies, too_long
from jobline_server.rpc.connect.failures import JSON, Failed, Reply, error_reply
from jobline_server.rpc.connect.heads import (
    Head,
    certificate_of,
    read_head,
    stream_type,
)
from jobline_server.rpc.connect.openapi import openapi
from jobline_server.rpc.delivery import expect_reply, handle_untaken
from jobline_server.rpc.errors import Status, StatusError, bug_status, make_status, status_of
from jobline_server.rpc.gates import too_many
from jobline_server.rpc.guard import UnaryAnswer
from jobline_server.rpc.validate import fields
from jobline_server.telemetry.log import logger

LOG = logger("rpc")

Headers = Mapping[str, str]
AUTHORIZATION = "authorization"
PEM = "x509_pem_cert"
JSON_HEAD = Head(JSON, "identity", None)
TIME_OVER = make_status(grpc.StatusCode.DEADLINE_EXCEEDED, "", "the time of the call is over")


class HttpCall:
    """A call over HTTP; its handler gets it in place of gRPC's context."""

    __slots__ = ("_headers", "_peer", "status")

    def __init__(self, peer: str, headers: Headers) -> None:
        self._peer = peer
        self._headers = headers
        self.status: Status | None = None

    def peer(self) -> str:
        """Returns who calls, as `ServicerContext.peer` does."""
        return self._peer

    def invocation_metadata(self) -> Sequence[tuple[str, str]]:
        """Returns the header that says who calls."""
        found = self._headers.get(AUTHORIZATION)
        return () if found is None else ((AUTHORIZATION, found),)

    def auth_context(self) -> Mapping[str, Sequence[bytes]]:
        """Returns the caller's certificate, as gRPC does."""
        found = certificate_of(self._headers)
        return {PEM: [found]} if found else {}

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Sequence[tuple[str, Any]] = (),
    ) -> NoReturn:
        """Ends the call with a status, as `ServicerContext.abort` does."""
        self.status = Status(code, details, tuple(trailing_metadata))
        raise aio.AbortError("Locally aborted.")


class ConnectCalls:
    """All methods, by path. `grpc_address` is where streams are served."""

    def __init__(
        self,
        answers: Mapping[str, UnaryAnswer],
        methods: Mapping[str, MethodDescriptor],
        admission: Admission,
        *,
        message_bytes_max: int,
        grpc_address: str,
        version: str,
    ) -> None:
        self._answers = answers
        self._methods = methods
        self._admission = admission
        self._grpc_address = grpc_address
        self._bodies = Bodies(message_bytes_max)
        self._version = version
        self._document = b""
        self._incidents = 0
        self.body_bytes_max = message_bytes_max

    async def describe(self) -> Reply:
        """Returns the OpenAPI document of all methods that it serves; made at the first call."""
        if not self._document:
            served = {
                path: self._methods[path] for path in sorted(self._methods) if path in self._answers
            }
            self._document = await self._bodies.make_json(lambda: openapi(served, self._version))
        return Reply(200, [("content-type", JSON)], self._document)

    def close(self) -> None:
        """Ends its thread."""
        self._bodies.close()

    def refusal(self, verb: str, path: str, headers: Headers) -> Reply | None:
        """Returns the refusal of a request that can be told by its head, or None."""
        try:
            self._check(verb, path, headers)
        except Failed as failed:
            return failed.reply()
        except Refused as refused:
            return error_reply(status_of(refused))
        return None

    def _check(self, verb: str, path: str, headers: Headers) -> None:
        if path not in self._methods:
            raise Failed(_unimplemented("there is no such method"), http=404)
        if verb != "POST":
            status = _unimplemented("a method is called by POST")
            raise Failed(status, http=405, headers=[("allow", "POST")])
        if path not in self._answers:
            raise self._not_unary(path, headers)
        read_head(headers)
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self.body_bytes_max:
            raise self._body_too_large()
        if self._admission.ending:
            raise ending()
        self._admission.check_room()

    def too_large(self) -> Reply:
        """Returns the refusal of a body over `body_bytes_max`."""
        return error_reply(status_of(self._body_too_large()))

    def _body_too_large(self) -> Refused:
        return fields.too_large("", too_long(self.body_bytes_max))

    def too_many(self) -> Reply:
        """Returns the refusal of a large body while as many are read as there is room for."""
        return error_reply(status_of(too_many("large requests")))

    def not_allowed(self, message: str) -> Reply:
        """Returns the refusal of a caller who may not call."""
        return error_reply(make_status(grpc.StatusCode.PERMISSION_DENIED, "", message))

    async def answer(self, path: str, headers: Headers, body: bytes, peer: str) -> Reply:
        """Returns the reply to a call that `refusal` let pass."""
        expect_reply()
        head = read_head(headers)
        try:
            if head.timeout_ms == 0:
                return error_reply(TIME_OVER)
            async with asyncio.timeout(head.seconds):
                return await self._answer(path, head, body, HttpCall(peer, headers))
        except TimeoutError:
            return error_reply(TIME_OVER)
        except Refused as refused:
            return error_reply(status_of(refused))
        except StatusError as error:
            return error_reply(error.status)
        except Exception as error:
            # The caller gets a number, and no text of the exception.
            self._incidents += 1
            incident = f"http-{self._incidents}"
            LOG.exception("bug", incident=incident, method=path, exc_info=error)
            return error_reply(bug_status(incident))

    async def _answer(self, path: str, head: Head, body: bytes, call: HttpCall) -> Reply:
        method = self._methods[path]
        raw = await self._bodies.read(body, head, method.input_type)
        reply = await self._answers[path](raw, call)
        if call.status is not None:
            return error_reply(call.status)
        try:
            written = await self._bodies.write(reply, head, method.output_type)
        except BaseException:
            self.untaken()
            raise
        return Reply(200, [("content-type", head.media_type)], written)

    async def ask(self, path: str, request: Message, peer: str, headers: Headers) -> bytes:
        """Returns the reply's bytes to a call that the server makes for a caller, who shows the
        same for it. Raises `StatusError`.
        """
        call = HttpCall(peer, headers)
        # A call counts as open until its task ends, and that of a stream may never end.
        reply = await asyncio.create_task(self._make(path, request.SerializeToString(), call))
        if call.status is not None:
            raise StatusError(call.status)
        return reply

    async def _make(self, path: str, raw: bytes, call: HttpCall) -> bytes:
        return await self._answers[path](raw, call)

    async def json_of(self, path: str, reply: bytes) -> bytes:
        """Returns the JSON of a reply to a call."""
        return await self._bodies.write(reply, JSON_HEAD, self._methods[path].output_type)

    @contextmanager
    def writing(self, reply_bytes: int) -> Iterator[None]:
        """Counts a reply until it is written, as replies of gRPC are."""
        self._admission.reply_bytes += reply_bytes
        try:
            yield
        finally:
            self._admission.reply_bytes -= reply_bytes

    def untaken(self) -> None:
        """Undoes what only a caller who got the reply may keep: its leases."""
        handle_untaken()

    def _not_unary(self, path: str, headers: Headers) -> Failed:
        """Returns the refusal of a stream, in Connect's framing for those who call it so."""
        message = f"{path[1:]} is a stream: call it by gRPC, at {self._grpc_address}"
        status = make_status(grpc.StatusCode.UNIMPLEMENTED, "NOT_SERVED", message)
        return Failed(status, stream=stream_type(headers))


def _unimplemented(message: str) -> Status:
    return make_status(grpc.StatusCode.UNIMPLEMENTED, "", message)

"""Calls over HTTP: passes requests for methods to the handler that `app` hands in, and everything
else to the pages. This module knows no method, no message and no code of an error.

Bodies are read here, because here is the socket: a request that can be refused by its head is
refused before its body is read.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol

from starlette.middleware.cors import CORSMiddleware

from jobline_server.web.exchange import (
    BodyRoom,
    CallerGone,
    Message,
    Receive,
    Send,
    TooLarge,
    TooMany,
    Watch,
    write,
)

# A method: `/package.Service/Method`. Pages have no such path.
METHOD = re.compile(r"/\w+(?:\.\w+)+/\w+", re.ASCII)

# The page that describes the calls.
DESCRIPTION = "/openapi.json"
# How long a browser need not ask again; more than two hours is too long for some.
PREFLIGHT_SECONDS = 7_200

Reply = tuple[int, Sequence[tuple[str, str]], bytes]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class Calls(Protocol):
    """What serves the calls. A reply has a status, headers and a body."""

    body_bytes_max: int

    def refusal(self, verb: str, path: str, headers: Mapping[str, str]) -> Reply | None:
        """Returns the refusal of a request that can be told by its head."""

    def too_large(self) -> Reply:
        """Returns the refusal of a body over `body_bytes_max`."""

    def too_many(self) -> Reply:
        """Returns the refusal of a large body while there is no room for it."""

    def not_allowed(self, message: str) -> Reply:
        """Returns the refusal of a caller who may not call."""

    async def describe(self) -> Reply:
        """Returns the document that describes all calls."""

    async def answer(self, path: str, headers: Mapping[str, str], body: bytes, peer: str) -> Reply:
        """Returns the reply to a call."""

    def writing(self, reply_bytes: int) -> AbstractContextManager[None]:
        """Counts a reply while it is written."""

    def untaken(self) -> None:
        """Takes note that the reply of the running task's call was not written."""


class CallsBeforePages:
    """The application of the port. `origins` are those of web pages that may call, or `*`."""

    def __init__(self, calls: Calls, pages: App, origins: Collection[str] = ()) -> None:
        self._calls = calls
        self._pages = pages
        self._origins = origins
        self._room = BodyRoom()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["path"] == DESCRIPTION and scope["method"] in {"GET", "HEAD"}:
            await write(send, *await self._calls.describe())
            return
        if not METHOD.fullmatch(scope["path"]):
            await self._pages(scope, receive, send)
            return
        with suppress(CallerGone):
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        path, headers = scope["path"], headers_of(scope)
        refused = self._refusal(scope["method"], path, headers)
        if refused is not None:
            await write(send, *refused)
            return
        try:
            async with (
                self._room.reading(receive, self._calls.body_bytes_max) as body,
                Watch(receive) as watch,
            ):
                reply = await self._calls.answer(path, headers, body, peer_of(scope))
                await self._write(send, reply, watch)
        except TooLarge:
            await write(send, *self._calls.too_large())
        except TooMany:
            await write(send, *self._calls.too_many())

    def _refusal(self, verb: str, path: str, headers: Mapping[str, str]) -> Reply | None:
        # Browsers name the page that calls. Without this, a page of anybody could reach a server on
        # the reader's own machine under a name of its own (DNS rebinding), where CORS is no guard.
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins and "*" not in self._origins:
            return self._calls.not_allowed("this origin is not one of http_cors_origins")
        return self._calls.refusal(verb, path, headers)

    async def _write(self, send: Send, reply: Reply, watch: Watch) -> None:
        try:
            await watch.check()
            with self._calls.writing(len(reply[2])):
                await write(send, *reply)
        except BaseException:
            self._calls.untaken()
            raise


def with_calls(calls: Calls, pages: App, origins: Collection[str]) -> App:
    """Returns the application of calls and pages, which pages of these origins may call."""
    app: App = CallsBeforePages(calls, pages, origins)
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=list(origins),
        allow_methods=["GET", "POST"],
        allow_headers=["content-type", "connect-protocol-version", "connect-timeout-ms"],
        max_age=PREFLIGHT_SECONDS,
    )


def headers_of(scope: Message) -> dict[str, str]:
    """Returns the headers by their lower-case names; several of a name are one, with commas."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def peer_of(scope: Message) -> str:
    """Returns who calls, as gRPC writes it, so that a host has the same name by either way."""
    client: tuple[str, Any] | None = scope["client"]
    if client is None:
        return "unix:"
    host, port = client
    return f"ipv6:%5B{host}%5D:{port}" if ":" in host else f"ipv4:{host}:{port}"

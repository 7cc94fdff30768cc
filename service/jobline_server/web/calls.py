"""Calls over HTTP: passes requests for methods, and for the stream of events, to the handlers that
`app` hands in, and everything else to the pages. This module knows no method, no message and no
code of an error.

Bodies are read here, because here is the socket: a request that can be refused by its head is
refused before its body is read.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol

from starlette.middleware.cors import CORSMiddleware

from jobline_server.web.event_stream import Events, EventStream, is_stream
from jobline_server.web.exchange import (
    CERTIFICATE,
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
from jobline_server.web.page_hosts import is_strange_page

# A method: `/package.Service/Method`. Pages have no such path.
METHOD = re.compile(r"/\w+(?:\.\w+)+/\w+", re.ASCII)

# Incoming webhooks: `/hooks/{queue}`.
HOOKS = "/hooks/"
# The page that describes the calls.
DESCRIPTION = "/openapi.json"
# How long a browser need not ask again; more than two hours is too long for some.
PREFLIGHT_SECONDS = 7_200

Reply = tuple[int, Sequence[tuple[str, str]], bytes]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class Served(Protocol):
    """What serves requests with a body. A reply has a status, headers and a body."""

    body_bytes_max: int

    def refusal(self, verb: str, path: str, headers: Mapping[str, str]) -> Reply | None:
        """Returns the refusal of a request that can be told by its head."""

    def too_large(self) -> Reply:
        """Returns the refusal of a body over `body_bytes_max`."""

    def too_many(self) -> Reply:
        """Returns the refusal of a large body while there is no room for it."""

    async def answer(self, path: str, headers: Mapping[str, str], body: bytes, peer: str) -> Reply:
        """Returns the reply to a request."""


class Calls(Served, Protocol):
    """What serves the calls."""

    def not_allowed(self, message: str) -> Reply:
        """Returns the refusal of a caller who may not call."""

    async def describe(self) -> Reply:
        """Returns the document that describes all calls."""

    def writing(self, reply_bytes: int) -> AbstractContextManager[None]:
        """Counts a reply while it is written."""

    def untaken(self) -> None:
        """Takes note that the reply of the running task's call was not written."""


class Gate(Protocol):
    """What authenticates callers, where that is wanted."""

    async def refusal_of_call(
        self, path: str, headers: Mapping[str, str], peer: str
    ) -> Reply | None:
        """Returns the refusal of a call that can be told by its head."""

    async def refusal_of_page(
        self, path: str, headers: Mapping[str, str], peer: str
    ) -> Reply | None:
        """Returns the refusal of a page."""


class CallsBeforePages:
    """The application of the port. `hooks` serves incoming webhooks; `origins` are those of web
    pages that may call, or `*`.
    """

    def __init__(
        self,
        calls: Calls,
        events: Events,
        hooks: Served,
        pages: App,
        origins: Collection[str] = (),
        gate: Gate | None = None,
    ) -> None:
        self._gate = gate
        self._calls = calls
        self._events = events
        self._hooks = hooks
        self._pages = pages
        self._origins = origins
        self._room = BodyRoom()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["path"] == DESCRIPTION and scope["method"] in {"GET", "HEAD"}:
            refused = await refusal_of_page(self._gate, scope)
            await write(send, *(refused or await self._calls.describe()))
            return
        path = scope["path"]
        served: Served | None = None
        if METHOD.fullmatch(path):
            served = self._calls
        elif path.startswith(HOOKS):
            served = self._hooks
        elif not is_stream(scope):
            await self._pages(scope, receive, send)
            return
        with suppress(CallerGone):
            if served is None:
                await self._follow(scope, receive, send)
            else:
                await self._serve(served, scope, receive, send)

    async def _follow(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = headers_of(scope)
        refused = self._refusal_of_page(headers) or self._refusal_of_host(headers)
        if refused is None:
            stream = EventStream(send)
            query = scope["query_string"].decode("latin-1")
            async with Watch(receive):
                refused = await self._events.follow(
                    scope["method"], query, headers, peer_of(scope), stream.write
                )
        if refused is None:
            await stream.end()
        else:
            await write(send, *refused)

    async def _serve(self, served: Served, scope: Message, receive: Receive, send: Send) -> None:
        path, headers = scope["path"], headers_of(scope)
        refused = self._refusal_of_page(headers)
        if refused is None and served is self._calls and self._gate is not None:
            refused = await self._gate.refusal_of_call(path, headers, peer_of(scope))
        if refused is None:
            refused = served.refusal(scope["method"], path, headers)
        if refused is not None:
            await write(send, *refused)
            return
        try:
            async with (
                self._room.reading(receive, served.body_bytes_max) as body,
                Watch(receive) as watch,
            ):
                reply = await served.answer(path, headers, body, peer_of(scope))
                await self._write(send, reply, watch)
        except TooLarge:
            await write(send, *served.too_large())
        except TooMany:
            await write(send, *served.too_many())

    def _refusal_of_page(self, headers: Mapping[str, str]) -> Reply | None:
        # Browsers name the page that calls. Without this, a page of anybody could reach a server on
        # the reader's own machine under a name of its own (DNS rebinding), where CORS is no guard.
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins and "*" not in self._origins:
            return self._calls.not_allowed("this origin is not one of http_cors_origins")
        return None

    def _refusal_of_host(self, headers: Mapping[str, str]) -> Reply | None:
        # Nor do browsers name the page that gets something under its own name.
        if "origin" not in headers and is_strange_page(headers, self._origins):
            return self._calls.not_allowed(
                "a browser may not read events under this host name; add its origin, such as "
                "https://jobs.example, to http_cors_origins"
            )
        return None

    async def _write(self, send: Send, reply: Reply, watch: Watch) -> None:
        try:
            await watch.check()
            with self._calls.writing(len(reply[2])):
                await write(send, *reply)
        except BaseException:
            self._calls.untaken()
            raise


async def refusal_of_page(gate: Gate | None, scope: Message) -> Reply | None:
    """Returns the refusal of a page; None without a gate."""
    if gate is None:
        return None
    return await gate.refusal_of_page(scope["path"], headers_of(scope), peer_of(scope))


def with_gate(pages: App, gate: Gate) -> App:
    """Returns the pages, behind a gate."""

    async def serve(scope: Message, receive: Receive, send: Send) -> None:
        refused = await refusal_of_page(gate, scope)
        if refused is None:
            await pages(scope, receive, send)
        else:
            await write(send, *refused)

    return serve


def with_calls(
    calls: Calls,
    events: Events,
    hooks: Served,
    pages: App,
    origins: Collection[str],
    gate: Gate | None = None,
) -> App:
    """Returns the application of calls, events, webhooks and pages, which web pages of these
    origins may call.
    """
    app: App = CallsBeforePages(calls, events, hooks, pages, origins, gate)
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=list(origins),
        allow_methods=["GET", "POST"],
        allow_headers=[
            "content-type",
            "connect-protocol-version",
            "connect-timeout-ms",
            "last-event-id",
            *(["authorization"] if gate is not None else []),
        ],
        max_age=PREFLIGHT_SECONDS,
    )


def headers_of(scope: Message) -> dict[str, str]:
    """Returns the headers by their lower-case names; several of a name are one, with commas. The
    caller's certificate is among them.
    """
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    certificate = scope.get("state", {}).get(CERTIFICATE)
    if certificate:
        headers[CERTIFICATE] = certificate.decode("ascii")
    return headers


def peer_of(scope: Message) -> str:
    """Returns who calls, as gRPC writes it, so that a host has the same name by either way."""
    client: tuple[str, Any] | None = scope["client"]
    if client is None:
        return "unix:"
    host, port = client
    return f"ipv6:%5B{host}%5D:{port}" if ":" in host else f"ipv4:{host}:{port}"

"""The callers of calls that came through a door: who they are stands in a table, by their marks.

A mark is random, and another one for each connection. So a client that finds out its own, as it may
by ending its fields within one, knows nothing that it could use; and a call whose mark was
swallowed or made up has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from os import urandom
from typing import Any, NamedTuple

import grpc

from jobline_server.rpc.errors import make_status
from jobline_server.rpc.guard import Handler, end_call
from jobline_server.rpc.tls.marks import Marker

MARK = "jobline-door"
MARK_BYTES = 16
PEM = "x509_pem_cert"
# A port of the native transport passes streams on to a socket of the server's own, which does not
# know their address; nor could it be told by metadata, which callers send, too, but for a mark.
UNKNOWN_PEER = "unknown (a stream of the native transport)"
# The last calls of a connection may begin after its end; they are not for long.
GONE_SECONDS = 10.0
UNMARKED = make_status(grpc.StatusCode.UNAVAILABLE, "", "the connection of this call is not known")


class DoorCaller(NamedTuple):
    """The address, as gRPC writes it, and the certificate (PEM); empty without."""

    peer: str
    certificate: bytes = b""

    def auth_context(self) -> Mapping[str, Sequence[bytes]]:
        """Returns the certificate, as `ServicerContext.auth_context` does."""
        return {PEM: [self.certificate]} if self.certificate else {}


class DoorCallers:
    """Those of all connections of a server."""

    def __init__(self) -> None:
        self._callers: dict[str, DoorCaller] = {}

    def __len__(self) -> int:
        """Returns how many connections it knows."""
        return len(self._callers)

    def add(self, caller: DoorCaller) -> tuple[str, Marker]:
        """Adds the caller of a new connection; returns its mark, and what marks its calls."""
        mark = urandom(MARK_BYTES).hex()
        self._callers[mark] = caller
        return mark, Marker(MARK, mark)

    def remove(self, mark: str) -> None:
        """Forgets the caller of a connection that has ended, soon."""
        loop = asyncio.get_running_loop()
        loop.call_later(GONE_SECONDS, self._callers.pop, mark, None)

    def find(self, metadata: Iterable[tuple[str, str | bytes]] | None) -> DoorCaller | None:
        """Returns the caller of a call with this metadata; None if it has no mark of a door."""
        for key, value in metadata or ():
            # One that a client made up stands beside the door's.
            if key == MARK and value in self._callers:
                return self._callers[str(value)]
        return None

    def around(
        self, handlers: Mapping[str, Handler], unmarked: DoorCaller | None
    ) -> dict[str, Handler]:
        """Returns handlers of streams that know the callers of calls through doors. `unmarked` is
        the caller of all others; None refuses them, as where all calls come through doors.
        """
        return {path: self._around(handler, unmarked) for path, handler in handlers.items()}

    def _around(self, handler: Handler, unmarked: DoorCaller | None) -> Handler:
        serve: Any = handler.stream_stream or handler.unary_stream

        async def call(request: Any, context: Any) -> None:
            caller = self.find(context.invocation_metadata()) or unmarked
            if caller is None:
                await end_call(context, UNMARKED)
                return
            await serve(request, _KnownContext(context, caller))

        if handler.request_streaming:
            return grpc.stream_stream_rpc_method_handler(call)
        return grpc.unary_stream_rpc_method_handler(call)


class _KnownContext:
    """The context of a stream whose caller the door knows, or nobody."""

    __slots__ = ("_caller", "_context")

    def __init__(self, context: Any, caller: DoorCaller) -> None:
        self._context = context
        self._caller = caller

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def peer(self) -> str:
        """Returns who calls."""
        return self._caller.peer

    def auth_context(self) -> Mapping[str, Sequence[bytes]]:
        """Returns what is known of the caller."""
        return self._caller.auth_context()

"""A unary call of the native transport, and what stands in a line for one that has not begun."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Protocol

import grpc
from grpc import aio

from jobline_server.rpc.guard import UnaryAnswer
from jobline_server.rpc.tls.callers import DoorCaller

Metadata = Sequence[tuple[str, str | bytes]]


class Batch:
    """Calls that began about one time: how many are not answered, and whether these count."""

    __slots__ = ("at", "calls", "is_counted")

    def __init__(self, at: float) -> None:
        self.at = at
        self.calls = 0
        self.is_counted = True


class InLine(Protocol):
    """The line that a call is in."""

    def give_up(self, call: NativeCall) -> None:
        """Notes that the caller of one that waits is gone."""

    def end(self, call: NativeCall) -> None:
        """Makes room in the place of one that had begun."""


class NativeCall:
    """A unary call that is not answered yet; its handler gets it in place of gRPC's context."""

    __slots__ = (
        "_peer",
        "answer",
        "batch",
        "caller",
        "has_begun",
        "is_cancelled",
        "line",
        "metadata",
        "path",
        "status",
        "task",
    )

    metadata: Metadata
    """Set only where handlers ask who calls."""

    def __init__(self, path: str, answer: UnaryAnswer, peer: str, line: InLine) -> None:
        self.path = path
        self.answer = answer
        self._peer = peer
        self.line = line
        # Set only where it came through a door.
        self.caller: DoorCaller | None = None
        self.task: asyncio.Task[None] | None = None
        self.batch: Batch | None = None
        self.has_begun = False
        # Its caller is gone, or its deadline has passed.
        self.is_cancelled = False
        self.status: tuple[int, str, list[tuple[str, str | bytes]]] | None = None

    def peer(self) -> str:
        """Returns who calls, as `ServicerContext.peer` does."""
        return self._peer if self.caller is None else self.caller.peer

    def invocation_metadata(self) -> Metadata:
        """Returns the metadata of the call."""
        return self.metadata

    def auth_context(self) -> Mapping[str, Sequence[bytes]]:
        """Returns the certificate, as `ServicerContext.auth_context` does."""
        return {} if self.caller is None else self.caller.auth_context()

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Sequence[tuple[str, str | bytes]] = (),
    ) -> NoReturn:
        """Ends the call with a status, as `ServicerContext.abort` does."""
        self.status = (code.value[0], details, list(trailing_metadata))
        raise aio.AbortError("Locally aborted.")


Serve = Callable[[int, NativeCall, bytes], Coroutine[Any, Any, None]]
"""Serves a call: its number, and its message."""


class Waiting(NamedTuple):
    """A call that has not begun: its number and its method's, its message, and when it came."""

    number: int
    method: int
    call: NativeCall
    raw: bytes
    came: float

"""Admission: bounds on open calls, their bytes, streams, long polls, waiters, watchers and scalers.

gRPC's own bound counts streams as calls and knows no kinds. A call over a bound is refused with
TOO_MANY_CALLS, which is definite: nothing was done.

A unary call is open until gRPC has written its reply, which it does as the caller reads: unread
replies keep counting. The native transport takes a reply and does not report when it was written;
there a reply counts as unread until a recount shows otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jobline_server.auth.grants import READ, WORK
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.rpc.gates import Gate, too_many
from jobline_server.rpc.overload import Overload
from jobline_server.telemetry.calls import CallMeters

# Unread replies are recounted where a bound is reached, after this long or this many more replies.
RECOUNT_SECONDS = 0.05
RECOUNT_REPLIES = 16


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Bounds on what is open at once."""

    calls: int = 20_000
    # Requests of calls that are open.
    call_bytes: int = 1 << 30
    # Replies not written yet. gRPC has a copy of each, so they take twice this memory.
    reply_bytes: int = 512 << 20
    streams: int = 10_000
    pulls: int = 10_000
    waiters: int = 10_000
    watchers: int = 1_000
    # Streams of KEDA, one for each ScaledObject: they and watchers leave each other their places.
    scalers: int = 1_000
    # Watches of the server's health, which anybody may open: they take no place of others.
    health_watchers: int = 500
    # The first frames of open streams, without schemas: names, labels and queues, which are kept
    # until the streams end.
    stream_bytes: int = 512 << 20
    # Ids of all waiters together, about 100 bytes of memory each.
    waited_ids: int = 10_000_000


class OpenCall:
    """Counts a unary call, with the bytes of its request and reply, until the transport's task
    ends: the reply was written, or the caller is gone. (A callback of grpc.aio's context would make
    a cycle of references.)
    """

    __slots__ = ("_admission", "_reply_bytes", "_request_bytes")

    def __init__(self, admission: Admission, request_bytes: int) -> None:
        self._admission = admission
        self._request_bytes = request_bytes
        self._reply_bytes = 0
        admission.calls += 1
        admission.call_bytes += request_bytes
        task = asyncio.current_task()
        if task is not None:
            task.add_done_callback(self._close)

    def answer(self, reply_bytes: int) -> None:
        """Counts the bytes of its reply."""
        self._reply_bytes = reply_bytes
        self._admission.reply_bytes += reply_bytes

    def _close(self, _task: object) -> None:
        admission = self._admission
        admission.calls -= 1
        admission.call_bytes -= self._request_bytes
        admission.reply_bytes -= self._reply_bytes


class Admission:
    """All gates of a server. The guard counts calls and their bytes itself, without a context
    manager: this is on the path of every call.
    """

    __slots__ = (
        "call_bytes",
        "calls",
        "ending",
        "health_watchers",
        "limits",
        "overload",
        "pulls",
        "recounts",
        "reply_bytes",
        "scalers",
        "streams",
        "unread_bytes",
        "unread_calls",
        "waiters",
        "watchers",
        "_recount_at",
        "_uncounted",
        "_writing",
    )

    def __init__(self, limits: CallLimits | None = None, meters: CallMeters | None = None) -> None:
        self.limits = limits or CallLimits()
        self.ending = False
        self.overload = Overload(meters or CallMeters())
        self.calls = 0
        self.call_bytes = 0
        self.reply_bytes = 0
        # Replies that a transport has taken, and the functions that recount them.
        self.unread_calls = 0
        self.unread_bytes = 0
        self.recounts: list[Callable[[], None]] = []
        self._recount_at = 0.0
        self._uncounted = 0
        self.streams = Gate("streams", self.limits.streams, self.limits.stream_bytes, verb=WORK)
        self.pulls = Gate("long polls", self.limits.pulls, verb=WORK)
        self.waiters = Gate("waiters", self.limits.waiters, self.limits.waited_ids, verb=READ)
        self.watchers = Gate("watchers", self.limits.watchers, verb=READ)
        self.scalers = Gate("scalers", self.limits.scalers, verb=READ)
        self.health_watchers = Gate("watchers of its health", self.limits.health_watchers)
        self._writing: set[asyncio.Task[Any]] = set()

    def check_reply(self, reply_bytes: int) -> None:
        """Refuses a reply over the bound, for calls that can be repeated."""
        if self.is_over_with(reply_bytes) and self.waiting_bytes:
            raise too_many("replies")

    def check_room(self, reply_bytes: int = 0) -> None:
        """Refuses a call where too many are open. `reply_bytes`: the largest reply of a call whose
        reply cannot be dropped.
        """
        limits = self.limits
        if (
            self.call_bytes <= limits.call_bytes
            and self.calls + self.unread_calls <= limits.calls
            and self.reply_bytes + self.unread_bytes <= limits.reply_bytes - reply_bytes
        ):
            return
        if self.call_bytes > limits.call_bytes or self._has_too_many_calls():
            raise too_many("calls")
        if self.is_over_with(reply_bytes):
            raise too_many("replies")

    @property
    def waiting_bytes(self) -> int:
        """Returns the bytes of unread replies."""
        return self.reply_bytes + self.unread_bytes

    def is_over_with(self, reply_bytes: int) -> bool:
        """Returns whether one more reply of this size would be over the bound."""
        room = self.limits.reply_bytes - reply_bytes
        return self.waiting_bytes > room and (not self._recount() or self.waiting_bytes > room)

    def add_unread(self, calls: int, reply_bytes: int) -> None:
        """Adds replies that a transport has taken and that are not read; counts may be negative."""
        self.unread_calls += calls
        self.unread_bytes += reply_bytes
        self._uncounted += calls

    def _has_too_many_calls(self) -> bool:
        limit = self.limits.calls
        if self.calls + self.unread_calls <= limit:
            return False
        return not self._recount() or self.calls + self.unread_calls > limit

    def _recount(self) -> bool:
        """Recounts unread replies, unless that was just done; returns whether it did."""
        if not self.recounts:
            return False
        now = asyncio.get_running_loop().time()
        if now < self._recount_at and self._uncounted < RECOUNT_REPLIES:
            return False
        for recount in self.recounts:
            recount()
        self._recount_at, self._uncounted = now + RECOUNT_SECONDS, 0
        return True

    @contextmanager
    def writing(self, message_bytes: int) -> Iterator[None]:
        """Wraps the write of one message of a server stream. A call is not cancelled during a
        write, because gRPC could send no status then; it ends right after.
        """
        if self.is_over_with(0):
            raise too_many("replies")
        task = asyncio.current_task()
        if task is not None:
            self._writing.add(task)
        self.reply_bytes += message_bytes
        try:
            yield
        finally:
            self.reply_bytes -= message_bytes
            self._writing.discard(task)
        if self.ending:
            raise ending()

    def is_writing(self, task: asyncio.Task[Any]) -> bool:
        """Returns whether a call is in the write of a message of a server stream."""
        return task in self._writing

    def end_waiting_calls(self) -> None:
        """Ends calls that only wait, with DRAINING. The runtime ends streams, and calls that change
        something end by themselves.
        """
        self.ending = True
        waiting = (self.pulls, self.waiters, self.watchers, self.scalers, self.health_watchers)
        for gate in waiting:
            gate.cancel_all(but=self._writing)


def ending() -> Refused:
    """Returns the refusal of a call that waits when the server stops."""
    return Refused(RefusalKind.DRAINING, "the server stops; ask again later")

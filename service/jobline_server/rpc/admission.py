"""How many calls may be open at once: all, their bytes, streams, long polls, waiters, watchers.

gRPC's own bound counts streams as calls and knows no kinds. Over a bound a call is refused with
TOO_MANY_CALLS, which is definite: nothing of it happened.

A unary call is open until gRPC has written its reply, which it does as the caller reads: replies
that nobody reads hold their places and bytes. The native transport takes a reply and does not say
when it was written: there it counts as unread from then on, until a count tells otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jobline_server.engine.commands import RefusalKind, Refused

RETRY_AFTER_MS = 1_000
# Unread replies are counted again where a bound is reached, after so long or so many more of them.
RECOUNT_SECONDS = 0.05
RECOUNT_REPLIES = 16


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Bounds on what is open at once."""

    calls: int = 20_000
    # Requests of calls that are open.
    call_bytes: int = 1 << 30
    # Replies that are not written yet; gRPC has a copy of each, so memory is twice this.
    reply_bytes: int = 512 << 20
    streams: int = 10_000
    pulls: int = 10_000
    waiters: int = 10_000
    watchers: int = 1_000
    # What streams say of themselves when they open, schemas mostly, is kept until they end.
    stream_bytes: int = 512 << 20
    # Ids of all waiters together, about 100 bytes of memory each.
    waited_ids: int = 10_000_000


class Gate:
    """Lets in so many at once, and knows the tasks that are in. What they keep for as long as their
    calls are open is bounded together, by `most_held`."""

    __slots__ = ("_inside", "held", "most", "most_held", "name")

    def __init__(self, name: str, most: int, most_held: int = 0) -> None:
        self.name = name
        self.most = most
        self.most_held = most_held
        self.held = 0
        self._inside: set[asyncio.Task[Any]] = set()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Holds a place for the running task, for as long as its call is open."""
        task = asyncio.current_task()
        if task is None or len(self._inside) >= self.most:
            raise too_many(self.name)
        self._inside.add(task)
        try:
            yield
        finally:
            self._inside.discard(task)

    @contextmanager
    def holding(self, amount: int) -> Iterator[None]:
        """Counts what a call that is in keeps."""
        if self.held + amount > self.most_held:
            raise too_many(self.name)
        self.held += amount
        try:
            yield
        finally:
            self.held -= amount

    def __len__(self) -> int:
        return len(self._inside)

    def cancel_all(self, but: set[asyncio.Task[Any]]) -> None:
        """Ends the calls that are in, except some."""
        for task in self._inside - but:
            task.cancel()


class OpenCall:
    """A unary call whose transport's task ends when the reply was written, or the caller is gone,
    and the bytes it holds until then. (A callback of grpc.aio's context would hold the context, and
    be held by it.)
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
        """Its reply is there."""
        self._reply_bytes = reply_bytes
        self._admission.reply_bytes += reply_bytes

    def _close(self, _task: object) -> None:
        admission = self._admission
        admission.calls -= 1
        admission.call_bytes -= self._request_bytes
        admission.reply_bytes -= self._reply_bytes


class Admission:
    """All gates of a server. Calls and their bytes are counted by the guard itself, without a
    context manager, because that is on the way of every call."""

    __slots__ = (
        "call_bytes",
        "calls",
        "ending",
        "limits",
        "pulls",
        "recounts",
        "reply_bytes",
        "streams",
        "unread_bytes",
        "unread_calls",
        "waiters",
        "watchers",
        "_recount_at",
        "_uncounted",
        "_writing",
    )

    def __init__(self, limits: CallLimits | None = None) -> None:
        self.limits = limits or CallLimits()
        self.ending = False
        self.calls = 0
        self.call_bytes = 0
        self.reply_bytes = 0
        # Replies that a transport has taken, and how to count those again.
        self.unread_calls = 0
        self.unread_bytes = 0
        self.recounts: list[Callable[[], None]] = []
        self._recount_at = 0.0
        self._uncounted = 0
        self.streams = Gate("streams", self.limits.streams, self.limits.stream_bytes)
        self.pulls = Gate("long polls", self.limits.pulls)
        self.waiters = Gate("waiters", self.limits.waiters, self.limits.waited_ids)
        self.watchers = Gate("watchers", self.limits.watchers)
        self._writing: set[asyncio.Task[Any]] = set()

    def check_reply(self, reply_bytes: int) -> None:
        """Refuses a reply that there is no room for, and that can be asked for again."""
        if self.is_over_with(reply_bytes) and self.waiting_bytes:
            raise too_many("replies")

    def check_room(self, reply_bytes: int = 0) -> None:
        """Refuse a call where too many are open. `reply_bytes`: what it may have to say, if that
        cannot be dropped once it is there."""
        if self.call_bytes > self.limits.call_bytes or self._has_too_many_calls():
            raise too_many("calls")
        if self.is_over_with(reply_bytes):
            raise too_many("replies")

    @property
    def waiting_bytes(self) -> int:
        """Bytes of replies that nobody has read."""
        return self.reply_bytes + self.unread_bytes

    def is_over_with(self, reply_bytes: int) -> bool:
        """Whether replies are more than their bound with one more."""
        room = self.limits.reply_bytes - reply_bytes
        return self.waiting_bytes > room and (not self._recount() or self.waiting_bytes > room)

    def add_unread(self, calls: int, reply_bytes: int) -> None:
        """A transport has so many more replies that are not read."""
        self.unread_calls += calls
        self.unread_bytes += reply_bytes
        self._uncounted += calls

    def _has_too_many_calls(self) -> bool:
        most = self.limits.calls
        if self.calls + self.unread_calls <= most:
            return False
        return not self._recount() or self.calls + self.unread_calls > most

    def _recount(self) -> bool:
        """Counts unread replies again, if that may show fewer; returns whether it did."""
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
        """Around a write of a stream of replies: a call is not cancelled in the middle of one,
        because gRPC cannot send a status then. It ends right behind it."""
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

    def end_waiting_calls(self) -> None:
        """Ends the calls that only wait, with DRAINING. Streams are ended by the runtime, and calls
        that change something end by themselves."""
        self.ending = True
        for gate in (self.pulls, self.waiters, self.watchers):
            gate.cancel_all(but=self._writing)


def ending() -> Refused:
    """What a call is told that waits when the server stops."""
    return Refused(RefusalKind.DRAINING, "the server stops; ask again later")


def too_many(what: str) -> Refused:
    """The refusal of one more."""
    return Refused(
        RefusalKind.TOO_MANY_CALLS,
        f"the server has as many {what} open as it serves",
        retry_after_ms=RETRY_AFTER_MS,
    )

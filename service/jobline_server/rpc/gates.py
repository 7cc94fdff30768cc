"""Gates: how many calls of a kind are open at once, and what they keep together."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.rpc.caller import CALLER

RETRY_AFTER_MS = 1_000

# The port through which the running call came, where that looks for what it has in a gate.
CAME_THROUGH: ContextVar[object] = ContextVar("came_through", default=None)


class Shares:
    """What callers have of a bound: each has half of it at most."""

    __slots__ = ("_by_caller", "_limit", "_name")

    def __init__(self, name: str, bound: int) -> None:
        self._name = name
        self._limit = (bound + 1) // 2
        self._by_caller: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._by_caller)

    def take(self, caller: str, amount: int) -> None:
        """Counts what a caller takes, or refuses it."""
        if self._by_caller[caller] + amount > self._limit:
            raise too_many(f"{self._name} of one caller")
        self._by_caller[caller] += amount

    def give_back(self, caller: str, amount: int) -> None:
        """Counts what a caller has no more."""
        self._by_caller[caller] -= amount
        if not self._by_caller[caller]:
            del self._by_caller[caller]


class Gate:
    """Admits up to `limit` tasks at once. What their calls keep while they are open, ids or bytes,
    is bounded by `max_held` together. With a `verb` an authenticated caller has half of both at
    most, unless it may do that to all queues: others find some.
    """

    __slots__ = (
        "_by_port",
        "_inside",
        "_verb",
        "held",
        "held_shares",
        "limit",
        "max_held",
        "name",
        "shares",
    )

    def __init__(self, name: str, limit: int, max_held: int = 0, *, verb: str = "") -> None:
        self.name = name
        self.limit = limit
        self.max_held = max_held
        self.held = 0
        self._inside: set[asyncio.Task[Any]] = set()
        self._by_port: Counter[object] = Counter()
        self._verb = verb
        self.shares = Shares(name, limit)
        self.held_shares = Shares(name, max_held)

    def _sharer(self) -> str:
        """Returns whose share the running call takes; "" if it may have all."""
        caller = CALLER.get() if self._verb else None
        return "" if caller is None or caller.may_all(self._verb) else caller.principal

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Admits the running task for the length of the block, or refuses it."""
        task = asyncio.current_task()
        if task is None or len(self._inside) >= self.limit:
            raise too_many(self.name)
        sharer = self._sharer()
        if sharer:
            self.shares.take(sharer, 1)
        port = CAME_THROUGH.get()
        self._inside.add(task)
        self._by_port[port] += 1
        try:
            yield
        finally:
            self._inside.discard(task)
            self._by_port[port] -= 1
            if sharer:
                self.shares.give_back(sharer, 1)

    @contextmanager
    def holding(self, amount: int) -> Iterator[None]:
        """Counts what an admitted call keeps, for the length of the block."""
        if self.held + amount > self.max_held:
            raise too_many(self.name)
        sharer = self._sharer()
        if sharer:
            self.held_shares.take(sharer, amount)
        self.held += amount
        try:
            yield
        finally:
            self.held -= amount
            if sharer:
                self.held_shares.give_back(sharer, amount)

    def __len__(self) -> int:
        return len(self._inside)

    def count_of(self, port: object) -> int:
        """Returns how many tasks of calls are inside that came through a port."""
        return self._by_port[port]

    def cancel_all(self, but: set[asyncio.Task[Any]]) -> None:
        """Cancels all admitted tasks, except `but`."""
        for task in self._inside - but:
            task.cancel()


def too_many(what: str) -> Refused:
    """Returns the refusal of one call or reply too many."""
    return Refused(
        RefusalKind.TOO_MANY_CALLS,
        f"the server has as many {what} open as it serves",
        retry_after_ms=RETRY_AFTER_MS,
    )

"""Gates: how many calls of a kind are open at once, and what they keep together."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from jobline_server.engine.commands import RefusalKind, Refused

RETRY_AFTER_MS = 1_000

# The port through which the running call came, where that looks for what it has in a gate.
CAME_THROUGH: ContextVar[object] = ContextVar("came_through", default=None)
# Whose share of the places the running call takes; empty for those who may have all.
SHARER: ContextVar[str] = ContextVar("sharer", default="")


class Gate:
    """Admits up to `limit` tasks at once. What their calls keep while they are open, ids or bytes,
    is bounded by `max_held` together. With `is_shared` an authenticated caller has half of the
    places at most, unless it may read all queues: others find some.
    """

    __slots__ = (
        "_by_port",
        "_by_sharer",
        "_inside",
        "held",
        "limit",
        "max_held",
        "name",
        "share",
    )

    def __init__(
        self, name: str, limit: int, max_held: int = 0, *, is_shared: bool = False
    ) -> None:
        self.name = name
        self.limit = limit
        self.max_held = max_held
        self.held = 0
        self._inside: set[asyncio.Task[Any]] = set()
        self._by_port: Counter[object] = Counter()
        self.share = (limit + 1) // 2 if is_shared else 0
        self._by_sharer: Counter[str] = Counter()

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Admits the running task for the length of the block, or refuses it."""
        task = asyncio.current_task()
        if task is None or len(self._inside) >= self.limit:
            raise too_many(self.name)
        sharer = SHARER.get() if self.share else ""
        if sharer:
            if self._by_sharer[sharer] >= self.share:
                raise too_many(f"{self.name} of one caller")
            self._by_sharer[sharer] += 1
        port = CAME_THROUGH.get()
        self._inside.add(task)
        self._by_port[port] += 1
        try:
            yield
        finally:
            self._inside.discard(task)
            self._by_port[port] -= 1
            if sharer:
                self._leave(sharer)

    def _leave(self, sharer: str) -> None:
        self._by_sharer[sharer] -= 1
        if not self._by_sharer[sharer]:
            del self._by_sharer[sharer]

    @contextmanager
    def holding(self, amount: int) -> Iterator[None]:
        """Counts what an admitted call keeps, for the length of the block."""
        if self.held + amount > self.max_held:
            raise too_many(self.name)
        self.held += amount
        try:
            yield
        finally:
            self.held -= amount

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

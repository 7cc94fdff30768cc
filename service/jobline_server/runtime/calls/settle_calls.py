"""What workers ask one call at a time: ack, fail, release, extend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

from jobline_server.engine.commands import (
    ExtendItem,
    FailItem,
    FailResult,
    NotDone,
    ReleaseItem,
)
from jobline_server.engine.values import SettleOutcome
from jobline_server.runtime.calls.settles import (
    ACKED,
    ACKS_AT_ONCE,
    FAILED,
    ITEMS_AT_ONCE,
    NEVER,
    Item,
    Settles,
)
from jobline_server.runtime.core import Core

T = TypeVar("T")


class SettleCalls:
    """Calls of workers that hold no stream."""

    def __init__(self, core: Core, settles: Settles) -> None:
        self._core = core
        self._settles = settles

    async def ack(
        self, ids: list[int], deliveries: list[int], results: dict[int, bytes]
    ) -> NotDone:
        """Settles jobs as done; returns after the commit."""
        exceptions: NotDone = []
        for start in range(0, len(ids), ACKS_AT_ONCE):
            if start:
                await asyncio.sleep(0)
            stop = start + ACKS_AT_ONCE
            part = self._settles.ack(ids[start:stop], deliveries[start:stop], results)
            exceptions += [(start + index, outcome) for index, outcome in part]
        await self._core.commits.wait()
        if not exceptions:
            return exceptions
        leases = list(zip(ids, deliveries, strict=True))
        return await self._settles.explain_missing(leases, exceptions, repeated=ACKED)

    async def fail(self, items: list[FailItem]) -> list[FailResult]:
        """Settles jobs as failed; returns after the commit."""
        results: list[FailResult] = []
        async for part in slices(items):
            results += self._settles.fail(part)
        await self._core.commits.wait()
        missing: NotDone = [
            (index, result.outcome)
            for index, result in enumerate(results)
            if result.outcome is SettleOutcome.NOT_FOUND
        ]
        leases = [(item.id, item.delivery) for item in items]
        for index, outcome in await self._settles.explain_missing(leases, missing, repeated=FAILED):
            results[index] = FailResult(outcome)
        return results

    async def release(self, items: list[ReleaseItem]) -> NotDone:
        """Gives jobs back; returns after the commit."""
        exceptions = await self._in_slices(items, self._settles.release)
        await self._core.commits.wait()
        leases = [(item.id, item.delivery) for item in items]
        return await self._settles.explain_missing(leases, exceptions, repeated=NEVER)

    async def extend(self, items: list[ExtendItem]) -> NotDone:
        """Keeps leases alive; returns after the commit if anything was reported."""
        exceptions = await self._in_slices(items, self._settles.extend)
        if any(item.worker_checkpoint is not None for item in items):
            await self._core.commits.wait()
        leases = [(item.id, item.delivery) for item in items]
        return await self._settles.explain_missing(leases, exceptions, repeated=NEVER)

    async def _in_slices(
        self, items: Sequence[Item], settle: Callable[[Sequence[Item]], NotDone]
    ) -> NotDone:
        exceptions: NotDone = []
        start = 0
        async for part in slices(items):
            exceptions += [(start + index, outcome) for index, outcome in settle(part)]
            start += len(part)
        return exceptions


async def slices(items: Sequence[T]) -> AsyncIterator[Sequence[T]]:
    """Items some at a time, with the loop free in between: each costs what a job alone does."""
    for start in range(0, len(items), ITEMS_AT_ONCE):
        if start:
            await asyncio.sleep(0)
        yield items[start : start + ITEMS_AT_ONCE]

"""Calls of workers without a stream: ack, fail, release, extend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

from jobline_server.dispatch.frames import Settle
from jobline_server.engine.commands import (
    ExtendItem,
    FailItem,
    FailResult,
    NotDone,
    ReleaseItem,
)
from jobline_server.engine.decide.phases import Progress
from jobline_server.runtime.calls.release_checks import check_limiters
from jobline_server.runtime.calls.settles import ITEMS_AT_ONCE, NEVER
from jobline_server.runtime.calls.settling import Settled, Settling, ids_of
from jobline_server.runtime.core import Core

T = TypeVar("T")


class SettleCalls:
    """Calls of workers that hold no stream. Each returns after the commit, or raises `Refused` if
    none of its jobs is in a shard that is here.
    """

    def __init__(self, core: Core, settling: Settling) -> None:
        self._core = core
        self._settling = settling

    async def ack(
        self, ids: list[int], deliveries: list[int], results: dict[int, bytes]
    ) -> NotDone:
        """Settles jobs as done."""
        settled = await self._settle(Settle(0, ids, deliveries, results))
        return settled.exceptions

    async def fail(self, items: list[FailItem]) -> list[FailResult]:
        """Settles jobs as failed."""
        settled = await self._settle(Settle(fails=items))
        for index, outcome in settled.exceptions:
            if settled.results[index].outcome is not outcome:
                settled.results[index] = FailResult(outcome)
        return settled.results

    async def release(self, items: list[ReleaseItem]) -> NotDone:
        """Gives jobs back. Refuses all if one names a limiter that its job does not pass."""
        first = 0
        async for part in slices(items):
            check_limiters(self._core, part, "items", first)
            first += len(part)
        settled = await self._settle(Settle(releases=items))
        return settled.exceptions

    async def extend(self, items: list[ExtendItem]) -> NotDone:
        """Extends leases; waits for the commit if a checkpoint or the end of a phase is
        among them."""
        exceptions: NotDone = []
        start = 0
        if any(item.phase for item in items):
            progress: Progress = {}
            checked = 0
            async for part in slices(items):
                self._settling.settles.check_phases(part, progress, "items", checked)
                checked += len(part)
        async for part in slices(items):
            outcomes = self._settling.settles.extend(part)
            exceptions += [(start + index, outcome) for index, outcome in outcomes]
            start += len(part)
        if any(item.worker_checkpoint is not None or item.phase for item in items):
            await self._core.commits.wait()
        if self._core.slots.is_partial:
            ids = [item.id for item in items]
            self._core.slots.check_any_id(ids)
            exceptions = self._settling.settles.with_lost(ids, exceptions)
        leases = [(item.id, item.delivery) for item in items]
        return await self._settling.settles.explain_missing(leases, exceptions, repeated=NEVER)

    async def _settle(self, settle: Settle) -> Settled:
        done: list[Settled] = []
        for _ in self._settling.decide([settle], done.append, keeps_results=True):
            await asyncio.sleep(0)
        await self._core.commits.wait()
        [settled] = done
        if self._core.slots.is_partial:
            self._core.slots.check_any_id(ids_of(settle))
            self._settling.note_lost(settle, settled)
        if settled.unknown is not None:
            settled.exceptions = await self._settling.explain(settled)
        return settled


async def slices(items: Sequence[T]) -> AsyncIterator[Sequence[T]]:
    """Yields items some at a time, with the loop free in between."""
    for start in range(0, len(items), ITEMS_AT_ONCE):
        if start:
            await asyncio.sleep(0)
        yield items[start : start + ITEMS_AT_ONCE]

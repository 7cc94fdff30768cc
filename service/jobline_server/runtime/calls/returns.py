"""Returns: releases jobs that were handed out and reached nobody, or whose worker is gone for good.

They return to their places in their lanes, and it counts as neither an attempt nor a stall. Many of
them are released in slices, with the loop free in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import islice

from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.values import ReleaseReason
from jobline_server.runtime.calls.settles import ITEMS_AT_ONCE, Settles

Lease = tuple[int, int]
UNDELIVERED = ReleaseReason.UNDELIVERED


class Returns:
    """Releases jobs on behalf of callers that are gone."""

    def __init__(self, settles: Settles) -> None:
        self._settles = settles
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, leases: Iterable[Lease], why: ReleaseReason = UNDELIVERED) -> None:
        """Releases those of these (id, delivery) that are still held: a few at once, many in
        slices.
        """
        items = (ReleaseItem(job_id, delivery, why=why) for job_id, delivery in leases)
        first = list(islice(items, ITEMS_AT_ONCE))
        if len(first) < ITEMS_AT_ONCE:
            self._release(first)
            return
        task = asyncio.get_running_loop().create_task(self._release_all(first, items))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Waits until all releases that were started are decided."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _release_all(self, part: list[ReleaseItem], rest: Iterator[ReleaseItem]) -> None:
        while part:
            self._release(part)
            await asyncio.sleep(0)
            # Even to list a hundred thousand leases is too much for one iteration of the loop.
            part = list(islice(rest, ITEMS_AT_ONCE))

    def _release(self, items: list[ReleaseItem]) -> None:
        if items:
            self._settles.release(items)

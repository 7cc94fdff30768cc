"""Returns: releases jobs that were handed out and reached nobody, or whose worker is gone for good.

They return to their places in their lanes, and it counts as neither an attempt nor a stall. Many of
them are released in slices, with the loop free in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.values import ReleaseReason
from jobline_server.runtime.calls.settles import ITEMS_AT_ONCE, Settles

Lease = tuple[int, int]
Settle = Callable[[Sequence[ReleaseItem]], object]
UNDELIVERED = ReleaseReason.UNDELIVERED


class Returns:
    """Releases jobs on behalf of callers that are gone."""

    def __init__(self, settles: Settles) -> None:
        self._settles = settles
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, leases: Iterable[Lease]) -> None:
        """Releases those of these (id, delivery) that are still held, and that nobody can have
        seen: a few at once, many in slices.
        """
        self._start(leases, UNDELIVERED, self._settles.release)

    def release_doubtful(self, leases: Iterable[Lease]) -> None:
        """Releases what may have arrived, and leaves jobs that may be handed out only once to their
        leases.
        """
        self._start(leases, UNDELIVERED, self._release_again)

    def abandon(self, leases: Iterable[Lease], *, but: Iterable[Lease]) -> None:
        """Takes back what a worker held that said goodbye, `but` some leases. Jobs that may be
        handed out only once are DEAD.
        """
        left_out = set(but)
        leases = (lease for lease in leases if lease not in left_out)
        self._start(leases, ReleaseReason.INTERRUPTED, self._settles.abandon)

    async def finish(self) -> None:
        """Waits until all releases that were started are decided."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def under_way(self) -> list[asyncio.Task[None]]:
        """Returns the tasks that release now."""
        return [*self._tasks]

    def _release_again(self, items: Sequence[ReleaseItem]) -> None:
        self._settles.release(self._settles.not_once(items))

    def _start(self, leases: Iterable[Lease], why: ReleaseReason, settle: Settle) -> None:
        items = (ReleaseItem(job_id, delivery, why=why) for job_id, delivery in leases)
        first = list(islice(items, ITEMS_AT_ONCE))
        if len(first) < ITEMS_AT_ONCE:
            if first:
                settle(first)
            return
        task = asyncio.get_running_loop().create_task(_settle_all(first, items, settle))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _settle_all(part: list[ReleaseItem], rest: Iterator[ReleaseItem], settle: Settle) -> None:
    while part:
        settle(part)
        await asyncio.sleep(0)
        # Even to list a hundred thousand leases is too much for one iteration of the loop.
        part = list(islice(rest, ITEMS_AT_ONCE))

"""Returns: jobs that were handed out and reached nobody, or that nobody comes back for.

They go back to where they stood in their lanes at once, and it costs them neither an attempt nor a
stall. Many of them go some at a time, with the loop free in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from jobline_server.engine.commands import ReleaseItem
from jobline_server.runtime.settles import SETTLES_AT_ONCE, Settles

Lease = tuple[int, int]


class Returns:
    """Gives jobs back on behalf of callers that are gone."""

    def __init__(self, settles: Settles) -> None:
        self._settles = settles
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, leases: Iterable[Lease]) -> None:
        """Gives back those of these (id, delivery) that are still held: a few at once, many by and
        by.
        """
        found = list(leases)
        if len(found) <= SETTLES_AT_ONCE:
            self._release(found)
            return
        task = asyncio.get_running_loop().create_task(self._release_all(found))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Returns when everything that was started is decided."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _release_all(self, leases: Sequence[Lease]) -> None:
        for start in range(0, len(leases), SETTLES_AT_ONCE):
            self._release(leases[start : start + SETTLES_AT_ONCE])
            await asyncio.sleep(0)

    def _release(self, leases: Sequence[Lease]) -> None:
        if leases:
            self._settles.release([ReleaseItem(job_id, delivery) for job_id, delivery in leases])

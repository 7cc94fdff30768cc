"""Minutes: what happened in each queue, minute by minute, for those who look later.

Nothing is counted for it but dead jobs: at the end of a minute the totals of queues, which the
engine keeps anyway, are compared with those at its beginning, and so are the histograms of
`Durations`. Of many queues only the busiest ones of a minute are kept, and the sum of all.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Sequence
from operator import add, sub
from typing import NamedTuple

from jobline_server.engine import limits
from jobline_server.engine.endings import JobsEnded, RunsEnded
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import JobState
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.core import Core
from jobline_server.runtime.durations import BOUNDS
from jobline_server.storage.minutes import MinuteStore
from jobline_server.telemetry.calls import percentile
from jobline_server.telemetry.queue_minutes import QueueMinute

ALL_QUEUES = ""
"""The name under which the sum of all queues is kept."""
# Queues of one minute; 20,000 rows of about 60 bytes for each of them in 14 days.
QUEUES_MAX = 200
KEPT_MINUTES = 14 * limits.DAY_MS // limits.MINUTE_MS
# Minutes of one page: a day.
PAGE_MINUTES = 1_440
# Queues of a step, each about a microsecond, and rows of one delete.
STEP_QUEUES = 2_000
DELETED_ROWS = 1_000


class Totals(NamedTuple):
    """What happened in a queue: since the server started, or in a minute."""

    pushed: int = 0
    completed: int = 0
    failed: int = 0
    dead: int = 0

    def since(self, before: Totals) -> Totals:
        """Returns what happened since then. Those of a queue that was deleted begin again."""
        pushed, completed, failed = map(sub, self[:3], before[:3])
        # Deaths are those of the minute.
        after = Totals(pushed, completed, failed, self.dead)
        return self if min(after) < 0 else after

    def plus(self, other: Totals) -> Totals:
        """Returns the sum."""
        return Totals(*map(add, self, other))


class Minutes:
    """Makes the minutes, and reads them."""

    def __init__(self, core: Core, store: MinuteStore) -> None:
        self._core = core
        self._store = store
        self._before: dict[str, Totals] = {}
        # Jobs pushed and completed in the minute before this one; queues without any are left out.
        self._last: dict[str, int] = {}
        self._buckets: dict[str, list[int]] = {}
        self._dead: dict[str, int] = {}

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Counts the jobs that are dead by now."""
        for batch in batches:
            for ending in batch.endings:
                if isinstance(ending, RunsEnded) and ending.state is JobState.DEAD:
                    self._died(ending.lot.queue, sum(ending.counts))
                elif isinstance(ending, JobsEnded) and ending.state is JobState.DEAD:
                    self._died(ending.jobs[0].queue, len(ending.jobs))

    def _died(self, queue: Queue, count: int) -> None:
        self._dead[queue.name] = self._dead.get(queue.name, 0) + count

    async def close_minute(self, minute: int) -> int:
        """Keeps what happened since the last call as this minute; returns of how many queues."""
        happened = await self._happened()
        everything = Totals()
        for totals in happened.values():
            everything = everything.plus(totals)
        waited = self._waited()
        busiest = heapq.nlargest(QUEUES_MAX, happened, key=lambda name: sum(happened[name]))
        rows = [_row(name, minute, happened[name], waited.get(name)) for name in busiest]
        if rows or ALL_QUEUES in waited:
            rows.append(_row(ALL_QUEUES, minute, everything, waited.get(ALL_QUEUES)))
            await self._store.add(rows)
        return len(busiest)

    def has_news(self) -> bool:
        """Returns whether anything happened since the last call of `close_minute`, or in the minute
        that it closed, which `activity` counts until the next one.
        """
        return bool(self._dead or self._last) or any(
            totals.since(self._before.get(queue.name, Totals())) != Totals()
            for slot in self._core.slots
            for queue in slot.shard.queues.values()
            if any(totals := _totals(queue, 0))
        )

    def activity(self, queue: Queue) -> int:
        """Returns how many jobs were pushed and completed in this minute and the one before."""
        done = queue.pushed_total + queue.completed_total
        if not done:
            return 0
        before = self._before.get(queue.name)
        if before is not None:
            since = done - before.pushed - before.completed
            # Fewer than before: it was deleted since, and began again.
            done = done if since < 0 else since
        return done + self._last.get(queue.name, 0)

    async def delete_old(self, minute: int) -> int:
        """Deletes a slice of what is too old in this minute; returns how many rows."""
        return await self._store.delete_before(minute - KEPT_MINUTES, DELETED_ROWS)

    async def find(self, queue: str, first: int, last: int) -> Sequence[QueueMinute]:
        """Returns up to a day of minutes, the earliest first. Minutes in which nothing happened are
        left out, and so are those of queues that were not among the busiest.
        """
        return await self._store.find(queue, first, last, PAGE_MINUTES)

    async def _happened(self) -> dict[str, Totals]:
        """Returns the queues in which something happened since the last call, and what."""
        happened: dict[str, Totals] = {}
        after: dict[str, Totals] = {}
        dead, self._dead = self._dead, {}
        for slot in self._core.slots:
            queues = list(slot.shard.queues.values())
            for at in range(0, len(queues), STEP_QUEUES):
                for queue in queues[at : at + STEP_QUEUES]:
                    name = queue.name
                    now = _totals(queue, dead.get(name, 0))
                    if any(now):
                        after[name] = now
                        totals = now.since(self._before.get(name, Totals()))
                        if any(totals):
                            happened[name] = totals
                await asyncio.sleep(0)
        # Both at once: `activity` is asked between the steps, too.
        self._before = after
        self._last = {name: one.pushed + one.completed for name, one in happened.items()}
        return happened

    def _waited(self) -> dict[str, list[int]]:
        """Returns how long jobs waited that were handed out since the last call, in buckets, by
        queue; of all under ALL_QUEUES.
        """
        waited: dict[str, list[int]] = {}
        everything = [0] * (len(BOUNDS) + 1)
        for name, durations in self._core.durations.by_queue.items():
            now = [*durations.waiting.buckets]
            new = [*map(sub, now, self._buckets.get(name, [0] * len(now)))]
            if any(new):
                self._buckets[name], waited[name] = now, new
                everything = [*map(add, everything, new)]
        if any(everything):
            waited[ALL_QUEUES] = everything
        return waited


def _totals(queue: Queue, dead: int) -> Totals:
    return Totals(queue.pushed_total, queue.completed_total, queue.failed_total, dead)


def _row(queue: str, minute: int, totals: Totals, waited: Sequence[int] | None) -> QueueMinute:
    p50 = p95 = None
    if waited is not None:
        p50, p95 = (round(1_000 * percentile(waited, BOUNDS, share)) for share in (0.5, 0.95))
    return QueueMinute(queue, minute, *totals, p50, p95)

"""Activity: tells watchers when a queue has more work than a number of jobs, and when no longer.

Watchers are found by their queue, and those of one queue by the number that they asked for: a
commit costs a look-up for each queue that it touched, however many watchers there are, and a
watcher is woken only when its own answer changes. Before the first watcher no commit is looked at.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager

from jobline_server.engine.commands import Refused
from jobline_server.engine.endings import Ending, JobsEnded, RunsEnded
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.core import Core
from jobline_server.runtime.slots import ShardSlot
from jobline_server.runtime.workload import workload

# After its work is done a queue is called active for so long: one that gets a job now and then
# would have its workers stopped and started for each of them.
QUIET_SECONDS = 5.0


class _Threshold:
    """Whether the work of a queue is above a number of jobs."""

    __slots__ = ("_changed", "is_above", "watchers")

    def __init__(self, *, is_above: bool) -> None:
        self.is_above = is_above
        self.watchers = 0
        self._changed = asyncio.Event()

    def change(self) -> None:
        """Turns the answer round."""
        self.is_above = not self.is_above
        self.wake()

    def wake(self) -> None:
        """Has all who wait look again."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def change_comes(self) -> None:
        """Returns after the next change."""
        await self._changed.wait()


class _WatchedQueue:
    """The thresholds of one queue, in order, and its work when it was last looked at. `refusal`: it
    is not served any more.
    """

    __slots__ = ("_order", "refusal", "thresholds", "work")

    def __init__(self, work: int) -> None:
        self.work = work
        self.refusal: Refused | None = None
        self.thresholds: dict[int, _Threshold] = {}
        self._order: list[int] = []

    def join(self, jobs: int) -> _Threshold:
        """Adds a watcher of a threshold."""
        found = self.thresholds.get(jobs)
        if found is None:
            found = self.thresholds[jobs] = _Threshold(is_above=self.work > jobs)
            insort(self._order, jobs)
        found.watchers += 1
        return found

    def leave(self, jobs: int) -> None:
        """Removes a watcher."""
        found = self.thresholds[jobs]
        found.watchers -= 1
        if not found.watchers:
            del self.thresholds[jobs]
            self._order.remove(jobs)

    def update(self, work: int) -> None:
        """Changes the answer of those thresholds that the work has passed."""
        low, high = sorted((self.work, work))
        self.work = work
        # It is above all thresholds that are less.
        first, end = bisect_left(self._order, low), bisect_left(self._order, high)
        for jobs in self._order[first:end]:
            self.thresholds[jobs].change()


class Activity:
    """All who watch whether queues have work."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._queues: dict[str, _WatchedQueue] = {}
        self._listens = False

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Looks at the watched queues among those that were touched."""
        watched = self._queues
        if not watched:
            return
        touched: dict[str, None] = {}
        for batch in batches:
            for queue in batch.woken:
                touched[queue.name] = None
            for ending in batch.endings:
                touched[_queue_of(ending)] = None
            for fact, _, _ in batch.applied:
                touched[getattr(fact, "queue", "")] = None
        for name in touched.keys() & watched.keys():
            watched[name].update(self._work(name))

    def on_closed(self, slot: ShardSlot) -> None:
        """Refuses the watchers of a shard that was lost."""
        for name, watched in self._queues.items():
            if self._core.slots.number_of(name) == slot.number:
                watched.refusal = self._core.slots.refusal(slot.number)
                for threshold in watched.thresholds.values():
                    threshold.wake()

    def is_active(self, queue: str, above: int) -> bool:
        """Returns whether a queue has more work than this many jobs; one that does not exist has
        none. Raises `Refused` if its shard is not here.
        """
        self._core.slots.of_queue(queue)
        return self._work(queue) > above

    async def watch(self, queue: str, above: int) -> AsyncGenerator[bool, None]:
        """Yields whether a queue has more work than this many jobs: now, True as soon as it has,
        and False when it had not for a while. Raises `Refused` if its shard is not here.
        """
        self._core.slots.of_queue(queue)
        with self._watched(queue, above) as (watched, threshold):
            said = threshold.is_above
            yield said
            while True:
                while threshold.is_above is said and watched.refusal is None:
                    await threshold.change_comes()
                if said:
                    await asyncio.sleep(QUIET_SECONDS)
                if watched.refusal is not None:
                    raise watched.refusal
                if threshold.is_above is not said:
                    said = not said
                    yield said

    @contextmanager
    def _watched(self, queue: str, above: int) -> Iterator[tuple[_WatchedQueue, _Threshold]]:
        if not self._listens:
            self._listens = True
            self._core.listen("commit_activity", self.on_committed)
        watched = self._queues.get(queue)
        if watched is None:
            watched = self._queues[queue] = _WatchedQueue(self._work(queue))
        try:
            yield watched, watched.join(above)
        finally:
            watched.leave(above)
            if not watched.thresholds:
                del self._queues[queue]

    def _work(self, queue: str) -> int:
        return workload(self._core.slots.find_queue(queue))


def _queue_of(ending: Ending) -> str:
    if isinstance(ending, RunsEnded):
        return ending.lot.queue.name
    return ending.jobs[0].queue.name if isinstance(ending, JobsEnded) else ""

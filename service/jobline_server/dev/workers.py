"""Waits until workers have done what they can do now, and says what is left if they have not."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

from jobline_server.engine.values import JobState
from jobline_server.rpc.test_service import NotReached
from jobline_server.runtime.calls.worker_stream import WorkerStream
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import JobFilter, JobView
from jobline_server.runtime.waiting import is_set_by

Lease = tuple[int, int]

# Queues that a message names.
QUEUES_SHOWN = 5
# Jobs of a message that are looked at.
JOBS_SHOWN = 1_000


class Workers:
    """What the connected workers have, and what waits for them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._changed: set[asyncio.Event] = set()
        runtime.core.listen("dev_workers", self._on_committed)

    def _on_committed(self, _batches: Sequence[CommittedBatch]) -> None:
        for event in self._changed:
            event.set()

    @contextmanager
    def _hearing(self) -> Iterator[asyncio.Event]:
        """Yields an event that every commit sets."""
        event = asyncio.Event()
        self._changed.add(event)
        try:
            yield event
        finally:
            self._changed.discard(event)

    async def wait_done(self, until: float, outlasting: set[Lease]) -> None:
        """Waits until workers with streams have nothing left, or the loop's time is `until`; adds
        the leases that are left then to `outlasting`, which it does not wait for.
        """
        with self._hearing() as changed:
            while self._is_busy(outlasting):
                changed.clear()
                if not await is_set_by(changed, until):
                    outlasting.update(self._held(outlasting))
                    return

    def _is_busy(self, but: set[Lease]) -> bool:
        if but:
            return bool(self._held(but))
        return any(stream.in_flight.jobs for stream in self._runtime.streams.open.values())

    def _held(self, but: set[Lease]) -> set[Lease]:
        """Returns the leases of workers with streams, `but` some."""
        streams = [*self._runtime.streams.open.values()]
        return {lease for stream in streams if stream.in_flight.jobs for lease in _of(stream)} - but

    async def drain(self, queue: str, seconds: float) -> None:
        """Waits until no job of a queue, of any if it is empty, is READY or ACTIVE. Raises
        `NotReached`.
        """
        until = asyncio.get_running_loop().time() + seconds
        with self._hearing() as changed:
            while True:
                changed.clear()
                await self._runtime.core.commits.wait()
                if not self._left(queue):
                    return
                if not await is_set_by(changed, until):
                    raise NotReached(await self._why_left(queue))

    def _left(self, queue: str) -> Counter[str]:
        """Returns the queues with jobs that are READY or ACTIVE, and how many."""
        left: Counter[str] = Counter()
        for slot in self._runtime.core.slots:
            for one in slot.shard.queues.values():
                count = one.counts[JobState.READY] + one.counts[JobState.ACTIVE]
                if count and queue in {"", one.name}:
                    left[one.name] = count
        return left

    async def _why_left(self, queue: str) -> str:
        left = self._left(queue)
        lines = [await self._why(name) for name in islice(left, QUEUES_SHOWN)]
        more = [f"{len(left) - QUEUES_SHOWN} more queues"] if len(left) > QUEUES_SHOWN else []
        return "not drained: " + "; ".join([*lines, *more])

    async def _why(self, queue: str) -> str:
        states = frozenset({JobState.READY, JobState.ACTIVE})
        found = await self._find(JobFilter(queue=queue, states=states), JOBS_SHOWN)
        counts = _counted(found)
        if not found:
            return f"{queue}: changed meanwhile"
        _, obstacles = await self._runtime.explainer.explain_job(found[0].id)
        why = ", ".join(obstacle.message for obstacle in obstacles) or "about to be handed out"
        return f"{queue}: {counts}; job {found[0].id}: {why}"

    async def wait_for(self, wanted: JobFilter, count: int, seconds: float) -> list[JobView]:
        """Waits until `count` jobs match; returns the first of them by id. Raises `NotReached`."""
        until = asyncio.get_running_loop().time() + seconds
        with self._hearing() as changed:
            while True:
                changed.clear()
                found = len(await self._find(wanted, count))
                if found >= count:
                    return await self._page(wanted, count)
                if not await is_set_by(changed, until):
                    raise NotReached(await self._why_not(wanted, count, found))

    async def _page(self, wanted: JobFilter, count: int) -> list[JobView]:
        """Returns up to `count` jobs with payloads, fewer where these are large."""
        views, _ = await self._runtime.jobs.list_jobs(
            wanted, page_size=count, page_token="", include_payloads=True
        )
        return views

    async def _why_not(self, wanted: JobFilter, count: int, found: int) -> str:
        what = f"{count} jobs wanted, {found} match" if count > 1 else "no job matches"
        if wanted.states:
            alike = await self._find(replace(wanted, states=frozenset()), JOBS_SHOWN)
            return f"{what}; in any state: {_counted(alike) or 'none'}"
        return what

    async def _find(self, wanted: JobFilter, count: int) -> list[JobView]:
        """Returns up to `count` jobs, without payloads."""
        found: list[JobView] = []
        token = ""
        while len(found) < count:
            views, token = await self._runtime.jobs.list_jobs(
                wanted, page_size=count - len(found), page_token=token, include_payloads=False
            )
            found += views
            if not token:
                break
        return found


def _of(stream: WorkerStream) -> Iterator[Lease]:
    for holder in list(stream.holders.values()):
        yield from holder.held()


def _counted(views: Sequence[JobView]) -> str:
    counts = Counter(view.state.name for view in views)
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))

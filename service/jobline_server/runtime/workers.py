"""What workers ask one call at a time: pull, ack, fail, release, extend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TypeVar

from jobline_server.engine.commands import (
    Exceptions,
    ExtendItem,
    FailItem,
    FailResult,
    Leased,
    LeasedJob,
    LeasedRun,
    ReleaseItem,
)
from jobline_server.engine.decide.lease import leased_job
from jobline_server.engine.decide.settle import held
from jobline_server.engine.holder import Holder, Tally
from jobline_server.engine.job import Job
from jobline_server.engine.lot import RunLease
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import LeaseReason, SettleOutcome
from jobline_server.runtime.core import Core
from jobline_server.runtime.dispatcher import Dispatcher
from jobline_server.runtime.replies import Replies, Run, leases_of, runs_of
from jobline_server.runtime.settles import ACKED, FAILED, NEVER, Item, Settles

# The payload that one pull may carry.
PULL_BYTES_MAX = 3 << 20
# Fails, releases and extends that are decided in one turn of the loop: ten milliseconds or so.
SETTLES_AT_ONCE = 1_000

T = TypeVar("T")


class Poll:
    """A pull that waits for jobs: a consumer for as long as the call lasts."""

    def __init__(
        self,
        queues: tuple[tuple[str, int], ...],
        *,
        max_jobs: int,
        lease_ms: int,
        worker: str,
        names: frozenset[str],
    ) -> None:
        self.queues = queues
        self.lease_ms = lease_ms
        self.leased: list[Leased] = []
        self.arrived = asyncio.Event()
        self._max_jobs = max_jobs
        self._worker = worker
        self._names = names or None
        self._tally = Tally()
        self._holders: dict[int, Holder] = {}
        self._over = False

    def room(self) -> tuple[int, int]:
        """What is left of what it asked for."""
        if self._over:
            return 0, 0
        left_bytes = PULL_BYTES_MAX - self._tally.payload_bytes
        return self._max_jobs - self._tally.jobs, max(left_bytes, 0)

    def names_for(self, _queue: str) -> frozenset[str] | None:
        """The names it asked for, in every queue."""
        return self._names

    def holder_on(self, shard: Shard) -> Holder:
        """A holder of its own: a pull's leases are extended one by one."""
        holder = self._holders.get(shard.number)
        if holder is None:
            holder = self._holders[shard.number] = Holder(self._worker, "", self._tally)
        return holder

    def take(self, leased: Leased) -> None:
        """Jobs arrived."""
        self.leased.append(leased)
        self.arrived.set()

    def end(self) -> None:
        """It takes no more."""
        self._over = True


class Workers:
    """Calls of workers that hold no stream."""

    def __init__(self, core: Core, dispatcher: Dispatcher, settles: Settles) -> None:
        self._core = core
        self._dispatcher = dispatcher
        self._settles = settles
        self._replies = Replies()

    async def pull(  # noqa: PLR0913  # the fields of one call of the protocol
        self,
        *,
        queues: Sequence[tuple[str, int]],
        max_jobs: int,
        wait_ms: int,
        lease_ms: int | None,
        worker: str,
        request_id: bytes,
        accepts_runs: bool,
        names: frozenset[str],
    ) -> Leased:
        """Leases jobs, and waits for the first one if asked to. The same request id again returns
        those of its leases that are still held, and while the first such call is waiting it waits
        for that one. If the call is cancelled its jobs go back, as if never handed out.
        """
        until = asyncio.get_running_loop().time() + wait_ms / 1_000
        poll = Poll(
            tuple(queues), max_jobs=max_jobs, lease_ms=lease_ms or 0, worker=worker, names=names
        )
        if not request_id:
            leased = await self._lease(poll, until)
        else:
            try:
                known = await self._replies.of(request_id, until)
            except TimeoutError:
                # Its jobs are still to come: they are for the call that waits, and for repeats.
                return Leased()
            if known is not None:
                return self._still_held(known)
            with self._replies.asking(request_id):
                leased = await self._lease(poll, until)
                self._replies.remember(request_id, leased)
        # One reply says "runs, then jobs": another order is told job by job.
        leased.one_by_one = not accepts_runs or bool(leased.in_order)
        return leased

    async def _lease(self, poll: Poll, until: float) -> Leased:
        try:
            await self._wait_for_jobs(poll, until)
        except asyncio.CancelledError:
            self._settles.release(releases_of(together(poll.leased)))
            raise
        return together(poll.leased)

    async def _wait_for_jobs(self, poll: Poll, until: float) -> None:
        has_time = until > asyncio.get_running_loop().time()
        if self._dispatcher.serve_taker(poll) or not has_time or self._core.draining:
            poll.end()
            return
        self._dispatcher.join(poll)
        try:
            async with asyncio.timeout_at(until):
                await poll.arrived.wait()
        except TimeoutError:
            pass
        finally:
            poll.end()
            self._dispatcher.leave(poll)

    def _still_held(self, runs: Iterable[Run]) -> Leased:
        jobs: list[LeasedJob] = []
        for job_id, delivery in leases_of(runs):
            shard = self._core.shard_of_id(job_id)
            lease = held(shard, job_id, delivery) if shard is not None else None
            if isinstance(lease, Job):
                jobs.append(leased_job(lease))
            elif isinstance(lease, RunLease):
                jobs.append(leased_member(lease, job_id))
        return Leased(jobs=jobs)

    async def ack(
        self, ids: list[int], deliveries: list[int], results: dict[int, bytes]
    ) -> Exceptions:
        """Settles jobs as done; returns after the commit."""
        exceptions = self._settles.ack(ids, deliveries, results)
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
        missing: Exceptions = [
            (index, result.outcome)
            for index, result in enumerate(results)
            if result.outcome is SettleOutcome.NOT_FOUND
        ]
        leases = [(item.id, item.delivery) for item in items]
        for index, outcome in await self._settles.explain_missing(leases, missing, repeated=FAILED):
            results[index] = FailResult(outcome)
        return results

    async def release(self, items: list[ReleaseItem]) -> Exceptions:
        """Gives jobs back; returns after the commit."""
        exceptions = await self._in_slices(items, self._settles.release)
        await self._core.commits.wait()
        leases = [(item.id, item.delivery) for item in items]
        return await self._settles.explain_missing(leases, exceptions, repeated=NEVER)

    async def extend(self, items: list[ExtendItem]) -> Exceptions:
        """Keeps leases alive; returns after the commit if anything was reported."""
        exceptions = await self._in_slices(items, self._settles.extend)
        if any(item.checkpoint is not None for item in items):
            await self._core.commits.wait()
        leases = [(item.id, item.delivery) for item in items]
        return await self._settles.explain_missing(leases, exceptions, repeated=NEVER)

    async def _in_slices(
        self, items: Sequence[Item], settle: Callable[[Sequence[Item]], Exceptions]
    ) -> Exceptions:
        exceptions: Exceptions = []
        start = 0
        async for part in slices(items):
            exceptions += [(start + index, outcome) for index, outcome in settle(part)]
            start += len(part)
        return exceptions


async def slices(items: Sequence[T]) -> AsyncIterator[Sequence[T]]:
    """Items some at a time, with the loop free in between: each costs what a job alone does."""
    for start in range(0, len(items), SETTLES_AT_ONCE):
        if start:
            await asyncio.sleep(0)
        yield items[start : start + SETTLES_AT_ONCE]


def together(parts: Sequence[Leased]) -> Leased:
    """What was leased in several parts as one, in order."""
    items = [item for part in parts for item in part.items()]
    runs = [item for item in items if isinstance(item, LeasedRun)]
    jobs = [item for item in items if isinstance(item, LeasedJob)]
    is_runs_first = all(isinstance(item, LeasedRun) for item in items[: len(runs)])
    return Leased(jobs, runs, [] if is_runs_first else items)


def leased_member(lease: RunLease, job_id: int) -> LeasedJob:
    """One job of a run, as if it had been handed out alone."""
    lot = lease.lot
    return LeasedJob(
        id=job_id,
        delivery=lease.delivery,
        queue=lot.queue.name,
        options=lot.options,
        payload=lot.payloads[job_id - lot.first_id],
        attempt=1,
        reason=LeaseReason.FIRST,
        lease_ms=lease.lease_ms,
        checkpoint=b"",
        pushed_ms=lot.pushed_ms,
        job_key="",
    )


def releases_of(leased: Leased) -> list[ReleaseItem]:
    """What gives these jobs back."""
    return [ReleaseItem(job_id, delivery) for job_id, delivery in leases_of(runs_of(leased))]

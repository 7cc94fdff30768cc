"""Pulls: leases jobs one call at a time.

A lease counts only once its reply was taken. A pull that is cancelled, or whose reply reached
nobody, releases its jobs at once: they are as if never handed out, except for the delivery number
that was used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from jobline_server.engine import limits
from jobline_server.engine.commands import Leased, LeasedJob, Pull, Refused
from jobline_server.engine.decide.lease import leased_job
from jobline_server.engine.decide.once import is_once
from jobline_server.engine.decide.settle import held
from jobline_server.engine.holder import Holder, InFlight
from jobline_server.engine.job import Job
from jobline_server.engine.lot import RunLease
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import LeaseReason
from jobline_server.runtime.calls.pull_dedup import PullDedup, PullKey, Run, leases_of, runs_of
from jobline_server.runtime.calls.returns import Returns
from jobline_server.runtime.core import Core
from jobline_server.runtime.dispatcher import Dispatcher
from jobline_server.runtime.held_back import HandOut, parts_of
from jobline_server.runtime.slots import ShardSlot
from jobline_server.runtime.waiting import is_set_by

# The payload that one pull may carry.
PULL_BYTES_MAX = 3 << 20


class LongPoll:
    """A pull that waits for jobs: a consumer for as long as the call lasts."""

    def __init__(self, pull: Pull) -> None:
        self.queues = pull.queues
        self.lease_ms = pull.lease_ms or 0
        self.payload_bytes_max = pull.message_bytes_max - limits.JOB_EXTRA_BYTES
        self.version = self.session_id = ""
        self.leased: list[Leased] = []
        self.held_back: list[HandOut] = []
        self.arrived = asyncio.Event()
        self._max_jobs = pull.max_jobs
        self._worker = pull.worker
        self._names = pull.names or None
        self.in_flight = InFlight()
        self._holders: dict[int, Holder] = {}
        self._over = False
        self.is_given_up = False
        self.refusal: Refused | None = None

    def room(self) -> tuple[int, int]:
        """Returns how many of the places for jobs it asked for, and bytes, are left."""
        if self._over:
            return 0, 0
        left_bytes = PULL_BYTES_MAX - self.in_flight.payload_bytes
        taken = self.in_flight.jobs + self.in_flight.extra_slots
        return self._max_jobs - taken, max(left_bytes, 0)

    def names_for(self, _queue: str) -> frozenset[str] | None:
        """Returns the names it asked for, in every queue."""
        return self._names

    def holder_on(self, shard: Shard) -> Holder:
        """Returns a holder of its own per shard: a pull's leases are extended one by one."""
        holder = self._holders.get(shard.number)
        if holder is None:
            holder = self._holders[shard.number] = Holder(
                self._worker, "", in_flight=self.in_flight
            )
        return holder

    def take(self, leased: Leased) -> None:
        """Keeps leased jobs for the reply."""
        self.leased.append(leased)
        self.arrived.set()

    def end(self) -> None:
        """Ends it: it takes no more jobs."""
        self._over = True

    def refuse(self, refusal: Refused) -> None:
        """None of its queues is here any more."""
        self.refusal = refusal
        self.end()
        self.arrived.set()

    def give_up(self) -> None:
        """Ends it without a reply: its caller is gone."""
        self.is_given_up = True
        self.end()
        self.arrived.set()


class PullCalls:
    """Leases jobs to callers, and releases those that did not arrive."""

    def __init__(self, core: Core, dispatcher: Dispatcher, returns: Returns) -> None:
        self._core = core
        self._dispatcher = dispatcher
        self._returns = returns
        self._replies = PullDedup()

    async def pull(self, pull: Pull) -> Leased:
        """Leases jobs, and waits for the first one if asked to. A repeat with the same request id
        returns those of the first call's leases that are still held; while the first call waits,
        the repeat waits for it. A cancelled call releases its jobs; if the reply is lost later,
        call `untaken`.
        """
        until = asyncio.get_running_loop().time() + pull.wait_ms / 1_000
        poll = LongPoll(pull)
        if not pull.request_id:
            leased = await self._lease(poll, until)
        else:
            key = PullKey.of(pull)
            try:
                known = await self._replies.of(key, until)
            except TimeoutError:
                # Its jobs are still to come: they are for the call that waits, and for repeats.
                return Leased()
            again = self._still_held(known)
            if again.jobs:
                self._replies.tell_again(key)
                return again
            with self._replies.asking(key, poll.give_up):
                leased = await self._lease(poll, until)
                self._replies.remember(key, leased)
        # One reply says "runs, then jobs": another order is told job by job.
        leased.one_by_one = not pull.accepts_runs or bool(leased.in_order)
        return leased

    def untaken(self, pull: Pull, leased: Leased) -> None:
        """Releases the jobs of a reply that reached nobody, unless a repeat of the call has
        them. Those that may be handed out only once may have arrived: they are for a repeat.
        """
        leases = leases_of(runs_of(leased))
        if any(item.is_once for item in leased.items()):
            self._returns.release_doubtful(leases)
        elif not pull.request_id or self._replies.lose(PullKey.of(pull)):
            self._returns.start(leases)

    def give_back_rest(self, leases: Iterable[tuple[int, int]]) -> None:
        """Releases jobs, as (id, delivery), that did not fit into the reply."""
        self._returns.start(leases)

    def give_back(self, pull: Pull) -> None:
        """Releases the leases of this pull, whose caller does not want the reply; ends it without
        jobs if it still waits. Raises `Refused` with IDEMPOTENCY_MISMATCH if another request had
        the same id.
        """
        self._returns.start(leases_of(self._replies.give_up(PullKey.of(pull))))

    async def _lease(self, poll: LongPoll, until: float) -> Leased:
        try:
            await self._wait_for_jobs(poll, until)
            await self._wait_for_commits(poll)
        except asyncio.CancelledError:
            poll.is_given_up = True
            raise
        finally:
            leased = together(poll.leased)
            if poll.is_given_up:
                never_taken = [*poll.leased, *parts_of(poll.held_back)]
                poll.held_back.clear()
                self._returns.start(leases_of(runs_of(together(never_taken))))
        return Leased() if poll.is_given_up else leased

    async def _wait_for_jobs(self, poll: LongPoll, until: float) -> None:
        has_time = until > asyncio.get_running_loop().time()
        for _ in self._dispatcher.serve_slices(poll):
            await asyncio.sleep(0)
        has_jobs = bool(poll.leased or poll.held_back)
        if has_jobs or not has_time or self._core.draining:
            poll.end()
            if not has_jobs:
                self._core.slots.check_any_queue(poll.queues)
            return
        self._core.slots.check_any_queue(poll.queues)
        self._dispatcher.join(poll)
        try:
            await is_set_by(poll.arrived, until)
        finally:
            poll.end()
            self._dispatcher.leave(poll)
        if poll.refusal is not None:
            raise poll.refusal

    async def _wait_for_commits(self, poll: LongPoll) -> None:
        """Waits until the poll has the jobs that are held back for it, or gave up. Raises `Refused`
        if they are lost and it has no others.
        """
        while poll.held_back and not poll.is_given_up:
            slot = poll.held_back[0].slot
            try:
                await self._core.commits.wait(slot)
                self._dispatcher.held_back.deliver(slot)
            except Refused:
                poll.held_back.clear()
                if not poll.leased:
                    raise

    def on_closed(self, _slot: ShardSlot) -> None:
        """A shard was lost: refuses pulls that wait and have no queue that is here any more."""
        rings, slots = self._core.rings, self._core.slots
        for name in rings.queues():
            for consumer in rings.consumers(name) if slots.find_by_queue(name) is None else ():
                if isinstance(consumer, LongPoll):
                    try:
                        slots.check_any_queue(consumer.queues)
                    except Refused as refused:
                        consumer.refuse(refused)

    def _still_held(self, runs: Iterable[Run]) -> Leased:
        jobs: list[LeasedJob] = []
        for job_id, delivery in leases_of(runs):
            slot = self._core.slots.find_by_id(job_id)
            lease = held(slot.shard, job_id, delivery) if slot is not None else None
            if isinstance(lease, Job):
                jobs.append(leased_job(lease))
            elif isinstance(lease, RunLease):
                jobs.append(leased_member(lease, job_id))
            else:
                continue
            jobs[-1].is_once = is_once(lease)
        return Leased(jobs=jobs)


def together(parts: Sequence[Leased]) -> Leased:
    """Returns several parts of a reply as one, in order."""
    return Leased.of([item for part in parts for item in part.items()])


def leased_member(lease: RunLease, job_id: int) -> LeasedJob:
    """Returns one job of a run as a job that was handed out alone."""
    lot, payloads = lease.lot, lease.lot.payloads
    index = job_id - lot.first_id
    return LeasedJob(
        id=job_id,
        delivery=lease.delivery,
        queue=lot.queue.name,
        options=payloads.options_of(index, lot.options),
        payload=payloads[index],
        attempt=1,
        reason=LeaseReason.FIRST,
        lease_ms=lease.lease_ms,
        worker_checkpoint=b"",
        pushed_ms=lot.pushed_ms,
        job_key=payloads.job_key_of(index),
    )

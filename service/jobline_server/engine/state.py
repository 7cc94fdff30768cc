"""The state of a shard: durable fields, bookkeeping, and look-ups.

Only `apply` changes the durable fields. Nothing here decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from jobline_server.engine import limits
from jobline_server.engine.age import Age
from jobline_server.engine.batch_table import BatchTable
from jobline_server.engine.changes import Bundle, Changes
from jobline_server.engine.clocks import LeaseClocks
from jobline_server.engine.closed_groups import ClosedGroups
from jobline_server.engine.delayed import DelayedJobs, Entry
from jobline_server.engine.dependencies import Dependencies
from jobline_server.engine.effects import Effect, QueueWoken, Revoked
from jobline_server.engine.expiring import Expiring
from jobline_server.engine.fair import FairShare
from jobline_server.engine.gate_timers import GateTimers
from jobline_server.engine.group import Group
from jobline_server.engine.group_rates import GroupRates
from jobline_server.engine.job import Job
from jobline_server.engine.keys import KeyTable
from jobline_server.engine.limiter_counts import active_of, join
from jobline_server.engine.limiters import Limiters, LimiterSettings
from jobline_server.engine.load import Load
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.lots import LotIndex
from jobline_server.engine.producers import ProducerTable
from jobline_server.engine.queue import Queue
from jobline_server.engine.schedules import Schedules
from jobline_server.engine.shard_messages import MessageTable
from jobline_server.engine.sticky import StickyJobs, give_all_away
from jobline_server.engine.tables import IdTable
from jobline_server.engine.timeouts import start_run_timeout, start_timeouts
from jobline_server.engine.unique import UniqueKeys
from jobline_server.engine.values import JobState, Now, RevokeReason
from jobline_server.engine.webhooks import Webhooks
from jobline_server.engine.windows import WindowTable

# Enum attribute access is slow before Python 3.12.
_ACTIVE, _READY, _SCHEDULED = JobState.ACTIVE, JobState.READY, JobState.SCHEDULED


class ShardState:
    """A set of queues with all their live jobs: the unit of ownership, persistence and movement."""

    def __init__(self, number: int, *, epoch: int, next_sequence: int = 1, load: Load) -> None:
        self.changes = Changes()
        # Durable.
        self.number = number
        self.epoch = epoch
        self.next_sequence = next_sequence
        self.next_order = 1
        self.front_order = 0
        self.queues: dict[str, Queue] = {}
        self.lots = LotIndex()
        self.jobs: IdTable[Job] = IdTable()
        self.keys = KeyTable()
        self.requests = KeyTable()
        self.producers = ProducerTable(self.changes.producers)
        self.messages = MessageTable()
        self.unique = UniqueKeys(self.changes.throttles)
        self.dependencies = Dependencies(self.changes.awaited)
        self.batches = BatchTable(number, self.changes.batches)
        self.age = Age()
        self.group_records: IdTable[Group] = IdTable()
        self.own_limiters: dict[str, LimiterSettings] = {}
        self.schedules = Schedules()
        self.webhooks = Webhooks()
        self.told_offset = 0  # of the row that webhooks were told of last; set without a fact
        # Bookkeeping.
        self.offset = 0
        """The offset of the fact that is being applied; 0 for a volatile one."""
        self.at_ms = 0
        """The wall time of the fact that is being applied."""
        self.bundles: IdTable[Bundle] = IdTable()
        self.volatile_producers = ProducerTable(None)
        self.load = load
        load.batches[number] = self.batches
        # Of what is kept beside payloads: what workers reported on jobs, callbacks of batches.
        self.report_bytes = 0
        self.group_rates = GroupRates(self.queues, load)
        self.closed_groups = ClosedGroups()
        # Those of the server take over when the shard is open.
        self.limiters = Limiters()
        self.clocks = LeaseClocks()
        self.delayed = DelayedJobs()
        self.expiring = Expiring()
        self.gates = GateTimers()
        self.sticky = StickyJobs()
        self.committed = 0
        self.next_offset = 1
        self.resting: list[FairShare] = []
        """Those of whose tenants some became idle by the fact that is being applied."""
        self.effects: list[Effect] = []
        """The effects of the fact that is being applied."""

    def remove_from_bundle(self, bundle: Bundle) -> None:
        """Has the next checkpoint write a bundle without one of its jobs, which changed or ended,
        or delete the bundle if that was its last job.
        """
        bundle.jobs -= 1
        changes, first_id = self.changes.bundles, bundle.first_id
        if bundle.jobs:
            changes.to_write.add(first_id)
        else:
            del self.bundles[first_id]
            changes.to_write.discard(first_id)
            changes.to_delete.append(first_id)

    def count_reports(self, report_bytes: int) -> None:
        """Adds to the bytes of reports, or takes away from them."""
        self.report_bytes += report_bytes
        self.load.report_bytes += report_bytes

    def wake(self, queue: Queue) -> None:
        """Adds the effect that a queue may have jobs to dispatch, unless it was the last one."""
        last = self.effects[-1] if self.effects else None
        if not isinstance(last, QueueWoken) or last.queue is not queue:
            self.effects.append(QueueWoken(queue))

    def revoke(self, lease: Job | RunLease, job_id: int, reason: RevokeReason) -> None:
        """Adds the effect that the holder of a lease should stop working on a job."""
        if lease.holder is not None:
            self.effects.append(Revoked(lease.holder, job_id, lease.delivery, reason))

    def holds_keys(self) -> bool:
        """Returns whether there are keys or producers that may expire."""
        return any(table.has_any for table in self._windows())

    def forget_keys(self, aged_ms: int, limit: int) -> bool:
        """Sweeps up to `limit` expired keys and calls of each kind; returns whether more are left.
        It emits no fact, as look-ups do not find expired entries.
        """
        self.load.keys -= self.keys.forget(aged_ms, limit)
        self.load.requests -= self.requests.forget(aged_ms, limit)
        self.load.calls -= self.producers.forget(aged_ms, limit)
        self.load.calls -= self.volatile_producers.forget(aged_ms, limit)
        self.load.throttles -= self.unique.throttled.forget(aged_ms, limit)
        return any(table.is_due(aged_ms) for table in self._windows())

    def _windows(self) -> tuple[WindowTable[Any], ...]:
        return (
            self.unique.throttled,
            self.keys,
            self.requests,
            self.producers,
            self.volatile_producers,
        )

    def leave_load(self) -> None:
        """Subtracts its jobs, keys and calls from the server's load, as it is not served any more.
        Later decisions count on a `Load` of its own.
        """
        load, self.load = self.load, Load()
        for rules, count in active_of(self.jobs.every(), self.lots.lots.every()):
            load.limiters.free(rules, count, 0)
        for queue in self.queues.values():
            load.let_go(queue)
        load.report_bytes -= self.report_bytes
        self.group_rates.move_to(self.load)
        load.keys -= len(self.keys.records)
        load.requests -= len(self.requests.records)
        load.throttles -= len(self.unique.throttled.records)
        load.dependencies -= self.dependencies.edges
        load.batches[self.number] = None
        for job in self.jobs.every():
            load.wanted.remove(job.ties.parents)
        for table in (self.producers, self.volatile_producers):
            load.calls -= sum(1 + len(record.calls) for record in table.records.values())
        for sent in self.messages.waiting.values():
            load.outgoing_jobs -= sent.message.jobs()
            load.outgoing_bytes -= sent.message.payload_bytes()

    # Ids and order.

    def id_of(self, sequence: int) -> int:
        """Returns the id with this sequence number."""
        return self.number << limits.SEQUENCE_BITS | sequence

    def next_id(self) -> int:
        """Returns the id that the next job will have."""
        return self.number << limits.SEQUENCE_BITS | self.next_sequence

    def use_ids(self, first_id: int, count: int) -> None:
        """Marks ids as used."""
        after = (first_id & ((1 << limits.SEQUENCE_BITS) - 1)) + count
        self.next_sequence = max(self.next_sequence, after)

    def tail_order(self) -> int:
        """Returns the `order` of an item that becomes READY now."""
        self.next_order += 1
        return self.next_order

    def front_orders(self, count: int) -> range:
        """Returns the `order` of items that go to the front of their lanes now: negative, and lower
        than those of all before them.
        """
        self.front_order -= count
        return range(self.front_order, self.front_order + count)

    # Look-ups.

    def find_lease(self, job_id: int) -> tuple[Job | RunLease | None, bool]:
        """Returns the job or run that holds this id as ACTIVE, and whether the id is live."""
        job = self.jobs.find(job_id)
        if job is not None:
            return (job if job.state is _ACTIVE else None), True
        lot = self.lots.find(job_id)
        if lot is None:
            return None, False
        index = job_id - lot.first_id
        lease = lot.lease_at(index)
        if lease is None:
            return None, lot.is_waiting(index)
        return (lease, True) if lease.is_open(index) else (None, False)

    def state_of(self, job_id: int) -> JobState | None:
        """Returns the state of a live job; None if it is not live."""
        job = self.jobs.find(job_id)
        if job is not None:
            return job.state
        lot = self.lots.find(job_id)
        if lot is None:
            return None
        index = job_id - lot.first_id
        lease = lot.lease_at(index)
        if lease is not None:
            return _ACTIVE if lease.is_open(index) else None
        if not lot.is_waiting(index):
            return None
        return lot.state

    def first_delivery(self) -> int:
        """Returns the `delivery` of a job's first lease in this epoch, which is greater than those
        of all earlier epochs.
        """
        return self.epoch << limits.HANDOUT_BITS | 1

    def note_use(self, queue: Queue, wall_ms: int) -> None:
        """Records that a queue is in use; queues that are idle for long are deleted."""
        queue.touched_ms = wall_ms

    def schedule(self, run_at_ms: int, first_id: int) -> None:
        """Adds an entry for a delayed job or lot."""
        self.delayed.add(run_at_ms, first_id)

    def delayed_at(self, entries: Sequence[Entry]) -> Iterator[tuple[Job | None, Lot | None]]:
        """Yields the job with the id of each entry, and the lot with this first id, each if it
        becomes READY at the time of the entry.
        """
        jobs, _ = self.jobs.find_many([first_id for _, first_id in entries])
        lots = self.lots.lots
        for (run_at_ms, first_id), job in zip(entries, jobs, strict=True):
            lot = lots.find(first_id) if lots else None
            is_job = job is not None and job.state is _SCHEDULED and job.run_at_ms == run_at_ms
            is_lot = lot is not None and lot.run_at_ms == run_at_ms
            yield job if is_job else None, lot if is_lot else None

    def is_delayed_at(self, run_at_ms: int, first_id: int) -> bool:
        """Returns whether a job or lot with this id becomes READY at this time."""
        return any(map(any, self.delayed_at([(run_at_ms, first_id)])))

    def unschedule(self, count: int) -> None:
        """Sweeps part of the delayed entries, as up to `count` of them may have become obsolete."""
        self.delayed.sweep(count, self.is_delayed_at)

    def restart_leases(self, now: Now) -> None:
        """Gives every lease its full time again, and empties buckets, after recovery."""
        for queue in self.queues.values():
            if queue.allowance is not None:
                queue.allowance.restart(now.mono_ms)
                if queue.allowance.is_over():
                    queue.allowance = None
            if queue.fair is not None:
                queue.fair.restart(now.mono_ms)
        runs = [lease for lot in self.lots.lots.every() for lease in lot.leases]
        singles = [job for job in self.jobs.every() if job.holder is not None]
        self.limiters = self.load.limiters
        active = active_of(singles, self.lots.lots.every())
        self.batches.take_joining()
        join(self.limiters, self.own_limiters, active, now)
        self.group_rates.restart(now.mono_ms)
        self.closed_groups.restart(self.group_records.every(), self.queues, now)
        self.schedules.restart()
        give_all_away(self.queues.values())
        self.sticky = StickyJobs()
        self.clocks.restart(now, chain(runs, singles))
        for lease in runs:
            start_run_timeout(self, lease)
        start_timeouts(self, singles)

"""Ack: ends leased jobs as COMPLETED. The hottest verb, so it works on runs: a thousand acks in
order on one lease are one comparison and one fact. Acks in no order are grouped by lease.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from jobline_server.engine.commands import NotDone
from jobline_server.engine.decide.settle import held
from jobline_server.engine.entries import JobsCancelled, JobsCompleted
from jobline_server.engine.lot import RunLease
from jobline_server.engine.values import JobState, Now, SettleOutcome
from jobline_server.engine.view import ShardView

# Neighbouring ids are mostly on the same lease, so the lease found for one id is tried first for
# all ids of its block of 128.
_BLOCK_BITS = 7
# Enum attribute access is slow before Python 3.12.
_ACTIVE = JobState.ACTIVE
_LEASE_LOST = SettleOutcome.LEASE_LOST


class _RunAcks:
    """The acks of one run lease, which covers ids `low … high − 1`: `starts=[7], counts=[3]` acks
    jobs 7, 8, 9.
    """

    __slots__ = ("counts", "high", "lease", "low", "starts")

    def __init__(self, lease: RunLease) -> None:
        self.lease = lease
        self.low = lease.lot.first_id + lease.start
        self.high = self.low + lease.count
        self.starts: list[int] = []
        self.counts: list[int] = []

    def overlaps(self) -> bool:
        """Returns whether an id is in it twice."""
        starts = self.starts
        if len(starts) == 1:
            return False
        if sum(self.counts) == len(starts):
            return len(set(starts)) != len(starts)
        runs = sorted(zip(starts, self.counts, strict=True))
        return any(start + count > after for (start, count), (after, _) in pairwise(runs))


class _Batch:
    """One ack command, collected until it becomes facts. `completed` and `cancelled` are pairs of
    lists of single jobs: durable, volatile.
    """

    __slots__ = (
        "blocks",
        "by_lease",
        "cancelled",
        "completed",
        "deliveries",
        "exceptions",
        "ids",
        "in_order",
        "results",
    )

    def __init__(
        self, ids: list[int], deliveries: list[int], results: Mapping[int, bytes], *, in_order: bool
    ) -> None:
        self.ids = ids
        self.deliveries = deliveries
        self.results = results
        self.in_order = in_order
        self.exceptions: NotDone = []
        self.completed: tuple[list[int], list[int]] = ([], [])
        self.cancelled: tuple[list[int], list[int]] = ([], [])
        self.by_lease: dict[RunLease, _RunAcks] = {}
        self.blocks: dict[int, _RunAcks] = {}

    def acks_of(self, lease: RunLease) -> _RunAcks:
        """Returns the acks of this lease."""
        acks = self.by_lease.get(lease)
        if acks is None:
            acks = self.by_lease[lease] = _RunAcks(lease)
        return acks

    def overlaps(self) -> bool:
        """Returns whether a job is settled twice."""
        for ids in (*self.completed, *self.cancelled):
            if ids and len(set(ids)) != len(ids):
                return True
        return any(acks.overlaps() for acks in self.by_lease.values())


def are_in_order(ids: list[int], deliveries: list[int]) -> bool:
    """Returns whether the ids are consecutive and have one delivery, without a loop over jobs."""
    first_id, count = ids[0], len(ids)
    return (
        ids[-1] == first_id + count - 1
        and ids == list(range(first_id, first_id + count))
        and deliveries.count(deliveries[0]) == count
    )


def decide_ack(
    shard: ShardView,
    now: Now,
    ids: list[int],
    deliveries: list[int],
    results: Mapping[int, bytes],
    *,
    in_order: bool = False,
) -> NotDone:
    """Completes jobs, or cancels those with a cancel requested; returns the outcomes that are not
    DONE, by index.

    The lists have the same length; `results` is by id. Set `in_order` if they `are_in_order`.
    """
    shard.clocks.advance(now)
    batch = _Batch(ids, deliveries, results, in_order=in_order)
    index, end = 0, len(ids)
    while index < end:
        add = _add_singles if ids[index] in shard.jobs else _add_members
        index = add(shard, batch, index)
    if batch.overlaps():
        return _one_by_one(shard, now, batch)
    _emit(shard, now, batch)
    return batch.exceptions


def _one_by_one(shard: ShardView, now: Now, batch: _Batch) -> NotDone:
    """Decides each ack alone, for a list that names a job twice: each sees the effect of those
    before it.
    """
    exceptions: NotDone = []
    for index, (job_id, delivery) in enumerate(zip(batch.ids, batch.deliveries, strict=True)):
        for _, outcome in decide_ack(shard, now, [job_id], [delivery], batch.results):
            exceptions.append((index, outcome))
    return exceptions


def _add_singles(shard: ShardView, batch: _Batch, index: int) -> int:
    """Adds the single jobs from `index` on; returns the index after the last of them."""
    ids, deliveries, completed = batch.ids, batch.deliveries, batch.completed[0]
    neighbours = shard.jobs.part(ids[index])
    for at in range(index, len(ids)):
        job = neighbours.get(ids[at])
        if job is None:
            neighbours = shard.jobs.part(ids[at])
            job = neighbours.get(ids[at])
            if job is None:
                return at
        if job.state is not _ACTIVE or job.delivery != deliveries[at]:
            batch.exceptions.append((at, _LEASE_LOST))
        elif job.cancel_requested:
            batch.cancelled[job.volatile].append(job.id)
            batch.exceptions.append((at, SettleOutcome.CANCELLED))
        elif job.volatile:
            batch.completed[1].append(job.id)
        else:
            completed.append(job.id)
    return len(ids)


def _add_members(shard: ShardView, batch: _Batch, index: int) -> int:
    """Adds the members of lots from `index` on; returns the index after the last of them."""
    jobs, ids, deliveries, blocks = shard.jobs, batch.ids, batch.deliveries, batch.blocks
    end = len(ids)
    while index < end:
        job_id, count = ids[index], 1
        acks = blocks.get(job_id >> _BLOCK_BITS)
        if acks is None or not acks.low <= job_id < acks.high:
            if job_id in jobs:
                break
            acks = _find_acks(shard, batch, index)
            if acks is None:
                index += 1
                continue
        lease = acks.lease
        settled = lease.settled
        if settled is not None and settled[job_id - acks.low]:
            if job_id in jobs:
                break
            batch.exceptions.append((index, SettleOutcome.NOT_FOUND))
        elif deliveries[index] != lease.delivery:
            batch.exceptions.append((index, _LEASE_LOST))
        else:
            if index + 1 < end and ids[index + 1] == job_id + 1:
                count = _run_length(lease, batch, index)
            acks.starts.append(job_id)
            acks.counts.append(count)
        index += count
    return index


def _find_acks(shard: ShardView, batch: _Batch, index: int) -> _RunAcks | None:
    """Returns the acks of the lease that the job at `index` is on; notes an outcome and returns
    None if its lease is not valid.
    """
    job_id = batch.ids[index]
    lease = held(shard, job_id, batch.deliveries[index])
    if isinstance(lease, RunLease):
        acks = batch.blocks[job_id >> _BLOCK_BITS] = batch.acks_of(lease)
        return acks
    if isinstance(lease, SettleOutcome):  # pragma: no branch: single jobs are found before
        batch.exceptions.append((index, lease))
    return None


def _run_length(lease: RunLease, batch: _Batch, index: int) -> int:
    """Returns how many ids from `index` on are consecutive on this lease. A job with a result is a
    run of one.
    """
    ids, deliveries, results = batch.ids, batch.deliveries, batch.results
    first_id = ids[index]
    if first_id in results:
        return 1
    limit = lease.open_run(first_id - lease.lot.first_id, len(ids) - index)
    if not results and _is_in_order(batch, index, limit):
        return limit
    count = 1
    while (
        count < limit
        and ids[index + count] == first_id + count
        and deliveries[index + count] == lease.delivery
        and ids[index + count] not in results
    ):
        count += 1
    return count


def _is_in_order(batch: _Batch, index: int, count: int) -> bool:
    """Returns whether `count` ids from `index` on are consecutive and have one delivery."""
    if batch.in_order:
        return True
    ids, deliveries = batch.ids, batch.deliveries
    if ids[index + count - 1] != ids[index] + count - 1:
        return False
    if count < len(ids):
        ids, deliveries = ids[index : index + count], deliveries[index : index + count]
    return are_in_order(ids, deliveries)


def _emit(shard: ShardView, now: Now, batch: _Batch) -> None:
    for volatile in (False, True):
        starts = batch.completed[volatile]
        counts = [1] * len(starts)
        for acks in batch.by_lease.values():
            if acks.lease.lot.volatile is volatile:
                starts += acks.starts
                counts += acks.counts
        if starts:
            results = _results_among(starts, batch.results)
            shard.emit(JobsCompleted(now.wall_ms, starts, counts, *results), volatile=volatile)
    for volatile in (False, True):
        ids = batch.cancelled[volatile]
        if ids:
            results = _results_among(ids, batch.results)
            shard.emit(JobsCancelled(now.wall_ms, ids, [1] * len(ids), *results), volatile=volatile)


def _results_among(
    starts: list[int], results: Mapping[int, bytes]
) -> tuple[list[int], list[bytes]]:
    if not results:
        return [], []
    ids = [job_id for job_id in starts if job_id in results]
    return ids, [results[job_id] for job_id in ids]

"""Ack: leased jobs are done. The hottest verb, so it works in stretches: a thousand acks in order
on one lease are one comparison and one fact. What comes in no order is gathered lease by lease."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from jobline_server.engine.commands import NotDone
from jobline_server.engine.decide.settle import held
from jobline_server.engine.entries import JobsCancelled, JobsCompleted
from jobline_server.engine.lot import RunLease
from jobline_server.engine.values import JobState, Now, SettleOutcome
from jobline_server.engine.view import ShardView

# Neighbouring ids are on the same lease, more often than not: what is known of one id holds for its
# block of 128.
_BLOCK_BITS = 7
# Looking a member up on its enum is dear before Python 3.12.
_ACTIVE = JobState.ACTIVE
_LEASE_LOST = SettleOutcome.LEASE_LOST


class _Part:
    """What is settled of one run lease: ids `low … high − 1`, those of `starts` and `counts`."""

    __slots__ = ("counts", "high", "lease", "low", "starts")

    def __init__(self, lease: RunLease) -> None:
        self.lease = lease
        self.low = lease.lot.first_id + lease.start
        self.high = self.low + lease.count
        self.starts: list[int] = []
        self.counts: list[int] = []

    def overlaps(self) -> bool:
        """Whether an id is in it twice."""
        starts = self.starts
        if len(starts) == 1:
            return False
        if sum(self.counts) == len(starts):
            return len(set(starts)) != len(starts)
        runs = sorted(zip(starts, self.counts, strict=True))
        return any(start + count > after for (start, count), (after, _) in pairwise(runs))


class _Batch:
    """One ack, gathered until it becomes facts. Lists of ids are pairs: written, and volatile."""

    __slots__ = (
        "blocks",
        "cancelled",
        "completed",
        "deliveries",
        "exceptions",
        "ids",
        "in_order",
        "parts",
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
        self.parts: dict[RunLease, _Part] = {}
        self.blocks: dict[int, _Part] = {}

    def part_of(self, lease: RunLease) -> _Part:
        """What is settled of this lease."""
        part = self.parts.get(lease)
        if part is None:
            part = self.parts[lease] = _Part(lease)
        return part

    def overlaps(self) -> bool:
        """Whether a job is settled twice."""
        for ids in (*self.completed, *self.cancelled):
            if ids and len(set(ids)) != len(ids):
                return True
        return any(part.overlaps() for part in self.parts.values())


def are_in_order(ids: list[int], deliveries: list[int]) -> bool:
    """Whether these are neighbours, all of one delivery: compared as a whole, nothing a job."""
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
    """Settles jobs as done; `results` maps ids to what they returned. Returns outcomes that are not
    DONE, by index.

    The two lists have the same length. `in_order`: it is known that they `are_in_order`.
    """
    batch = _Batch(ids, deliveries, results, in_order=in_order)
    index, end = 0, len(ids)
    while index < end:
        gather = _gather_singles if ids[index] in shard.jobs else _gather_members
        index = gather(shard, batch, index)
    if batch.overlaps():
        return _one_by_one(shard, now, batch)
    _emit(shard, now, batch)
    return batch.exceptions


def _one_by_one(shard: ShardView, now: Now, batch: _Batch) -> NotDone:
    """A list that names a job twice: each id sees what those before it did."""
    exceptions: NotDone = []
    for index, (job_id, delivery) in enumerate(zip(batch.ids, batch.deliveries, strict=True)):
        for _, outcome in decide_ack(shard, now, [job_id], [delivery], batch.results):
            exceptions.append((index, outcome))
    return exceptions


def _gather_singles(shard: ShardView, batch: _Batch, index: int) -> int:
    """Adds the jobs from `index` on that are objects of their own; returns where they end."""
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


def _gather_members(shard: ShardView, batch: _Batch, index: int) -> int:
    """Adds the jobs from `index` on that are in lots; returns where they end."""
    jobs, ids, deliveries, blocks = shard.jobs, batch.ids, batch.deliveries, batch.blocks
    end = len(ids)
    while index < end:
        job_id, count = ids[index], 1
        part = blocks.get(job_id >> _BLOCK_BITS)
        if part is None or not part.low <= job_id < part.high:
            if job_id in jobs:
                break
            part = _look_up(shard, batch, index)
            if part is None:
                index += 1
                continue
        lease = part.lease
        settled = lease.settled
        if settled is not None and settled[job_id - part.low]:
            if job_id in jobs:
                break
            batch.exceptions.append((index, SettleOutcome.NOT_FOUND))
        elif deliveries[index] != lease.delivery:
            batch.exceptions.append((index, _LEASE_LOST))
        else:
            if index + 1 < end and ids[index + 1] == job_id + 1:
                count = _run(lease, batch, index)
            part.starts.append(job_id)
            part.counts.append(count)
        index += count
    return index


def _look_up(shard: ShardView, batch: _Batch, index: int) -> _Part | None:
    """The lease of the job at `index`, if it is valid; otherwise the outcome is noted."""
    job_id = batch.ids[index]
    lease = held(shard, job_id, batch.deliveries[index])
    if isinstance(lease, RunLease):
        part = batch.blocks[job_id >> _BLOCK_BITS] = batch.part_of(lease)
        return part
    if isinstance(lease, SettleOutcome):  # pragma: no branch: single jobs are found before
        batch.exceptions.append((index, lease))
    return None


def _run(lease: RunLease, batch: _Batch, index: int) -> int:
    """How many ids from `index` on are neighbours on this lease. A job with a result goes alone."""
    ids, deliveries, results = batch.ids, batch.deliveries, batch.results
    first_id = ids[index]
    if first_id in results:
        return 1
    most = lease.open_run(first_id - lease.lot.first_id, len(ids) - index)
    if not results and _is_run(batch, index, most):
        return most
    count = 1
    while (
        count < most
        and ids[index + count] == first_id + count
        and deliveries[index + count] == lease.delivery
        and ids[index + count] not in results
    ):
        count += 1
    return count


def _is_run(batch: _Batch, index: int, count: int) -> bool:
    """Whether so many from `index` on are neighbours, all of one delivery."""
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
        for part in batch.parts.values():
            if part.lease.lot.volatile is volatile:
                starts += part.starts
                counts += part.counts
        if starts:
            left = _results_among(starts, batch.results)
            shard.emit(JobsCompleted(now.wall_ms, starts, counts, *left), volatile=volatile)
    for volatile in (False, True):
        ids = batch.cancelled[volatile]
        if ids:
            left = _results_among(ids, batch.results)
            shard.emit(JobsCancelled(now.wall_ms, ids, [1] * len(ids), *left), volatile=volatile)


def _results_among(
    starts: list[int], results: Mapping[int, bytes]
) -> tuple[list[int], list[bytes]]:
    if not results:
        return [], []
    ids = [job_id for job_id in starts if job_id in results]
    return ids, [results[job_id] for job_id in ids]

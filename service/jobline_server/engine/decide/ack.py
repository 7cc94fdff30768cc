"""Ack: leased jobs are done. The hottest verb, so it works in stretches: a thousand acks in order
on one lease are one comparison and one fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from jobline_server.engine.commands import Exceptions
from jobline_server.engine.decide.settle import held
from jobline_server.engine.entries import JobsCancelled, JobsCompleted
from jobline_server.engine.job import Job
from jobline_server.engine.lot import RunLease
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import Now, SettleOutcome


class _Batch:
    """What one ack settles, gathered until it becomes facts: run starts and lengths, by what
    happens and whether it is written.
    """

    __slots__ = ("cancelled", "completed", "results")

    def __init__(self, results: Mapping[int, bytes]) -> None:
        self.results = results
        self.completed: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self.cancelled: tuple[dict[int, int], dict[int, int]] = ({}, {})

    def overlaps(self, settled: int) -> bool:
        """Whether an id was settled twice: then there are fewer ids in the runs than were settled,
        or two runs share one.
        """
        runs = sorted(run for kind in (*self.completed, *self.cancelled) for run in kind.items())
        if sum(count for _, count in runs) != settled:
            return True
        return any(a[0] + a[1] > b[0] for a, b in pairwise(runs))


def decide_ack(
    shard: Shard, now: Now, ids: list[int], deliveries: list[int], results: Mapping[int, bytes]
) -> Exceptions:
    """Settles jobs as done; `results` maps ids to what they returned. Returns outcomes that are
    not DONE.

    The two lists have the same length.
    """
    exceptions: Exceptions = []
    batch = _Batch(results)
    settled = 0
    index, end = 0, len(ids)
    while index < end:
        lease = held(shard, ids[index], deliveries[index])
        count = 1
        if isinstance(lease, RunLease):
            count = _stretch(lease, ids, deliveries, index, results)
            batch.completed[lease.lot.volatile][ids[index]] = count
            settled += count
        elif isinstance(lease, Job):
            kind = batch.cancelled if lease.cancel_requested else batch.completed
            kind[lease.volatile][lease.id] = 1
            settled += 1
            if lease.cancel_requested:
                exceptions.append((index, SettleOutcome.CANCELLED))
        else:
            exceptions.append((index, lease))
        index += count
    if batch.overlaps(settled):
        return _one_by_one(shard, now, ids, deliveries, results)
    _emit(shard, now, batch)
    return exceptions


def _one_by_one(
    shard: Shard, now: Now, ids: list[int], deliveries: list[int], results: Mapping[int, bytes]
) -> Exceptions:
    """A list that names a job twice: each id sees what those before it did."""
    exceptions: Exceptions = []
    for index, (job_id, delivery) in enumerate(zip(ids, deliveries, strict=True)):
        for _, outcome in decide_ack(shard, now, [job_id], [delivery], results):
            exceptions.append((index, outcome))
    return exceptions


def _stretch(
    lease: RunLease,
    ids: list[int],
    deliveries: list[int],
    index: int,
    results: Mapping[int, bytes],
) -> int:
    """How many ids from `index` on are neighbours on this lease. A job with a result goes alone."""
    first_id = ids[index]
    if results and first_id in results:
        return 1
    most = lease.open_stretch(first_id - lease.lot.first_id, len(ids) - index)
    end = index + most
    if (
        not results
        and ids[end - 1] == first_id + most - 1
        and ids[index:end] == list(range(first_id, first_id + most))
        and deliveries[index:end].count(lease.delivery) == most
    ):
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


def _emit(shard: Shard, now: Now, batch: _Batch) -> None:
    for kind, fact in ((batch.completed, JobsCompleted), (batch.cancelled, JobsCancelled)):
        for volatile, runs in enumerate(kind):
            if not runs:
                continue
            result_ids, results = _results_among(runs, batch.results)
            shard.emit(
                fact(now.wall_ms, list(runs), list(runs.values()), result_ids, results),
                volatile=bool(volatile),
            )


def _results_among(
    runs: dict[int, int], results: Mapping[int, bytes]
) -> tuple[list[int], list[bytes]]:
    if not results:
        return [], []
    ids = [job_id for job_id in runs if job_id in results]
    return ids, [results[job_id] for job_id in ids]

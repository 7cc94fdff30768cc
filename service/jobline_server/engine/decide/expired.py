"""Expired: ends waiting jobs whose TTL has passed.

A lot of ten thousand members, or as many jobs, take several slices. A job that is chosen for a
lease in the meantime is not leased: it expires at once.
"""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.engine.decide.choice import Choice, LotRun
from jobline_server.engine.entries import JobsExpired
from jobline_server.engine.expiring import expires_ms, expiring_at
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.values import JobState, Now
from jobline_server.engine.view import ShardView

# Enum attribute access is slow before Python 3.12.
_ACTIVE = JobState.ACTIVE


class _Facts:
    """The fewest facts that expire jobs: one for each kind."""

    def __init__(self, now: Now) -> None:
        self._now = now
        self._by_kind: dict[tuple[bool, bool], JobsExpired] = {}

    def add(self, owner: Job | Lot, first_id: int, count: int) -> None:
        """Adds a run of waiting jobs."""
        kind = owner.volatile, owner.queue.settings.expired_to_dead
        fact = self._by_kind.get(kind)
        if fact is None:
            fact = self._by_kind[kind] = JobsExpired(self._now.wall_ms, [], [], kind[1])
        fact.starts.append(first_id)
        fact.counts.append(count)

    def emit(self, shard: ShardView) -> None:
        """Emits the facts."""
        for (volatile, _), fact in self._by_kind.items():
            shard.emit(fact, volatile=volatile)


def expire_waiting(shard: ShardView, now: Now, limit: int = limits.SLICE_ITEMS) -> bool:
    """Expires up to about `limit` waiting jobs whose TTL has passed; returns whether more are due.
    If it raises, they are due again.
    """
    expiring = shard.expiring
    if not expiring:
        return False
    taken: list[tuple[int, int]] = []
    facts = _Facts(now)
    try:
        while limit > 0 and (due := expiring.pop_due(now.wall_ms)) is not None:
            taken.append(due)
            job, lot = expiring_at(shard, *due)
            limit -= 1
            if job is not None and job.state is not _ACTIVE:
                facts.add(job, job.id, 1)
            if lot is not None:
                limit -= _take_lot(lot, max(limit, 1), facts)
        facts.emit(shard)
    except BaseException:
        for due in taken:
            expiring.add(*due)
        raise
    if taken:
        # Only the last lot can have members left.
        _, lot = expiring_at(shard, *taken[-1])
        if lot is not None and lot.waiting():
            expiring.add(*taken[-1])
    return has_due(shard, now)


def has_due(shard: ShardView, now: Now) -> bool:
    """Returns whether the TTL of any job may have passed."""
    first_ms = shard.expiring.first_ms()
    return first_ms is not None and first_ms <= now.wall_ms


def _take_lot(lot: Lot, limit: int, facts: _Facts) -> int:
    """Adds up to `limit` waiting members of a lot; returns how many."""
    taken = 0
    index, count = lot.waiting_run_from(lot.cursor, limit)
    while count:
        facts.add(lot, lot.first_id + index, count)
        taken += count
        index, count = lot.waiting_run_from(index + count, limit - taken)
    return taken


def expire_chosen(shard: ShardView, now: Now, chosen: Choice) -> None:
    """Expires those of the jobs chosen for a lease whose TTL has passed, and takes them out."""
    if not shard.expiring:
        return
    facts = _Facts(now)
    left: list[Job | LotRun] = []
    for item in chosen.items:
        owner = item if isinstance(item, Job) else item.lot
        if not 0 < expires_ms(owner) <= now.wall_ms:
            left.append(item)
        elif isinstance(item, Job):
            facts.add(owner, item.id, 1)
        else:
            facts.add(owner, item.id, item.count)
    chosen.is_cut_short |= len(left) < len(chosen.items)
    chosen.items = left
    facts.emit(shard)

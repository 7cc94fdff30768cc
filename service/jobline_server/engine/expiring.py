"""When waiting jobs expire: entries of the jobs and lots with a TTL, by time.

A lot has one entry for all its members. An entry stays while its job is ACTIVE; at its time it is
dropped then, and the job gets another one if it comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from jobline_server.engine.delayed import Delayed, Entry
from jobline_server.engine.job import Job
from jobline_server.engine.lookups import Jobs, Lots
from jobline_server.engine.lot import Lot


class Expiring(Delayed):
    """Entries by time, each once."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        super().__init__()
        self._known: set[Entry] = set()

    def add(self, run_at_ms: int, first_id: int) -> None:
        """Adds an entry for a job or lot that has none at this time."""
        entry = run_at_ms, first_id
        if entry not in self._known:
            self._known.add(entry)
            super().add(run_at_ms, first_id)

    def pop_due(self, wall_ms: int) -> Entry | None:
        """Removes and returns the next due entry, in order of time and id; None without any."""
        entry = super().pop_due(wall_ms)
        if entry is not None:
            self._known.discard(entry)
        return entry

    def sweep(self, count: int, waits: Callable[[int, int], bool]) -> None:
        """Sweeps part of the heap, as up to `count` entries may have become obsolete; `waits`
        returns whether an entry is valid.
        """

        def is_left(ms: int, first_id: int) -> bool:
            if waits(ms, first_id):
                return True
            self._known.discard((ms, first_id))
            return False

        super().sweep(count, is_left)


def expires_ms(item: Job | Lot) -> int:
    """Returns when waiting jobs of an item expire, in wall time; 0 for never."""
    rules = item.options.rules
    if not rules.ttl_ms:
        return 0
    since_ms = item.details.ttl_from_ms if isinstance(item, Job) else 0
    return (since_ms or item.pushed_ms) + rules.ttl_ms


class _Shard(Protocol):
    @property
    def jobs(self) -> Jobs[Job]: ...

    @property
    def lots(self) -> Lots: ...

    @property
    def expiring(self) -> Expiring: ...


def expect_expiry(shard: _Shard, item: Job | Lot) -> None:
    """Adds an entry for a job or lot with a TTL; does nothing for others."""
    ends_ms = expires_ms(item)
    if ends_ms:
        shard.expiring.add(ends_ms, item.first_id if isinstance(item, Lot) else item.id)


def expiring_at(shard: _Shard, ends_ms: int, first_id: int) -> tuple[Job | None, Lot | None]:
    """Returns the job with this id, and the lot with this first id, each if its TTL ends at this
    time.
    """
    job, lot = shard.jobs.find(first_id), shard.lots.find(first_id)
    if job is not None and expires_ms(job) != ends_ms:
        job = None
    if lot is not None and (lot.first_id != first_id or expires_ms(lot) != ends_ms):
        lot = None
    return job, lot


def forget_expiries(shard: _Shard, count: int) -> None:
    """Sweeps part of the entries, as up to `count` of them may have become obsolete."""
    shard.expiring.sweep(count, lambda *entry: any(expiring_at(shard, *entry)))

"""Totals: how jobs ended, and leases that came to nothing."""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.engine.effects import Applied
from jobline_server.engine.entries import Fact, JobDied, JobsReleased, JobsStalled
from jobline_server.engine.load import Load
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import EndReason, ReleaseReason
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.ended.evictions import Evictions
from jobline_server.runtime.slots import JournalPosition, ShardSlot
from jobline_server.runtime.totals import Totals
from jobline_server.storage.segments import KeySegments

NOW_MS = 1_700_000_000_000


def batch(*facts: Fact) -> CommittedBatch:
    slot = ShardSlot(
        Shard(0, epoch=1, load=Load()),
        JournalPosition(0, limits.ID_BLOCK, 0, 0, 0, KeySegments(0)),
    )
    return CommittedBatch(slot, 1, [Applied(fact, 1, []) for fact in facts], is_commit=True)


def test_lost_leases_count_whether_their_jobs_go_on_or_not() -> None:
    """By why they were lost."""
    totals = Totals(Evictions())

    totals.on_committed(
        [
            batch(
                JobsStalled(NOW_MS, "mail", [1, 2], [], EndReason.STALLED, "w"),
                JobDied(NOW_MS, 3, EndReason.STALLED, None),
                JobsStalled(NOW_MS, "mail", [4], [], EndReason.WORKER_LOST, "w"),
                JobDied(NOW_MS, 5, EndReason.EXPLICIT_FAIL, None),
            )
        ]
    )

    assert totals.leases_lost == {EndReason.STALLED: 3, EndReason.WORKER_LOST: 1}


def test_released_jobs_are_counted() -> None:
    """They are no failures, and no lost leases."""
    totals = Totals(Evictions())

    totals.on_committed(
        [batch(JobsReleased(NOW_MS, "mail", [1, 2], [], ReleaseReason.INTERRUPTED, "w"))]
    )

    assert totals.released == 2
    assert sum(totals.leases_lost.values()) == 0

"""Apply: the only code that gives facts effect, one function per fact.

`apply` is called by `Shard.emit` for what was just decided and by `Shard.replay` for what the
journal holds; it cannot tell which, so what is recovered is what was. It checks legality
(`states`) and decides nothing.

What is no fact changes without it, because recovery needs none of it: when workers were heard or
lost (`decide/expiry`), keys and producers whose window has ended (`Shard.forget_keys`), what is
swept from lanes and heaps, and the committed offset. `storage/loader` builds a shard from the rows
of a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobline_server.engine import entries
from jobline_server.engine.apply import deletes, ends, leases, pushes, queues
from jobline_server.engine.state import ShardState

# Each function takes the very fact that it is registered for, which no type of a table can say.
_APPLY: dict[type, Callable[[ShardState, Any, int], None]] = {
    entries.LotPushed: pushes.apply_lot_pushed,
    entries.JobsPushed: pushes.apply_jobs_pushed,
    entries.JobsReady: pushes.apply_jobs_ready,
    entries.JobsRetried: pushes.apply_jobs_retried,
    entries.JobsLeased: leases.apply_jobs_leased,
    entries.JobFailed: leases.apply_job_failed,
    entries.JobsStalled: leases.apply_jobs_stalled,
    entries.JobsReleased: leases.apply_jobs_released,
    entries.JobReported: leases.apply_job_reported,
    entries.CancelRequested: leases.apply_cancel_requested,
    entries.JobsCompleted: ends.apply_jobs_completed,
    entries.JobDied: ends.apply_job_died,
    entries.JobsCancelled: ends.apply_jobs_cancelled,
    entries.JobsAgedOut: deletes.apply_jobs_aged_out,
    entries.JobsDeleted: deletes.apply_jobs_deleted,
    entries.QueueChanged: queues.apply_queue_changed,
    entries.QueuePaused: queues.apply_queue_paused,
    entries.QueueResumed: queues.apply_queue_resumed,
    entries.QueueDeleted: queues.apply_queue_deleted,
}


def apply(shard: ShardState, fact: entries.Fact, offset: int) -> None:
    """Gives a fact effect. `offset` is its place in the journal, 0 for one that is never
    written.
    """
    _APPLY[type(fact)](shard, fact, offset)

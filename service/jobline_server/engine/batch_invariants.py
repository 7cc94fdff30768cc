"""Invariants of batches; `invariants` has the list of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from jobline_server.engine.shard import Shard


def members_add_up(shard: Shard) -> str:
    """G20: the live members of every batch are counted."""
    found: Counter[int] = Counter()
    for job in shard.jobs.values():
        found[job.options.rules.batch_id] += 1
    for lot in shard.lots.lots.values():
        found[lot.options.rules.batch_id] += lot.remaining
    del found[0]
    if dict(found) != shard.batches.live:
        return f"batches have {dict(found)} live members, counted are {shard.batches.live}"
    return ""


def batches_are_where_they_stand(shard: Shard) -> str:
    """G20: a batch is complete exactly while it is closed and all its members have ended, and what
    is due of it is known.
    """
    table = shard.batches
    for batch in table.records.values():
        if batch.is_over() != bool(batch.completed_ms) or (
            (batch.id in table.completed) != bool(batch.completed_ms)
        ):
            return f"batch {batch.id} has {batch.pending()} pending, ended {batch.completed_ms}"
        if bool(batch.calls_due()) != (batch.id in table.due):
            return f"batch {batch.id} has {batch.calls_due()!r} due, and is not known for it"
    return ""


BATCHES: list[Callable[[Shard], str]] = [members_add_up, batches_are_where_they_stand]

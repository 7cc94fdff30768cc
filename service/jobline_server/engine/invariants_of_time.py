"""Invariants of the timers of jobs; `invariants` lists all."""

from __future__ import annotations

from jobline_server.engine.expiring import expires_ms
from jobline_server.engine.items import Item
from jobline_server.engine.lot import Lot
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState


def waiting_jobs_have_expiries(shard: Shard) -> str:
    """G7: every waiting job or lot with a TTL has an entry at its end."""
    known = set(shard.expiring)
    items: list[Item] = [*shard.jobs.values(), *shard.lots.lots.values()]
    for item in items:
        ends_ms = expires_ms(item)
        waits = item.waiting() if isinstance(item, Lot) else item.state is not JobState.ACTIVE
        first_id = item.first_id if isinstance(item, Lot) else item.id
        if ends_ms and waits and (ends_ms, first_id) not in known:
            return f"job {first_id} has a TTL and no entry"
    return ""

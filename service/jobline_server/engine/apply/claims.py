"""The step of a push by which a new job claims its unique key."""

from __future__ import annotations

from jobline_server.engine.job import Job
from jobline_server.engine.state import ShardState
from jobline_server.engine.unique import Throttle


def take_unique_key(shard: ShardState, job: Job) -> None:
    """Gives a new job its unique key, or parks it behind the holder."""
    key_hash = shard.unique.take(job)
    claim = job.ties.claim
    if claim.throttles:
        throttle = Throttle(job.id, claim.until_ms)
        shard.load.throttles += shard.unique.throttled.add(key_hash, throttle)

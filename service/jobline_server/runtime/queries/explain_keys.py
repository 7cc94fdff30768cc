"""Explains what keeps a job that waits for its unique key."""

from __future__ import annotations

from jobline_server.engine.job import Job
from jobline_server.engine.shard import Shard
from jobline_server.engine.unique import unique_hash
from jobline_server.runtime.obstacles import Obstacle, ObstacleKind


def behind_holder(shard: Shard, job: Job) -> Obstacle:
    """Returns the obstacle of a job that is parked behind the holder of its unique key."""
    holder_id = shard.unique.holder(unique_hash(job.queue.name, job.ties.unique_key))
    message = f"job {holder_id} holds its unique key {job.ties.unique_key!r} and has not ended"
    return Obstacle(ObstacleKind.KEY_HELD, message)

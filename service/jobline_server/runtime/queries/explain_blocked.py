"""Explains why a BLOCKED job is not running."""

from __future__ import annotations

from itertools import islice

from jobline_server.engine.job import Job
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import shard_of
from jobline_server.runtime.obstacles import Obstacle, ObstacleKind
from jobline_server.runtime.queries.explain_keys import behind_holder

# So many of the jobs that it waits for are named.
NAMED_MAX = 5


def blocked_by(shard: Shard, job: Job) -> list[Obstacle]:
    """Returns what a BLOCKED job waits for: other jobs, and the holder of its unique key."""
    obstacles: list[Obstacle] = []
    if job.details.parents_left:
        obstacles.append(_by_parents(shard, job))
    if job.ties.claim.parked:
        obstacles.append(behind_holder(shard, job))
    return obstacles


def _by_parents(shard: Shard, job: Job) -> Obstacle:
    left = job.details.parents_left
    named = ", ".join([_described(shard, parent) for parent in islice(left, NAMED_MAX)])
    more = f" and {len(left) - NAMED_MAX:,} more" if len(left) > NAMED_MAX else ""
    of_all = f"{len(left):,} of the {len(job.ties.parents):,}"
    message = f"it waits for {of_all} jobs that it depends on: {named}{more}"
    until_ms = job.details.blocked_until_ms
    return Obstacle(ObstacleKind.DEPENDENCIES, message, until_ms=until_ms, count=len(left))


def _described(shard: Shard, parent: int) -> str:
    state = shard.state_of(parent)
    if state is not None:
        return f"{parent} ({state.name})"
    # It ended, or another shard has it.
    return f"{parent} (ended)" if shard_of(parent) == shard.number else str(parent)

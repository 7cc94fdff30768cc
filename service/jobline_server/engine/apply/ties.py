"""Lets go of what jobs are tied to, as they stop being live."""

from __future__ import annotations

from jobline_server.engine.job import Job
from jobline_server.engine.state import ShardState
from jobline_server.engine.ties import NO_TIES


def drop_ties(shard: ShardState, jobs: list[Job]) -> None:
    """Frees the unique keys of jobs; they want the results of their parents no more."""
    for job in [job for job in jobs if job.ties is not NO_TIES]:
        if job.ties.parents:
            shard.load.wanted.remove(job.ties.parents)
        if job.ties.unique_key:
            shard.unique.free(job)

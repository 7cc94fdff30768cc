"""Invariants of dependencies; `invariants` lists them with all others."""

from __future__ import annotations

from collections.abc import Callable

from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState, shard_of


def dependencies_add_up(shard: Shard) -> str:
    """G13: a BLOCKED job is listed with each parent that it waits for, and nothing else is."""
    edges = {
        (parent, job.id)
        for job in shard.jobs.values()
        if job.state is JobState.BLOCKED
        for parent in job.details.parents_left
    }
    dependencies = shard.dependencies
    listed = {
        (parent, child)
        for parent, record in dependencies.awaited.items()
        for child in record.children
    }
    if edges != listed:
        return f"of parents and jobs that wait for them, {sorted(edges ^ listed)} are on one side"
    if dependencies.edges != len(edges) or shard.load.dependencies != len(edges):
        return f"{dependencies.edges} dependencies are counted, there are {len(edges)}"
    if any(record.is_over() for record in dependencies.awaited.values()):
        return "a job is listed that nobody waits for"
    return ""


def no_job_waits_for_nothing(shard: Shard) -> str:
    """G13: whoever is waited for is live, or on the way to those who wait; or it ended without
    completing and may be retried; or another shard has it.
    """
    dependencies = shard.dependencies
    pending = {*dependencies.pending}
    for parent, record in dependencies.awaited.items():
        if record.end is not None:
            if parent not in pending:
                return f"job {parent} is over, and nobody is told"
            continue
        is_known = parent in dependencies.ended or parent in dependencies.to_look_up
        if shard_of(parent) == shard.number and shard.state_of(parent) is None and not is_known:
            return f"jobs wait for job {parent}, which is not live"
    return ""


def ends_of_blocking_have_entries(shard: Shard) -> str:
    """G13: every BLOCKED job that waits up to a time has an entry at it."""
    known = set(shard.dependencies.timeouts)
    for job in shard.jobs.values():
        until_ms = job.details.blocked_until_ms
        if until_ms and job.state is not JobState.BLOCKED:
            return f"job {job.id} is {job.state.name} until {until_ms}"
        if until_ms and (until_ms, job.id) not in known:
            return f"job {job.id} is BLOCKED until {until_ms} and has no entry"
    return ""


DEPENDENCIES: list[Callable[[Shard], str]] = [
    dependencies_add_up,
    no_job_waits_for_nothing,
    ends_of_blocking_have_entries,
]

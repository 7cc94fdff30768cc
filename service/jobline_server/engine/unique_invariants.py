"""Invariants of unique keys; a part of `invariants`."""

from __future__ import annotations

from jobline_server.engine.shard import Shard
from jobline_server.engine.unique import unique_hash
from jobline_server.engine.values import JobState


def one_holder_each(shard: Shard) -> str:
    """G6: a key is held, or waited for, by a live job that was pushed with it, and a job that waits
    for a key waits behind a holder.
    """
    unique = shard.unique
    for table in (unique.holders, unique.parked):
        for key_hash, job_id in table.items():
            job = shard.jobs.find(job_id)
            if job is None:
                return f"job {job_id} holds a unique key and is not live"
            if unique_hash(job.queue.name, job.ties.unique_key) != key_hash:
                return f"job {job_id} holds a unique key that is not its own"
            if job.ties.claim.parked is not (table is unique.parked):
                return f"job {job_id} holds a unique key and is parked, or the reverse"
    if any(key_hash not in unique.holders for key_hash in unique.parked):
        return "a job waits for a unique key that nobody holds"
    return ""


def claims_add_up(shard: Shard) -> str:
    """G6: all claims are counted, so that none is kept when no job has any; a job that waits for
    its key is BLOCKED, and one that holds it until it has ended is its only holder.
    """
    unique, claimed = shard.unique, 0
    for job in shard.jobs.values():
        claimed += bool(job.ties.unique_key)
        if job.ties.claim.parked and job.state is not JobState.BLOCKED:
            return f"job {job.id} is {job.state.name} and waits for its unique key"
        if job.ties.unique_key and not job.ties.claim.parked and not job.ties.claim.until_ms:
            holder = unique.holder(unique_hash(job.queue.name, job.ties.unique_key))
            if holder != job.id:
                return f"jobs {job.id} and {holder} both hold a unique key"
    if claimed != unique.held:
        return f"{claimed} jobs have a unique key, {unique.held} are counted"
    return ""


def throttles_add_up(shard: Shard) -> str:
    """G6: throttled keys point to ids that exist or existed."""
    for throttle in shard.unique.throttled.records.values():
        if throttle.job_id >= shard.next_id():
            return f"a throttled key points to {throttle.job_id}, which was never used"
    return ""


UNIQUE_KEYS = [one_holder_each, claims_add_up, throttles_add_up]

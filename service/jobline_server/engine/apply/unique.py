"""Applies the facts of unique keys, and hands keys over whose holders have ended."""

from __future__ import annotations

from jobline_server.engine.apply.blocked import unblock
from jobline_server.engine.apply.bookkeeping import mark_job
from jobline_server.engine.apply.ends import end_jobs
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.blocked_entries import JobsUnblocked
from jobline_server.engine.effects import KeyHandedOver
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import Move
from jobline_server.engine.unique import has_let_go, held_until, let_go, unique_hash
from jobline_server.engine.unique_entries import (
    JobsReplaced,
    UniqueKeyForgotten,
    UniqueKeysExtended,
)
from jobline_server.engine.values import EndReason


def apply_jobs_replaced(shard: ShardState, fact: JobsReplaced, _offset: int) -> None:
    """Ends waiting jobs as CANCELLED, which lost their place to newer ones."""
    jobs = [shard.jobs[job_id] for job_id in fact.ids]
    end_jobs(shard, jobs, Move.CANCELLED, fact.at_ms, reason=EndReason.REPLACED)
    shard.unschedule(len(jobs))


def apply_unique_keys_extended(shard: ShardState, fact: UniqueKeysExtended, _offset: int) -> None:
    """Has keys held until later times: each by its job, and by its throttle if it has one. A job
    that holds its key until it has ended goes on to do so.
    """
    shard.age.note(fact.at_ms, fact.aged_ms)
    throttled = shard.unique.throttled
    for key, job_id, until_ms in zip(fact.unique_keys, fact.ids, fact.until_ms, strict=True):
        if throttled.has_any:
            throttled.extend(unique_hash(fact.queue, key), until_ms, fact.aged_ms)
        job = shard.jobs.find(job_id)
        if job is not None and 0 < job.ties.claim.until_ms < until_ms:
            held_until(job, until_ms)
            mark_job(shard, job)


def hand_over_keys(shard: ShardState, at_ms: int, offset: int) -> None:
    """Gives keys that have lost their holders to the jobs behind them, which become READY, or
    SCHEDULED if their time has not come, in the order of their ids. Those that depend on others
    stay BLOCKED.
    """
    freed, shard.unique.freed = shard.unique.freed, []
    heirs = [shard.unique.hand_over(key_hash) for key_hash in freed]
    # One that ended in the same fact was parked no longer.
    for job_id in sorted([heir for heir in heirs if heir is not None]):
        job = shard.jobs[job_id]
        let_go(job)
        if job.details.parents_left:
            mark_job(shard, job)
            continue
        times = unblock(shard, [job], at_ms, offset)
        fact = JobsUnblocked(at_ms, job.queue.name, [job.id], times)
        shard.effects.append(KeyHandedOver(fact))


def free_orphans(shard: ShardState) -> None:
    """Has jobs go on that wait for a key whose holder was not in the checkpoint, because its record
    was damaged. Call it when all is loaded.
    """
    shard.unique.freed = shard.unique.orphans()
    if shard.unique.freed:
        hand_over_keys(shard, shard.age.last_ms, 0)
        shard.effects.clear()


def apply_unique_key_forgotten(shard: ShardState, fact: UniqueKeyForgotten, _offset: int) -> None:
    """Takes a key from whoever holds it; a job that waits for it takes it over."""
    shard.age.note(fact.at_ms, fact.aged_ms)
    key_hash = unique_hash(fact.queue, fact.unique_key)
    shard.load.throttles -= shard.unique.throttled.forget_one(key_hash)
    job_id = shard.unique.holder(key_hash)
    job = None if job_id is None else shard.jobs.find(job_id)
    if job is not None and not has_let_go(job, fact.aged_ms):
        held_until(job, fact.aged_ms)
        mark_job(shard, job)
    if shard.unique.behind(key_hash) is not None:
        shard.unique.freed.append(key_hash)


APPLY: ApplyTable = {
    JobsReplaced: apply_jobs_replaced,
    UniqueKeysExtended: apply_unique_keys_extended,
    UniqueKeyForgotten: apply_unique_key_forgotten,
}

"""What facts change of the allowances of queues. Only limits are durable; tokens are not."""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine.allowance import allowance_of
from jobline_server.engine.entries import JobsLeased
from jobline_server.engine.job import Job
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState
from jobline_server.engine.values import JobOptions


def set_allowance(shard: ShardState, queue: Queue) -> None:
    """Puts the limits of a queue in force, and has it dispatched if they changed: they may let out
    more.
    """
    before = queue.allowance
    mono_ms = shard.clocks.mono_ms
    queue.allowance = allowance_of(before, queue.settings, queue.limited, mono_ms)
    if before is not None:
        shard.wake(queue)


def take_tokens(shard: ShardState, fact: JobsLeased, found: Sequence[Job | None]) -> None:
    """Takes the tokens of jobs that are about to be leased: `found` has the single ones."""
    queue = shard.queues[fact.queue]
    allowance = queue.allowance
    if allowance is None or allowance.bucket is None:
        return
    tokens = 0
    for start, count, job in zip(fact.starts, fact.counts, found, strict=True):
        options = _options_of(shard, start, job)
        cost = options.rules.cost
        tokens += count * allowance.price(cost)
    allowance.bucket.take(tokens, shard.clocks.mono_ms)


def _options_of(shard: ShardState, job_id: int, job: Job | None) -> JobOptions:
    if job is not None:
        return job.options
    lot = shard.lots.find(job_id)
    # `apply_jobs_leased` reports a lot that is missing.
    return JobOptions() if lot is None else lot.options

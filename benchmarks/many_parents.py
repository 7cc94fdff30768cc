"""P12: a thousand jobs that wait for a thousand others each. What operators do to them, and what
becomes of them, holds up nobody: a step of the loop is cut by what its jobs wait for, too.

As in `blocked`, the runtime runs in this process, without a wire, and the measure is the longest
step of the loop in processor time of its thread.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from time import perf_counter, thread_time
from typing import Any

from benchmarks.bench import Bench
from benchmarks.bodies import PAYLOAD
from benchmarks.figures import Figure, Unit, at_most
from benchmarks.operators import STEP_SECONDS_MAX, runtime_at_work
from jobline_server import memory
from jobline_server.engine import limits
from jobline_server.engine.commands import FailItem, Pull, Push
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rules import DependencyPolicy, JobRules
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    KEPT_STATES,
    AckLevel,
    JobError,
    JobOptions,
    JobState,
)
from jobline_server.runtime.ended.retention import EndedRetention
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, JobFilter, Selection

JOBS = 1_000
PARENTS, CHILDREN = "parents", "children"
LATER_MS = 3_600_000
GOES_ON = JobOptions(rules=JobRules(on_dependency_failure=DependencyPolicy.IGNORE))
ALL = Selection(filter=JobFilter(queue=CHILDREN))
ENDED_FILTER = JobFilter(queue=CHILDREN, states=KEPT_STATES)
ENDED = Selection(filter=ENDED_FILTER)
# The shortest that there is.
LEASE_MS = 1_000

Act = Callable[[], Awaitable[Any]]


async def act_on_children(bench: Bench) -> None:
    """P12: every call that meets all of them, their leases and their ends."""
    memory.tune()
    gc.enable()
    try:
        async with runtime_at_work(bench) as runtime:
            parents = await _push_parents(runtime)
            children = await _measure(bench, "push", lambda: _push_children(runtime, parents))
            for what, act in _acts(runtime, parents, children).items():
                await _measure(bench, what, act)
            parents = await _push_parents(runtime)
            await _push_children(runtime, parents)
            for what, act in _ends(runtime, parents).items():
                await _measure(bench, what, act)
    finally:
        gc.disable()


async def _measure(bench: Bench, what: str, act: Act) -> Any:
    """Adds the longest step of the loop while something is done; returns what it returned."""
    began, before, longest = perf_counter(), thread_time(), 0.0
    task = asyncio.ensure_future(act())
    while not task.done():
        await asyncio.sleep(0)
        now = thread_time()
        before, longest = now, max(longest, now - before)
    name = f"longest step of the loop: {what}, {JOBS:,} jobs that have {JOBS:,} parents each"
    note = f"{perf_counter() - began:.1f} s in all"
    bench.add(Figure("P12", name, longest, Unit.TIME, at_most(STEP_SECONDS_MAX), note=note))
    return await task


def _acts(runtime: Runtime, parents: range, children: list[int]) -> dict[str, Act]:
    """Returns what is done to them, in order: each leaves them as the next one needs them."""
    bulk, audit = runtime.bulk, Audit()
    by_ids = Selection(ids=tuple(children))
    of_parents = Selection(ids=tuple(parents))

    def cancel(chosen: Selection) -> Act:
        return lambda: bulk.cancel_jobs(chosen, dry_run=False, audit=audit)

    def retry(chosen: Selection) -> Act:
        return lambda: bulk.retry_jobs(chosen, dry_run=False, audit=audit)

    return {
        "list": lambda: runtime.jobs.list_jobs(
            JobFilter(queue=CHILDREN), page_size=JOBS, page_token="", include_payloads=True
        ),
        "checkpoint, blocked": lambda: runtime.checkpoints.take_due(everything=True),
        "cancel by filter, blocked": cancel(ALL),
        "dry run of retry": lambda: bulk.retry_jobs(ENDED, dry_run=True, audit=audit),
        "retry by filter": retry(ENDED),
        "cancel by ids, ready": cancel(by_ids),
        "retry by ids": retry(by_ids),
        "fail, to be tried later": lambda: _fail(runtime),
        "promote": lambda: bulk.promote_jobs(ALL, dry_run=False, audit=audit),
        "checkpoint, ready": lambda: runtime.checkpoints.take_due(everything=True),
        "ack": lambda: _ack(runtime),
        "end of the parents, which nobody waits for": cancel(of_parents),
        "retention of the parents": lambda: _evict(runtime),
        "list, ended": lambda: runtime.jobs.list_jobs(
            ENDED_FILTER, page_size=JOBS, page_token="", include_payloads=True
        ),
        "delete, ended": lambda: bulk.delete_jobs(ENDED, dry_run=False, audit=audit),
    }


def _ends(runtime: Runtime, parents: range) -> dict[str, Act]:
    """The same for what ends without a call."""
    bulk, audit = runtime.bulk, Audit()

    async def end_parents() -> None:
        chosen = Selection(ids=tuple(parents))
        await bulk.cancel_jobs(chosen, dry_run=False, audit=audit)
        await _until_none(runtime, JobState.BLOCKED)

    async def lose() -> None:
        await runtime.pulls.pull(
            Pull(((CHILDREN, 1),), max_jobs=JOBS, worker="lost", lease_ms=LEASE_MS)
        )
        await _until_none(runtime, JobState.ACTIVE)

    return {
        "end of the parents, until all are ready": end_parents,
        "loss of their leases": lose,
        "delete, ready": lambda: bulk.delete_jobs(ALL, dry_run=False, audit=audit),
    }


async def _until_none(runtime: Runtime, state: JobState) -> None:
    """Waits until no child is in a state."""
    queue = runtime.core.slots.of_queue(CHILDREN).shard.queues[CHILDREN]
    while queue.counts[state]:  # noqa: ASYNC110  # each step of the loop is measured
        await asyncio.sleep(0)
    await runtime.core.commits.wait()


async def _push_parents(runtime: Runtime) -> range:
    push = Push(PARENTS, DEFAULT_OPTIONS, payloads=Payloads.of([PAYLOAD] * JOBS))
    first_id = (await runtime.pushes.push(push)).first_id
    return range(first_id, first_id + JOBS)


async def _push_children(runtime: Runtime, parents: range) -> list[int]:
    """Pushes as many in a call as may have so many parents together; returns their ids."""
    count = limits.PUSH_PARENTS_MAX // JOBS
    ids: list[int] = []
    for _ in range(JOBS // count):
        ties = [Ties(parents=tuple(parents))] * count
        rows = JobColumns([PAYLOAD] * count, [GOES_ON] * count, ties=ties)
        push = Push(CHILDREN, GOES_ON, rows=rows, level=AckLevel.BUFFERED)
        first_id = (await runtime.pushes.push(push)).first_id
        ids += range(first_id, first_id + count)
        await asyncio.sleep(0)  # each call comes by itself
    await runtime.core.commits.wait()
    return ids


async def _lease(runtime: Runtime) -> tuple[list[int], list[int]]:
    leased = await runtime.pulls.pull(Pull(((CHILDREN, 1),), max_jobs=JOBS, worker="bench"))
    return [job.id for job in leased.jobs], [job.delivery for job in leased.jobs]


async def _fail(runtime: Runtime) -> None:
    ids, deliveries = await _lease(runtime)
    error = JobError("Boom", "it broke")
    await runtime.settle_calls.fail(
        [
            FailItem(job_id, delivery, error, retry_after_ms=LATER_MS)
            for job_id, delivery in zip(ids, deliveries, strict=True)
        ]
    )


async def _ack(runtime: Runtime) -> None:
    ids, deliveries = await _lease(runtime)
    await runtime.settle_calls.ack(ids, deliveries, {})


async def _evict(runtime: Runtime) -> None:
    retention = EndedRetention(runtime.core, runtime.ended)
    await retention.delete_stale(0)
    await retention.evict(PARENTS, JobState.CANCELLED, keep_count=0, keep_bytes=1 << 40)

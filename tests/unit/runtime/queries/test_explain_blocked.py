"""Why a BLOCKED job is not running: it waits for others, which are named."""

from __future__ import annotations

from jobline_server.engine.commands import Push
from jobline_server.engine.entries import JobsPushed
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, JobState
from jobline_server.runtime.obstacles import ObstacleKind
from jobline_server.runtime.queries.explain_blocked import blocked_by
from jobline_server.runtime.runtime import Runtime
from tests.pushed_rows import NewJob, rows_of

ELSEWHERE = 1 << 43 | 5


def block(runtime: Runtime, *parents: int, until_ms: int = 0) -> int:
    """A job of shard 0 that waits for these."""
    shard = runtime.core.slots[0].shard
    fact = JobsPushed(0, "q", shard.next_id(), [DEFAULT_OPTIONS], [b"c"])
    fact.ties, fact.blocked = [Ties(parents=parents)], [0]
    fact.parents_left, fact.blocked_until_ms = [parents], [until_ms]
    shard.emit(fact)
    return fact.first_id


async def test_jobs_that_it_waits_for_are_named(runtime: Runtime) -> None:
    """Those of other shards, and those that ended and may be retried, too."""
    push = Push("q", DEFAULT_OPTIONS, payloads=Payloads.of([b"x"]))
    runtime.pushes._decide(runtime.core.slots[0], push)
    parent = runtime.core.slots[0].shard.next_id() - 1
    child = block(runtime, parent, 99, ELSEWHERE, until_ms=7_000)
    state, (obstacle,) = await runtime.explainer.explain_job(child)
    assert state is JobState.BLOCKED
    assert (obstacle.kind, obstacle.count) == (ObstacleKind.DEPENDENCIES, 3)
    assert obstacle.until_ms == 7_000
    assert obstacle.message == (
        "it waits for 3 of the 3 jobs that it depends on: "
        f"{parent} (READY), 99 (ended), {ELSEWHERE}"
    )


async def test_only_some_of_many_are_named(runtime: Runtime) -> None:
    await runtime_with_a_queue(runtime)
    child = block(runtime, *range(90, 97))
    shard = runtime.core.slots[0].shard
    (obstacle,) = blocked_by(shard, shard.jobs[child])
    assert obstacle.message.endswith("94 (ended) and 2 more")


async def test_a_job_that_waits_for_no_other_has_no_such_obstacle(runtime: Runtime) -> None:
    await runtime_with_a_queue(runtime)
    shard = runtime.core.slots[0].shard
    assert blocked_by(shard, shard.jobs[block(runtime)]) == []


async def runtime_with_a_queue(runtime: Runtime) -> None:
    rows = rows_of([NewJob(b"x", DEFAULT_OPTIONS)])
    runtime.pushes._decide(runtime.core.slots[0], Push("q", DEFAULT_OPTIONS, rows))

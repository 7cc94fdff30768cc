"""Which limits keep a job waiting, and until when."""

from __future__ import annotations

from jobline_server.engine.commands import Push
from jobline_server.engine.decide.limiters import (
    decide_delete_limiter,
    decide_empty_limiter,
    decide_put_limiter,
)
from jobline_server.engine.decide.queues import decide_limit_queue, decide_update_queue
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import AckLevel, JobOptions, QueueSettings
from jobline_server.runtime.obstacles import Obstacle, ObstacleKind
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.commits.test_commits import a_pull

LIMITS = {
    ObstacleKind.RATE_LIMITED,
    ObstacleKind.CONCURRENCY_LIMITED,
    ObstacleKind.LIMITED_FOR_A_TIME,
}


async def limits_of(runtime: Runtime, settings: QueueSettings, until_ms: int = 0) -> list[Obstacle]:
    """What is said of the second of two jobs, of which the first was handed out."""
    core = runtime.core
    slot, now = core.slots.of_queue("q"), core.now()
    decide_update_queue(slot.shard, now, "q", settings, None)
    pushed = await runtime.pushes.push(
        Push("q", JobOptions(), payloads=Payloads.of([b"x"] * 2), level=AckLevel.BUFFERED)
    )
    await core.commits.commit_once()
    await a_pull(runtime, "q", max_jobs=1)
    if until_ms:
        decide_limit_queue(slot.shard, now, "q", now.wall_ms + until_ms, "ann", "429")
    _, obstacles = await runtime.explainer.explain_job(pushed.first_id + 1)
    return [one for one in obstacles if one.kind in LIMITS]


async def test_rate_says_when_the_next_token_comes(runtime: Runtime) -> None:
    (told,) = await limits_of(runtime, QueueSettings(rate=RateLimit(1, 60_000)))
    assert told.message == "queue q has used up its rate of 1 in 60 s"
    assert 0 < told.until_ms - runtime.core.wall_ms() <= 60_000


async def test_concurrency_says_how_many_are_active(runtime: Runtime) -> None:
    (told,) = await limits_of(runtime, QueueSettings(concurrency=1))
    assert (told.count, told.message) == (
        1,
        "queue q has 1 active job; 1 may be active at once",
    )


async def test_limit_for_a_time_says_until_when_who_and_why(runtime: Runtime) -> None:
    (told,) = await limits_of(runtime, QueueSettings(), until_ms=5_000)
    assert told.message == "queue q lets nothing out for a time, limited by ann: 429"
    assert 0 < told.until_ms - runtime.core.wall_ms() <= 5_000


async def test_limits_with_room_are_no_obstacle(runtime: Runtime) -> None:
    settings = QueueSettings(rate=RateLimit(9), concurrency=9)
    assert await limits_of(runtime, settings) == []


async def test_limiter_says_which_of_its_limits_a_job_waits_for(
    runtime: Runtime,
) -> None:
    core = runtime.core
    shard = core.slots.of_queue("q").shard
    decide_put_limiter(shard, core.now(), "api", None, 1)
    decide_put_limiter(shard, core.now(), "calls", RateLimit(1, 60_000), None)
    decide_put_limiter(shard, core.now(), "gone", None, 1)
    decide_put_limiter(shard, core.now(), "mails", None, 9)
    options = JobOptions(rules=JobRules(limiters=("api", "calls", "gone", "mails")))
    push = Push("q", options, payloads=Payloads.of([b"x"] * 2), level=AckLevel.BUFFERED)
    first_id = (await runtime.pushes.push(push)).first_id
    decide_delete_limiter(shard, core.now(), "gone")
    await core.commits.commit_once()
    await a_pull(runtime, "q", max_jobs=1)
    until_ms = core.wall_ms() + 300_000
    decide_empty_limiter(shard, core.now(), "mails", until_ms, "ann", "429")
    _, obstacles = await runtime.explainer.explain_job(first_id + 1)
    api, calls, mails = [one for one in obstacles if one.kind is ObstacleKind.LIMITER]
    assert api.message == "limiter api has 1 active job; 1 may be active at once"
    assert (api.until_ms, api.count) == (0, 1)
    assert calls.message == "limiter calls has used up its rate of 1 in 60 s"
    assert calls.until_ms > core.wall_ms()
    assert mails.message == "limiter mails lets nothing out for a time, limited by ann: 429"
    assert mails.until_ms == until_ms

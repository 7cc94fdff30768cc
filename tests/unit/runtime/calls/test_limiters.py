"""Calls on limiters, and consumers that wait for what they let out."""

from __future__ import annotations

import asyncio

import pytest

from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.commands import Leased, Pull, Push, RefusalKind, Refused, ReleaseItem
from jobline_server.engine.decide.queues import LIMITED_BY_WORKER
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import AckLevel, JobOptions, Now, ReleaseReason
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit
from tests.unit.runtime.commits.test_commits import a_moment
from tests.unit.runtime.ended.test_many_ids import committed

OPTIONS = JobOptions(rules=JobRules(limiters=("api",)))


async def pushed(runtime: Runtime, queue: str, count: int) -> int:
    payloads = Payloads.of([b"x"] * count)
    push = Push(queue, OPTIONS, payloads=payloads, level=AckLevel.BUFFERED)
    first_id = (await runtime.pushes.push(push)).first_id
    await runtime.core.commits.commit_once()
    return first_id


def pull(runtime: Runtime, queue: str, *, wait_ms: int = 0) -> asyncio.Task[Leased]:
    wanted = Pull(((queue, 1),), max_jobs=10, worker="w", accepts_runs=True, wait_ms=wait_ms)
    return asyncio.ensure_future(runtime.pulls.pull(wanted))


async def put(runtime: Runtime, name: str, *, rate: RateLimit | None = None, most: int = 0) -> None:
    change = runtime.limiters.put_limiter(name, rate, most or None)
    await committed(runtime, asyncio.ensure_future(change))


async def test_pull_of_another_queue_gets_the_place_of_a_job_that_ends(runtime: Runtime) -> None:
    """It waits, and the timer loop opens its lane."""
    await put(runtime, "api", most=1)
    await pushed(runtime, "a", 1)
    await pushed(runtime, "b", 1)
    leased = await pull(runtime, "a")
    [run] = leased.runs
    waiting = pull(runtime, "b", wait_ms=20_000)
    await a_moment()
    runtime.timer_loop.run_due()
    assert not waiting.done()
    runtime.core.next_tick = Now(1 << 60, 1 << 60)
    runtime.settles.ack([run.first_id], [run.delivery], {})
    assert runtime.core.timers.is_set()
    runtime.timer_loop.run_due()
    assert (await waiting).count() == 1


async def test_worker_says_until_when_a_limiter_is_empty(runtime: Runtime) -> None:
    await put(runtime, "api", most=5)
    await pushed(runtime, "a", 2)
    [run] = (await pull(runtime, "a")).runs
    until_ms = runtime.core.wall_ms() + 60_000
    limited = [
        ReleaseItem(run.first_id + index, run.delivery, 0, ReleaseReason.LIMITED, until_ms, name)
        for index, name in enumerate(["api", "nowhere"])
    ]
    assert runtime.settles.release(limited) == []
    limited_now = runtime.limiters.get_limiter("api").limited
    assert limited_now == TimeLimit(until_ms, "w", LIMITED_BY_WORKER)
    lost = runtime.settles.release(limited)
    assert len(lost) == 2, "a lease that is not held says nothing"


async def test_limiters_are_listed_by_name_a_page_at_a_time(runtime: Runtime) -> None:
    for name in ("c", "a", "b", "x"):
        await put(runtime, name, rate=RateLimit(2))
    page, token = await runtime.limiters.list_limiters(page_size=2, page_token="", prefix="")
    assert ([view.settings.name for view in page], token) == (["a", "b"], "b")
    page, token = await runtime.limiters.list_limiters(page_size=2, page_token=token, prefix="")
    assert ([view.settings.name for view in page], token) == (["c", "x"], "")
    assert page[0].tokens == 2


async def test_deleted_limiter_is_not_found(runtime: Runtime) -> None:
    await put(runtime, "api", most=1)
    await committed(runtime, asyncio.ensure_future(runtime.limiters.delete_limiter("api")))
    with pytest.raises(Refused) as refused:
        runtime.limiters.get_limiter("api")
    assert refused.value.kind is RefusalKind.LIMITER_NOT_FOUND


async def test_limiter_shows_until_when_it_is_empty(runtime: Runtime) -> None:
    await put(runtime, "api", most=1)
    until_ms = runtime.core.wall_ms() + 60_000
    change = runtime.limiters.empty_limiter("api", until_ms, Audit("ann", "429"))
    call = asyncio.ensure_future(change)
    await committed(runtime, call)
    view = call.result()
    assert view.limited == TimeLimit(until_ms, "ann", "429")

"""The timer loop: what comes by itself wakes those who wait for it."""

from __future__ import annotations

import asyncio

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import Leased, Pull, Push
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.limiters import decide_delete_limiter, decide_put_limiter
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobOptions
from jobline_server.runtime import timer_loop
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from tests.pushed_rows import NewJob, rows_of
from tests.unit.engine.gates_by_hand import close_gate
from tests.unit.runtime.calls.test_pulls import pushed
from tests.unit.runtime.commits.test_commits import a_moment

KEY = (0, "", 0, None, "")


def closed(runtime: Runtime, ms: int) -> None:
    """The lane of jobs without a name gives nothing for so long."""
    shard = runtime.core.slots[0].shard
    opens_ms = runtime.core.now().mono_ms + ms
    close_gate(shard, shard.queues["mail"], KEY, opens_ms)


async def waiting(runtime: Runtime) -> asyncio.Task[Leased]:
    pull = Pull((("mail", 1),), max_jobs=10, worker="w", accepts_runs=True, wait_ms=20_000)
    task = asyncio.ensure_future(runtime.pulls.pull(pull))
    await a_moment()
    return task


def advance(runtime: Runtime, ms: int) -> None:
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    clock.advance(ms)


def delayed(runtime: Runtime, ms: int) -> Push:
    run_at_ms, payloads = runtime.core.wall_ms() + ms, Payloads.of([b"x"])
    options, level = DEFAULT_OPTIONS, AckLevel.BUFFERED
    return Push("mail", options, payloads=payloads, run_at_ms=run_at_ms, level=level)


async def test_waiting_pull_is_served_when_a_gate_opens(runtime: Runtime) -> None:
    await pushed(runtime, rows=0, plain=1)
    closed(runtime, 1_000)
    pull = await waiting(runtime)
    advance(runtime, 999)
    runtime.timer_loop.run_due()
    await a_moment()
    assert not pull.done()
    advance(runtime, 1)
    runtime.timer_loop.run_due()
    await a_moment()
    assert pull.done()
    assert (await pull).count() == 1


async def test_timers_wait_for_the_disk(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of jobs that fail one after the other would be one commit, however long it is."""
    monkeypatch.setattr(timer_loop, "WAITING_FACTS_MAX", 20)
    monkeypatch.setattr(limits, "SLICE_DEPENDENTS", 10)
    monkeypatch.setattr(limits, "DEPENDENTS_AT_ONCE", 0)
    links = [NewJob(b"x", DEFAULT_OPTIONS, parent_indexes=(n,)) for n in range(60)]
    rows = rows_of([NewJob(b"x", DEFAULT_OPTIONS), *links])
    chain = Push("mail", DEFAULT_OPTIONS, rows=rows, level=AckLevel.BUFFERED)
    first_id = (await runtime.pushes.push(chain)).first_id
    core = runtime.core
    await core.commits.commit_once()
    shard = core.slots[0].shard
    decide_cancel(shard, core.now(), [first_id])

    commits = most = 0
    while len(shard.jobs):
        for _ in range(50):
            runtime.timer_loop.run_due()
        most = max(most, len(shard.entries))
        await core.commits.commit_once()
        commits += 1
    assert not shard.dependencies.has_any
    assert (most < 40, commits > 3) == (True, True)


async def test_timers_rest_until_the_next_decision(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timer_loop, "REST_MS", 3_600_000)
    core, timers = runtime.core, runtime.timer_loop
    timers.run_due()
    resting = asyncio.ensure_future(timers.step())
    await a_moment()
    assert (core.timers_rest, resting.done()) == (True, False)
    await runtime.pushes.push(delayed(runtime, 10))
    await asyncio.wait_for(resting, 20)
    assert not core.timers_rest


async def test_pushes_that_make_nothing_due_end_a_rest_once(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each push had the timers of all shards looked at: a sixth of what it costs."""
    monkeypatch.setattr(timer_loop, "TIMER_CHECK_MS", 3_600_000)
    monkeypatch.setattr(timer_loop, "REST_MS", 7_200_000)
    core, timers = runtime.core, runtime.timer_loop
    timers.run_due()
    resting = asyncio.ensure_future(timers.step())
    await a_moment()
    for _ in range(3):
        assert not resting.done()
        await runtime.pushes.push(delayed(runtime, 0))
        await a_moment()
    assert (core.timers_rest, resting.done()) == (False, False)
    await runtime.pushes.push(delayed(runtime, 10))
    await asyncio.wait_for(resting, 20)


async def test_timers_do_not_rest_while_anything_may_become_due(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timer_loop, "TIMER_CHECK_MS", 0)
    monkeypatch.setattr(timer_loop, "REST_MS", 3_600_000)
    await runtime.pushes.push(delayed(runtime, 10**9))
    for _ in range(3):
        await asyncio.wait_for(runtime.timer_loop.step(), 20)


async def test_a_pull_that_a_limit_holds_back_ends_the_rest(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no decision, and when the limit lets the job out is known only from then on."""
    monkeypatch.setattr(timer_loop, "REST_MS", 3_600_000)
    core, limited = runtime.core, JobOptions(rules=JobRules(limiters=("api",)))
    now = core.now()
    decide_put_limiter(core.slots[0].shard, now, "api", RateLimit(1, period_ms=1_000), None)
    core.load.limiters.restart("api", now.mono_ms)
    rows = rows_of([NewJob(b"x", limited)])
    await runtime.pushes.push(Push("mail", limited, rows=rows, level=AckLevel.BUFFERED))
    await core.commits.commit_once()
    runtime.timer_loop.run_due()
    resting = asyncio.ensure_future(runtime.timer_loop.step())
    await a_moment()
    assert core.timers_rest
    pull = await waiting(runtime)
    await asyncio.wait_for(resting, 20)
    advance(runtime, 1_000)
    runtime.timer_loop.run_due()
    await a_moment()
    assert (await pull).count() == 1


async def test_timers_rest_once_the_only_limiter_is_deleted(runtime: Runtime) -> None:
    """They took a whole core from then on: what nobody opens was due all the time."""
    shard, now = runtime.core.slots[0].shard, runtime.core.now()
    decide_put_limiter(shard, now, "api", None, 5)
    decide_delete_limiter(shard, now, "api")
    runtime.timer_loop.run_due()
    assert runtime.timer_loop._until_next() == timer_loop.REST_MS

"""Options of time and order over a socket, and over a restart."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobline import (
    AsyncClient,
    Backoff,
    EndReason,
    EventKind,
    JobOptions,
    JobState,
    NewJob,
    QueueSettings,
    SettleOutcome,
)
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server
from tests.e2e.test_restart import a_life


async def ids_of(client: AsyncClient, queue: str = "mail") -> list[int]:
    """The jobs that come next."""
    return [job.id for job in await client.pull(queue, max_jobs=100, wait=5)]


async def test_the_last_job_goes_first_where_it_says_so(client: AsyncClient) -> None:
    """The jobs of one push keep their order."""
    plain = await client.push("mail", b"plain")
    first = await client.push("mail", b"first", lifo=True)
    batch = await client.push_many("mail", [NewJob(b"1", job_key="k"), b"2"], lifo=True)
    assert await ids_of(client) == [batch[0].id, batch[1].id, first.id, plain.id]


async def test_the_front_of_a_lane_is_there_after_a_restart(tmp_path: Path) -> None:
    """So is the order that comes next."""
    clock = ManualClock()
    async with a_life(tmp_path, clock) as client:
        plain = await client.push("mail", b"plain")
        first = await client.push("mail", b"first", lifo=True)
    async with a_life(tmp_path, clock) as client:
        second = await client.push("mail", b"second", lifo=True)
    async with a_life(tmp_path, clock) as client:
        assert await ids_of(client) == [second.id, first.id, plain.id]


async def test_pauses_are_those_of_the_list(server: RunningServer, client: AsyncClient) -> None:
    """One after the other, and the last one again; what a job says replaces what its push says."""
    options = JobOptions(backoff=Backoff(base=60, jitter=0), max_attempts=0)
    own = NewJob(b"x", backoff=Backoff(delays=[1, "5s"]))
    (pushed,) = await client.push_many("mail", [own], options=options)
    for pause in (1, 5, 5):
        (job,) = await client.pull("mail", wait=5)
        await client.fail(job, "no")
        server.advance(pause * 1_000 - 1)
        assert (await client.jobs.get(pushed.id)).state is JobState.SCHEDULED
        server.advance(1)
    shown = (await client.jobs.get(pushed.id)).options.backoff
    assert shown == Backoff.from_message(Backoff(delays=[1, 5], jitter=0.0).to_message())


async def test_no_retry_starts_after_its_last_moment(tmp_path: Path) -> None:
    """Not even over a restart."""
    clock = ManualClock()
    until = datetime.fromtimestamp(clock.now().wall_ms / 1_000 + 30, UTC)
    async with a_life(tmp_path, clock) as client:
        pushed = await client.push(
            "mail", b"x", retry_until=until, backoff=Backoff(delays=[20], jitter=0)
        )
        (job,) = await client.pull("mail")
        await client.fail(job, "no")
    clock.advance(20_000)
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        (job,) = await client.pull("mail", wait=5)
        await client.fail(job, "no")
        ended = await client.jobs.get(pushed.id)
        assert (ended.state, ended.reason) == (JobState.DEAD, EndReason.RETRY_UNTIL_PASSED)
        assert ended.options.retry_until == until.replace(
            microsecond=until.microsecond // 1000 * 1000
        )


async def test_what_has_not_run_in_time_is_expired(
    server: RunningServer, client: AsyncClient
) -> None:
    """Callers that wait are told at once, watchers see it, and it says why it does not run."""
    watching = client.watch(queues=["mail"], kinds=["expired"])
    pushed = await client.push_payloads("mail", [b"1", b"2"], ttl="5s")
    alone = await client.push("mail", b"3", ttl=5, delay=60)
    plain = await client.push("mail", b"4")
    job = await client.jobs.get(alone.id)
    assert job.ttl_ends_at is not None
    assert job.pushed_at is not None
    assert (job.ttl_ends_at - job.pushed_at).total_seconds() == 5
    waiting = asyncio.create_task(client.wait_one(alone.id, timeout=60))
    events = asyncio.create_task(anext(watching))
    await asyncio.sleep(0.2)
    server.advance(5_000)
    ended = await waiting
    assert (ended.state, ended.reason) == (JobState.EXPIRED, EndReason.EXPIRED)
    event = (await events).event
    assert (event.kind, event.state) == (EventKind.EXPIRED, JobState.EXPIRED)
    assert [job.id for job in await client.pull("mail", max_jobs=9)] == [plain.id]
    counts = (await client.queues.get("mail")).counts
    assert (counts.expired, counts.scheduled, counts.ready) == (3, 0, 0)
    explained = await client.jobs.explain(pushed.first_id)
    assert "its TTL ended before it ran" in explained.obstacles[0].message
    retried = await client.jobs.retry(pushed.first_id, alone.id)
    assert retried.count == 2
    server.advance(4_999)
    assert (await client.jobs.get(alone.id)).state is JobState.READY
    server.advance(1)
    assert (await client.jobs.get(alone.id)).state is JobState.EXPIRED


@pytest.mark.parametrize("to_dead", [False, True])
async def test_a_ttl_outlives_the_process(tmp_path: Path, to_dead: bool) -> None:
    """Of lots and single jobs, of a queue and their own; with a checkpoint or without."""
    clock = ManualClock()
    async with a_life(tmp_path, clock) as client:
        await client.queues.update("mail", QueueSettings(ttl="10s", expired_to_dead=to_dead))
        lot = await client.push_payloads("mail", [b"1", b"2"])
        alone = await client.push("mail", b"3", ttl=20, job_key="k")
        never = await client.push("mail", b"4", ttl=0)
        (leased,) = await client.pull("mail")
    clock.advance(10_000)
    async with a_life(tmp_path, clock) as client:
        state = JobState.DEAD if to_dead else JobState.EXPIRED
        assert (await client.wait_one(lot.first_id + 1, timeout=5)).state is state
        assert (await client.jobs.get(alone.id)).state is JobState.READY
        assert leased.id == lot.first_id
        await client.release(leased)
        ended = await client.wait_one(leased.id, timeout=5)
        assert (ended.state, ended.reason) == (state, EndReason.EXPIRED)
    clock.advance(10_000)
    async with a_life(tmp_path, clock) as client:
        assert (await client.wait_one(alone.id, timeout=5)).state is state
        assert await ids_of(client) == [never.id]


async def test_an_attempt_that_takes_too_long_is_ended(
    server: RunningServer, client: AsyncClient
) -> None:
    """Its worker hears of a lost lease, and the job is tried again, or dead."""
    pause = Backoff(delays=[1], jitter=0)
    options = JobOptions(attempt_timeout="5s", max_attempts=2, backoff=pause, lease="1m")
    pushed = await client.push("mail", b"1", options=options)
    for attempt in (1, 2):
        (leased,) = await client.pull("mail", wait=5)
        assert leased.attempt == attempt
        shown = await client.jobs.get(pushed.id)
        assert shown.times_out_at is not None
        server.advance(4_999)
        await client.extend(leased, lease="10m")
        server.advance(1)
        assert await client.ack(leased) == [SettleOutcome.LEASE_LOST]
        server.advance(1_000)
    ended = await client.jobs.get(pushed.id)
    assert (ended.state, ended.reason) == (JobState.DEAD, EndReason.TIMEOUT)
    assert [one.error.type for one in ended.history if one.error] == ["timeout", "timeout"]


async def test_after_a_restart_an_attempt_has_its_full_time_again(tmp_path: Path) -> None:
    """As leases do: the server cannot know what the worker did meanwhile."""
    clock = ManualClock()
    async with a_life(tmp_path, clock) as client:
        await client.queues.update("mail", QueueSettings(timeout="5s"))
        await client.push_payloads("mail", [b"1", b"2"], lease="1m")
        leased = await client.pull("mail", max_jobs=2)
    clock.advance(60_000)
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        server.advance(4_999)
        assert await client.ack(leased[0]) == [SettleOutcome.DONE]
        server.advance(1)
        assert await client.ack(leased[1]) == [SettleOutcome.LEASE_LOST]


async def test_a_push_may_be_spread_over_time(server: RunningServer, client: AsyncClient) -> None:
    """Evenly, the first job at once."""
    pushed = await client.push_many("mail", [b"1", b"2", b"3", b"4"], spread="8s")
    ids = [one.id for one in pushed]
    assert await ids_of(client) == ids[:1]
    for job_id in ids[1:]:
        server.advance(1_999)
        assert (await client.jobs.get(job_id)).state is JobState.SCHEDULED
        server.advance(1)
        assert await ids_of(client) == [job_id]
    lot = await client.push_payloads("mail", [b"5", b"6"], spread=2, delay=1)
    server.advance(1_000)
    assert await ids_of(client) == [lot.first_id]

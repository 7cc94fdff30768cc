"""A clock that is moved by hand: all that comes due on the way is done, each at its moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from jobline import AsyncClient, Backoff, Context, JobState, RateLimit
from jobline_server.dev.servers import ManualServer
from jobline_server.dev.time_travel import TimeTravel
from tests.server.manual import START_MS, at_work, manual_server, minutes

START = datetime.fromtimestamp(START_MS / 1_000, UTC)


@pytest.fixture
async def server() -> AsyncIterator[ManualServer]:
    async with manual_server() as running:
        yield running


@pytest.fixture
async def client(server: ManualServer) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(server.addresses[0]) as connected:
        yield connected


async def done(payload: object) -> str:
    return "done"


async def test_time_stands_still_by_itself(server: ManualServer, client: AsyncClient) -> None:
    first = await client.push("mail", b"1")
    second = await client.push("mail", b"2")
    times = {(await client.jobs.get(one.id)).pushed_at for one in (first, second)}
    assert times == {START}


async def test_a_delayed_job_is_done_at_its_moment(
    server: ManualServer, client: AsyncClient
) -> None:
    """And not when the clock has come to where it was moved to."""
    async with at_work(server, "mail", done):
        pushed = await client.push("mail", b"", delay="1h")
        await server.controls.advance(minutes(180))
        job = await client.jobs.get(pushed.id)
    assert (job.state, job.ended_at) == (JobState.COMPLETED, START + timedelta(hours=1))
    assert server.controls.wall_ms() == START_MS + minutes(180)


async def test_retries_come_at_their_moments(server: ManualServer, client: AsyncClient) -> None:
    """Each is handled before the clock moves on to the next."""
    seen: list[int] = []

    async def fails_twice(payload: object, context: Context) -> None:
        seen.append(server.controls.wall_ms() - START_MS)
        if context.attempt < 3:
            raise ConnectionError("try later")

    async with at_work(server, "mail", fails_twice):
        await client.push("mail", b"", delay="1m", backoff=Backoff(base="10m", jitter=0))
        await server.controls.advance(minutes(60))
    assert seen == [minutes(1), minutes(11), minutes(31)]


async def test_a_schedule_runs_as_often_as_it_would_have(
    server: ManualServer, client: AsyncClient
) -> None:
    """A run is skipped while the last one is unfinished, so workers are waited for."""
    await client.schedules.create("often", "ticks", cron="* * * * *")
    async with at_work(server, "ticks", done):
        await server.controls.advance(minutes(30))
        jobs = [job async for job in client.jobs.list(queue="ticks")]
    assert [job.pushed_at for job in jobs] == [
        START + timedelta(minutes=number) for number in range(1, 31)
    ]
    assert {job.state for job in jobs} == {JobState.COMPLETED}


async def test_a_lease_without_a_worker_is_lost_at_its_end(
    server: ManualServer, client: AsyncClient
) -> None:
    pushed = await client.push("mail", b"", lease="30s")
    (leased,) = await client.pull("mail")
    await server.controls.advance(29_000)
    assert (await client.jobs.get(pushed.id)).state is JobState.ACTIVE
    await server.controls.advance(2_000)
    job = await client.jobs.get(pushed.id)
    assert (job.state, job.stalls) == (JobState.READY, 1)
    assert [outcome.name for outcome in await client.ack(leased)] == ["LEASE_LOST"]


async def test_a_worker_with_an_open_stream_keeps_its_lease(
    server: ManualServer, client: AsyncClient
) -> None:
    """Its heartbeats cannot come while the clock moves, and it is not silent."""
    goes_on = asyncio.Event()

    async def hangs(payload: object) -> None:
        await goes_on.wait()

    async with at_work(server, "mail", hangs):
        pushed = await client.push("mail", b"", lease="30s")
        await server.controls.advance(minutes(90), work_ms=20)
        job = await client.jobs.get(pushed.id)
        assert (job.state, job.stalls) == (JobState.ACTIVE, 0)
        goes_on.set()
        await server.controls.drain("mail", 5)
    assert (await client.jobs.get(pushed.id)).state is JobState.COMPLETED


async def test_an_attempt_that_hangs_times_out(server: ManualServer, client: AsyncClient) -> None:
    async def hangs(payload: object) -> None:
        await asyncio.Event().wait()

    async with at_work(server, "mail", hangs):
        pushed = await client.push("mail", b"", attempt_timeout="10m", max_attempts=1)
        await server.controls.advance(minutes(11), work_ms=20)
        job = await client.jobs.get(pushed.id)
    assert (job.state, job.ended_at) == (JobState.DEAD, START + timedelta(minutes=10))


async def test_retention_ages_and_deletes_in_time(
    server: ManualServer, client: AsyncClient
) -> None:
    """Cancelled jobs are STALE after an hour, and deleted after another."""
    pushed = await client.push("mail", b"")
    await client.jobs.cancel(pushed.id)
    found = []
    for step in (59, 2, 57, 3):
        await server.controls.advance(minutes(step))
        found.append([job.state.name async for job in client.jobs.list(queue="mail")])
    assert found == [["CANCELLED"], ["STALE"], ["STALE"], []]


async def test_a_rate_gives_its_tokens_in_time(server: ManualServer, client: AsyncClient) -> None:
    await client.queues.update("mail", rate=RateLimit(rate=1, period="1m"))
    async with at_work(server, "mail", done):
        for number in range(4):
            await client.push("mail", number)
        await server.controls.advance(minutes(10))
        ends = sorted(
            [job.ended_at async for job in client.jobs.list(queue="mail") if job.ended_at]
        )
    assert [end - START for end in ends] == [timedelta(minutes=number) for number in range(4)]


async def test_minutes_are_closed_at_their_ends(server: ManualServer, client: AsyncClient) -> None:
    """What happened in a minute is told of that minute, however far the clock is moved."""
    await client.push("mail", b"")
    await server.controls.advance(minutes(5))
    await client.push("mail", b"")
    await server.controls.advance(minutes(5))
    history = [minute async for minute in client.queues.history("mail")]
    found = [(minute.start_time - START, minute.pushed) for minute in history]
    assert found == [(timedelta(), 1), (timedelta(minutes=5), 1)]


async def test_a_year_with_nothing_to_do_takes_no_steps(
    server: ManualServer, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock goes from one moment to the next, and looks at no second in between."""
    moved: list[int] = []
    move = TimeTravel._move

    async def counting(travel: TimeTravel, milliseconds: int) -> None:
        moved.append(milliseconds)
        await move(travel, milliseconds)

    monkeypatch.setattr(TimeTravel, "_move", counting)
    pushed = await client.push("mail", b"", delay="300d")
    await server.controls.advance(minutes(60 * 24 * 365))
    assert (await client.jobs.get(pushed.id)).state is JobState.READY
    assert len(moved) < 20


async def test_two_moves_add_up(server: ManualServer) -> None:
    await asyncio.gather(*[server.controls.advance(minutes(1)) for _ in range(3)])
    assert server.controls.wall_ms() == START_MS + minutes(3)


async def test_a_move_that_is_cancelled_leaves_the_clock_where_it_is(
    server: ManualServer, client: AsyncClient
) -> None:
    """And what has come due by then is done."""
    reached = asyncio.Event()

    async def handler(payload: object) -> None:
        reached.set()

    async with at_work(server, "mail", handler):
        await client.schedules.create("often", "mail", cron="* * * * *")
        moving = asyncio.create_task(server.controls.advance(minutes(60 * 24 * 300)))
        await reached.wait()
        moving.cancel()
        await asyncio.gather(moving, return_exceptions=True)
        stopped_ms = server.controls.wall_ms()
        assert START_MS < stopped_ms < START_MS + minutes(60 * 24 * 300)
        await server.controls.advance(0)
        assert server.controls.wall_ms() == stopped_ms


async def test_the_clock_goes_only_forward(server: ManualServer) -> None:
    assert not await server.controls.advance_to(START_MS - 1, work_ms=0)
    assert await server.controls.advance_to(START_MS, work_ms=0)
    assert server.controls.wall_ms() == START_MS

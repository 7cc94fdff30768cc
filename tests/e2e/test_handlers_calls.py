"""What handlers do beyond their own job: they spawn others, empty limiters, and know their end."""

from __future__ import annotations

import os
import signal
import threading
from datetime import UTC, datetime, timedelta

import pytest

from jobline import AsyncClient, Backoff, Context, JobState, RateLimit, RateLimited, Worker, job
from jobline_server.testing import running_server
from tests.client.live.working import program, working


@job(queue="children")
def child(number: int, *, of: int) -> int:
    return number


@pytest.fixture(scope="module")
async def server():
    """A server for all tests here."""
    async with running_server() as server:
        yield server


@pytest.fixture
async def client(server):
    async with AsyncClient(server.address) as client:
        yield client


@pytest.mark.parametrize("is_async", [True, False])
async def test_an_attempt_that_runs_again_spawns_nothing_twice(server, client, is_async):
    """All children are those of the first attempt, from plain and from async handlers."""
    worker = Worker(server.address, concurrency=2)
    queue = f"parents-{is_async}"
    spawned: list[list[int]] = []

    def plain(payload, context):
        pushed = [context.spawn(child, number, of=context.id) for number in range(3)]
        note([*pushed, context.spawn("children", {"by": "name"}, spawn_key="named")], context)

    async def awaited(payload, context):
        pushed = [await context.spawn_async(child, number, of=context.id) for number in range(3)]
        last = await context.spawn_async("children", {"by": "name"}, spawn_key="named")
        note([*pushed, last], context)

    def note(pushed, context):
        spawned.append([one.id for one in pushed])
        if context.attempt < 3:
            raise ConnectionError("after all were spawned")

    worker.handler(queue)(awaited if is_async else plain)
    async with working(worker):
        parent = await client.push(queue, backoff=Backoff(base=0), max_attempts=3)
        await client.wait_one(parent.id, timeout=30)
    assert len(spawned) == 3
    assert spawned[0] == spawned[1] == spawned[2]
    assert len(set(spawned[0])) == 4


PARENT = """
import sys
from jobline import Worker

worker = Worker(sys.argv[1], lease=1)

@worker.handler("killed-parents")
def parent(payload, context):
    for number in range(20):
        context.spawn("grandchildren", number)
        print(number, flush=True)

worker.run()
"""


async def test_a_worker_that_is_killed_among_its_spawns_leaves_none_twice(server, client):
    """Its job is handed out again, and goes on where it was as far as anybody can see."""
    pushed = await client.push("killed-parents", lease=1)
    for kill_after in (b"4\n", b"11\n"):
        async with program(PARENT, server.address) as process:
            while await process.stdout.readline() != kill_after:
                pass
            os.kill(process.pid, signal.SIGKILL)
            await process.wait()
    async with program(PARENT, server.address):
        end = await client.wait_one(pushed.id, timeout=30)
    assert end.ok
    found = [one async for one in client.jobs.list(queue="grandchildren", include_payloads=True)]
    assert sorted(int(one.payload) for one in found) == list(range(20))


async def test_a_spawned_job_is_counted_by_the_batch_of_its_parent(server, client):
    """Which is not complete before it has ended, although it was closed."""
    worker = Worker(server.address)

    @worker.handler("batch-parents")
    async def parent(payload, context):
        await context.spawn_async("batch-children", b"x")

    @worker.handler("batch-children")
    async def grandchild(payload):
        return None

    batch = await client.batches.create("family")
    await batch.push("batch-parents", b"")
    await batch.close()
    async with working(worker):
        end = None
        while end is None or end.state.name != "COMPLETE":
            end = await client.batches.get(batch.id)
    assert end.total == 2


@pytest.mark.parametrize("limiter", ["api", ""])
async def test_a_handler_empties_its_limiter(server, client, limiter):
    """Its job and all others that pass it wait, uses no attempt, and go on when it is lifted."""
    queue = f"limited-{limiter or 'queue'}"
    attempts: list[int] = []
    worker = Worker(server.address, concurrency=1)
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    if limiter:
        await client.limiters.upsert(limiter, rate=RateLimit(rate=1_000, period=1))

    @worker.handler(queue)
    async def call(payload, context: Context):
        attempts.append(context.attempt)
        if len(attempts) == 1:
            raise RateLimited(limiter, until)

    async with working(worker):
        limiters = [limiter] if limiter else None
        pushed = await client.push(queue, b"1", limiters=limiters)
        first = await client.jobs.get(pushed.id)
        while not attempts or first.state is JobState.ACTIVE:
            first = await client.jobs.get(pushed.id)
        assert (first.state, first.attempts) == (JobState.READY, 0)
        second = await client.push(queue, b"2", limiters=limiters)
        explained = await client.jobs.explain(second.id)
        assert explained.obstacles
        assert attempts == [1]
        if limiter:
            assert (await client.limiters.get(limiter)).limited_until == until
            await client.limiters.empty(limiter, None)
            await client.wait_one(pushed.id, timeout=30)
            await client.wait_one(second.id, timeout=30)
            assert attempts == [1, 1, 1]


async def test_a_limiter_that_the_job_does_not_pass_fails_the_attempt_alone(server, client):
    """The server would refuse it, and the other settles of the frame with it."""
    worker = Worker(server.address)

    @worker.handler("not-mine")
    async def call(payload):
        return RateLimited("other", "1m")

    async with working(worker):
        pushed = await client.push("not-mine", max_attempts=1)
        async for end in client.wait(pushed.id, timeout=30):
            assert end.state is JobState.DEAD
            assert "does not pass the limiter 'other'" in end.error.message


async def test_a_handler_knows_when_its_attempt_times_out(server, client):
    """The deadline is that of the job; its event is set when it is over."""
    worker = Worker(server.address)
    seen: list[tuple[datetime | None, bool]] = []

    @worker.handler("timed")
    def slow(payload, context):
        assert isinstance(context.cancel_event, threading.Event)
        seen.append((context.deadline, context.cancel_event.wait(30)))
        context.raise_if_cancelled()

    before = datetime.now(UTC)
    async with working(worker):
        pushed = await client.push("timed", attempt_timeout=1, max_attempts=1)
        async for end in client.wait(pushed.id, timeout=30):
            assert end.state is JobState.DEAD
    ((deadline, was_set),) = seen
    assert deadline is not None
    assert timedelta(seconds=0.9) < deadline - before < timedelta(seconds=20)
    assert was_set

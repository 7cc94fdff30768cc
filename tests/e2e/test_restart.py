"""A server that stops or dies, and another one on the same files."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from jobline import (
    AckLevel,
    AsyncClient,
    EndReason,
    JobOptions,
    JobState,
    NewJob,
    PushOutcome,
    QueueSettings,
    SettleOutcome,
)
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import ServerProcess, running_server


@asynccontextmanager
async def a_life(data: Path, clock: ManualClock) -> AsyncIterator[AsyncClient]:
    """One server on these files, and a client of it."""
    async with (
        running_server(data, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        yield client


async def test_everything_is_as_it_was(tmp_path: Path) -> None:
    """Waiting, delayed, leased and ended jobs, keys, settings and pauses outlive the process.
    Predecessors: idempotency keys were lost at a restart.
    """
    clock = ManualClock()
    async with a_life(tmp_path, clock) as client:
        ready = await client.push("mail", b"ready")
        leased_id = (await client.push("work", b"leased")).id
        (leased,) = await client.pull("work")
        later = await client.push("mail", b"later", delay=60)
        await client.push("done", b"done", job_key="k")
        (done,) = await client.pull("done")
        await client.ack(done, result="ok")
        await client.queues.update("mail", QueueSettings(max_waiting=7))
        await client.queues.pause("mail", reason="migration")
    clock.advance(1_000)
    async with a_life(tmp_path, clock) as client:
        queue = await client.queues.get("mail")
        assert (queue.settings.max_waiting, queue.paused) == (7, True)
        assert queue.pause_reason == "migration"
        assert (queue.counts.ready, queue.counts.scheduled) == (1, 1)
        assert (await client.jobs.get(later.id)).state is JobState.SCHEDULED
        assert (await client.wait_one(done.id)).value() == "ok"
        known = await client.push("done", b"done", job_key="k")
        assert (known.id, known.outcome) == (done.id, PushOutcome.DUPLICATE)
        assert await client.ack(leased) == [SettleOutcome.DONE]
        assert (await client.wait_one(leased_id)).state == JobState.COMPLETED
        await client.queues.resume("mail")
        assert [job.id for job in await client.pull("mail", wait=5)] == [ready.id]


async def test_no_id_and_no_delivery_is_given_twice(tmp_path: Path) -> None:
    """Not even those of jobs that were never written. Predecessors: ids were used again after a
    restart.
    """
    clock = ManualClock()
    ids: list[int] = []
    deliveries: list[int] = []
    for _ in range(3):
        async with a_life(tmp_path, clock) as client:
            await client.push("mail", b"kept")
            volatile = await client.push("mail", b"volatile", ack_level=AckLevel.MEMORY)
            ids.append(volatile.id)
            pulled = await client.pull("mail", max_jobs=10)
            deliveries += [job.delivery for job in pulled if job.payload == b"volatile"]
    assert len(set(ids)) == 3
    assert len(set(deliveries)) == 3


async def test_a_job_in_memory_goes_with_the_process(tmp_path: Path) -> None:
    """MEMORY means never written; its neighbours are not touched by that."""
    clock = ManualClock()
    async with a_life(tmp_path, clock) as client:
        kept = await client.push("mail", b"kept")
        await client.push("mail", b"volatile", ack_level=AckLevel.MEMORY)
    async with a_life(tmp_path, clock) as client:
        assert [job.id for job in await client.pull("mail", max_jobs=10)] == [kept.id]


async def test_every_lease_gets_its_full_time_again(tmp_path: Path) -> None:
    """However long the server was down, heartbeats that could not arrive cost nothing."""
    clock = ManualClock()
    async with a_life(tmp_path, clock) as client:
        await client.push("mail", b"x")
        (leased,) = await client.pull("mail")
    clock.advance(10 * 60_000)
    async with a_life(tmp_path, clock) as client:
        assert await client.pull("mail") == []
        assert await client.ack(leased) == [SettleOutcome.DONE]


async def test_dead_letters_and_their_retry_outlive_the_process(tmp_path: Path) -> None:
    """A retried job is retried once, whatever stops in between. Predecessors: retries of dead
    letters were lost at a restart.
    """
    clock = ManualClock()
    options = JobOptions(max_attempts=1)
    async with a_life(tmp_path, clock) as client:
        pushed = await client.push("mail", b"x", options=options)
        (leased,) = await client.pull("mail")
        await client.fail(leased, "broken")
    async with a_life(tmp_path, clock) as client:
        dead = await client.jobs.get(pushed.id)
        assert dead.state is JobState.DEAD
        assert int(dead.reason) == EndReason.MAX_ATTEMPTS_EXCEEDED
        assert (await client.jobs.retry(pushed.id)).count == 1
    async with a_life(tmp_path, clock) as client:
        counts = (await client.queues.get("mail")).counts
        assert (counts.ready, counts.dead) == (1, 0)
        assert (await client.jobs.retry(pushed.id)).count == 0
        (again,) = await client.pull("mail", max_jobs=5)
        assert again.delivery > leased.delivery


async def test_order_and_priority_outlive_the_process(tmp_path: Path) -> None:
    """Lanes are built again in the order in which jobs became ready."""
    clock = ManualClock()
    async with a_life(tmp_path, clock) as client:
        lot = await client.push_payloads("mail", [b"a", b"b", b"c"])
        rows = await client.push_many(
            "mail", [NewJob(b"r", options=JobOptions(priority=priority)) for priority in (0, 9)]
        )
        (first,) = await client.pull("mail")
        await client.release(first)
    async with a_life(tmp_path, clock) as client:
        order = [job.id for job in await client.pull("mail", max_jobs=10)]
    plain = list(lot.ids)
    assert first.id == rows[1].id
    assert order == [rows[1].id, *plain, rows[0].id]


async def test_a_process_that_starts_again_waits_for_its_port(tmp_path: Path) -> None:
    """Another process may be given it meanwhile, where ports are drawn."""
    server = ServerProcess(tmp_path / "data")
    await server.start()
    address = server.address
    assert await server.terminate() == 0
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        host, _, port = address.rpartition(":")
        other.bind((host, int(port)))
        other.listen()
        starting = asyncio.create_task(server.start())
        while "address already in use" not in server.log.read_text():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        assert not starting.done()
    await starting
    assert server.address == address
    await server.kill()

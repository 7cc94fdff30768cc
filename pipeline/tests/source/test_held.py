"""Held jobs, where the driver stops between two steps of its commit."""

from __future__ import annotations

import asyncio

from jobline import AsyncClient, Client
from jobline_pipeline.source import held
from jobline_pipeline.source.lots import Lot, Rows
from jobline_pipeline.source.options import Server as Target
from jobline_pipeline.source.options import writing
from jobline_pipeline.source.pushing import Pusher
from tests.source.conftest import Server

HOW = writing({"queue": "any", "atomic": "true"})


async def push(server: Server, queue: str, run: str, attempt: str, payload: bytes) -> int:
    """Pushes a job as a task of one try of a run; returns its batch."""
    target = Target(server.address, 30, {})
    async with AsyncClient(server.address) as client:
        pusher = Pusher(client, target, HOW, Rows("payload", ()))
        return await held.push_held(client, pusher, iter([Lot(queue, [payload])]), run, attempt)


async def decide(server: Server, run: str, attempt: str, batch_id: int) -> None:
    """Commits up to the decision, as a driver does that is killed then."""
    async with AsyncClient(server.address) as client:
        await client.batches.close(batch_id)
        await held._decide(client, Target(server.address, 30, {}), run, attempt)


def states(client: Client, queue: str) -> dict[bytes, str]:
    """Returns the state of each payload."""
    jobs = client.jobs.list(queue=queue, include_payloads=True)
    return {job.payload: job.state.name for job in jobs}


def test_a_write_that_was_decided_is_completed_by_the_next_try(
    shared_server: Server, client: Client
) -> None:
    """The jobs of the first try are released; the second pushes nothing."""
    queue, run = "held-decided", "run-decided"
    first = asyncio.run(push(shared_server, queue, run, "one", b"1"))
    asyncio.run(decide(shared_server, run, "one", first))
    assert asyncio.run(push(shared_server, queue, run, "two", b"2")) == 0
    asyncio.run(held.commit(Target(shared_server.address, 30, {}), run, "two", []))
    assert states(client, queue) == {b"1": "READY"}


def test_a_task_that_pushed_beside_the_decided_try_is_dropped(
    shared_server: Server, client: Client
) -> None:
    """Two drivers write the same run: one of them wins, whole."""
    queue, run = "held-beside", "run-beside"
    first = asyncio.run(push(shared_server, queue, run, "one", b"1"))
    second = asyncio.run(push(shared_server, queue, run, "two", b"2"))
    asyncio.run(decide(shared_server, run, "one", first))
    asyncio.run(held.commit(Target(shared_server.address, 30, {}), run, "two", [second]))
    assert states(client, queue) == {b"1": "READY", b"2": "CANCELLED"}


def test_what_no_task_that_counts_has_pushed_is_dropped(
    shared_server: Server, client: Client
) -> None:
    """A task that failed after its pushes, and a first try that was never decided."""
    queue, run = "held-failed", "run-failed"
    for attempt, payload in (("one", b"1"), ("two", b"2")):
        asyncio.run(push(shared_server, queue, run, attempt, payload))
    counts = asyncio.run(push(shared_server, queue, run, "two", b"3"))
    asyncio.run(held.commit(Target(shared_server.address, 30, {}), run, "two", [counts]))
    asyncio.run(held.commit(Target(shared_server.address, 30, {}), run, "two", [counts]))
    assert states(client, queue) == {b"1": "CANCELLED", b"2": "CANCELLED", b"3": "READY"}

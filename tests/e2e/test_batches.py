"""Batches by the clients, on a real server."""

from __future__ import annotations

import asyncio

import pytest

from jobline import (
    AsyncClient,
    BatchCallback,
    BatchComplete,
    BatchNotFound,
    BatchState,
    Client,
    JobFilter,
    JobOptions,
    WaitTimeout,
)
from jobline_server.testing import RunningServer


async def done(client: AsyncClient, queue: str) -> None:
    """All that waits in a queue completes."""
    while jobs := await client.pull(queue, max_jobs=100):
        await client.ack(*jobs)


async def test_a_batch_from_its_creation_to_its_end(client: AsyncClient) -> None:
    after = BatchCallback(queue="after", payload={"a": 1}, options=JobOptions(priority=3))
    async with await client.batches.create("import", tags=["t"], on_complete=after) as batch:
        await batch.push("a", {"n": 1})
        await batch.push_many("b", [1, 2])
        await batch.push_payloads("c", [b"x"] * 3)
    found = await batch.get()
    assert (found.state, found.total, found.pending) == (BatchState.CLOSED, 6, 6)
    assert found.closed_at is not None
    members = [job async for job in client.jobs.list(JobFilter(batch_id=batch.id))]
    assert {job.options.batch_id for job in members} == {batch.id}
    assert len(members) == 6
    with pytest.raises(WaitTimeout):
        await batch.wait(timeout=0)
    for queue in "abc":
        await done(client, queue)
    assert (await batch.wait()).done == 6
    (job,) = await client.pull("after", wait=20)
    assert (job.value(), job.options.priority) == ({"a": 1}, 3)
    assert job.headers["jobline-batch"] == str(batch.id)
    with pytest.raises(BatchComplete):
        await batch.push("a")
    with pytest.raises(BatchNotFound):
        await client.batches.get(5)


async def test_batch_stays_open_if_its_block_raises(client: AsyncClient) -> None:
    """It is not complete then, and somebody may cancel it."""
    batch = await client.batches.create()

    async def fill() -> None:
        async with batch:
            await batch.push("a")
            raise KeyError

    with pytest.raises(KeyError):
        await fill()
    assert (await batch.get()).state is BatchState.OPEN
    cancelled = await client.batches.cancel(batch.id, reason="broken")
    assert (cancelled.cancelled, cancelled.requested) == (1, 0)
    assert (await batch.wait()).cancelled == 1


async def test_batches_are_listed(client: AsyncClient) -> None:
    outer = await client.batches.create("outer")
    inner = [await client.batches.create("inner", parent=outer.id) for _ in range(3)]
    await inner[0].close()
    found = client.batches.list(parent=outer.id, state="open", page_size=1)
    assert [one.id async for one in found] == sorted(one.id for one in inner[1:])
    assert [one.id async for one in client.batches.list(name="outer")] == [outer.id]


async def test_the_blocking_client_has_the_same(server: RunningServer) -> None:
    def use() -> None:
        with Client(server.address) as client:
            with client.batches.create() as batch:
                batch.push("a")
            assert batch.cancel().cancelled == 1
            assert batch.wait().state is BatchState.COMPLETE

    await asyncio.to_thread(use)

"""Batches over a real socket: counts, callbacks, members in other shards, cancels, restarts."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from grpc import aio

from jobline.v1 import (
    batch_service_pb2 as pb,
)
from jobline.v1 import (
    batch_service_pb2_grpc,
    event_pb2,
    job_admin_service_pb2,
    job_admin_service_pb2_grpc,
    job_pb2,
    job_service_pb2,
    job_service_pb2_grpc,
)
from jobline_server.testing import running_server
from tests.server.conftest import connect

QUEUES = [f"q{number}" for number in range(12)]


class Batches:
    """Short words for the calls of these tests."""

    def __init__(self, channel: aio.Channel) -> None:
        self.batches = batch_service_pb2_grpc.BatchServiceStub(channel)
        self.jobs = job_service_pb2_grpc.JobServiceStub(channel)
        self.admin = job_admin_service_pb2_grpc.JobAdminServiceStub(channel)

    async def create(self, **fields) -> int:
        names = ("on_success", "on_complete", "on_first_death")
        for name in names:
            if isinstance(fields.get(name), str):
                fields[name] = pb.BatchCallback(queue=fields[name], text=name)
        return (await self.batches.CreateBatch(pb.CreateBatchRequest(**fields))).batch.id

    async def push(self, batch_id: int, queue: str, count: int = 1, **options) -> list[int]:
        reply = await self.jobs.Push(
            job_service_pb2.PushRequest(
                queue=queue,
                payloads=[b"x"] * count,
                options=job_pb2.JobOptions(batch_id=batch_id, **options),
            )
        )
        return list(range(reply.first_id, reply.first_id + count))

    async def pull(self, queue: str, most: int = 1_000) -> list[job_pb2.LeasedJob]:
        request = job_service_pb2.PullRequest(
            queues=[job_service_pb2.QueueWeight(queue=queue)], max_jobs=most, worker="w"
        )
        return list((await self.jobs.Pull(request)).jobs)

    async def called(self, *queues: str) -> list[str]:
        """The payloads of one callback of each queue, once they are on disk."""
        found = []
        for queue in queues:
            request = job_service_pb2.PullRequest(
                queues=[job_service_pb2.QueueWeight(queue=queue)],
                max_jobs=100,
                worker="w",
                wait=Duration(seconds=20),
            )
            (job,) = (await self.jobs.Pull(request)).jobs
            found.append(job.payload.decode())
        return found

    async def ack(self, jobs) -> None:
        request = job_service_pb2.AckRequest(
            ids=[job.id for job in jobs], deliveries=[job.delivery for job in jobs]
        )
        await self.jobs.Ack(request)

    async def die(self, jobs) -> None:
        dead = job_service_pb2.FAIL_ACTION_DEAD
        items = [
            job_service_pb2.FailItem(id=job.id, delivery=job.delivery, then=dead) for job in jobs
        ]
        await self.jobs.Fail(job_service_pb2.FailRequest(items=items))

    async def close(self, batch_id: int) -> pb.Batch:
        return (await self.batches.CloseBatch(pb.CloseBatchRequest(id=batch_id))).batch

    async def get(self, batch_id: int) -> pb.Batch:
        return (await self.batches.GetBatch(pb.GetBatchRequest(id=batch_id))).batch

    async def until(self, batch_id: int, condition) -> pb.Batch:
        """The batch, once counts that other shards have sent make the condition hold."""
        while True:
            batch = await self.get(batch_id)
            if condition(batch):
                return batch


@pytest.fixture
def calls(channel: aio.Channel) -> Batches:
    return Batches(channel)


def is_complete(batch: pb.Batch) -> bool:
    return batch.state == pb.BATCH_STATE_COMPLETE


async def test_members_of_many_queues_are_counted_and_callbacks_pushed(calls: Batches) -> None:
    batch = await calls.create(name="import", on_success="then", on_complete="always")
    for queue in QUEUES:
        await calls.push(batch, queue, 10)
    assert (await calls.close(batch)).total == 120
    assert await calls.pull("then") == []
    for queue in QUEUES:
        await calls.ack(await calls.pull(queue))
    found = await calls.until(batch, is_complete)
    assert (found.done, found.dead, found.success_called) == (120, 0, True)
    assert await calls.called("then", "always") == ["on_success", "on_complete"]
    assert not found.first_death_called


async def test_death_is_called_once_and_a_retried_member_counts_anew(calls: Batches) -> None:
    batch = await calls.create(on_first_death="death", on_complete="always", on_success="then")
    await calls.push(batch, "q1", 3)
    await calls.close(batch)
    await calls.die(await calls.pull("q1"))
    found = await calls.until(batch, is_complete)
    assert (found.dead, found.total) == (3, 3)
    assert await calls.called("death", "always") == ["on_first_death", "on_complete"]
    retry = job_admin_service_pb2.RetryJobsRequest(
        jobs=job_admin_service_pb2.JobSelection(
            filter=job_admin_service_pb2.JobFilter(batch_id=batch)
        )
    )
    assert (await calls.admin.RetryJobs(retry)).count == 3
    found = await calls.until(batch, lambda one: not one.dead)
    assert found.state == pb.BATCH_STATE_CLOSED
    await calls.ack(await calls.pull("q1"))
    found = await calls.until(batch, is_complete)
    assert (found.done, found.dead) == (3, 0)
    assert await calls.called("then") == ["on_success"]
    assert await calls.pull("death") == await calls.pull("always") == []


async def test_running_member_pushes_more_into_a_closed_batch(calls: Batches) -> None:
    batch = await calls.create()
    await calls.push(batch, "q1")
    await calls.close(batch)
    running = await calls.pull("q1")
    await calls.push(batch, "q2", 5)
    await calls.ack(running)
    assert not is_complete(await calls.get(batch))
    await calls.ack(await calls.pull("q2"))
    assert (await calls.until(batch, is_complete)).done == 6
    with pytest.raises(aio.AioRpcError) as caught:
        await calls.push(batch, "q2")
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_repeated_push_of_a_complete_batch_returns_its_jobs(calls: Batches) -> None:
    """A duplicate is no new member, so nothing is refused."""
    batch = await calls.create()
    request = job_service_pb2.PushRequest(
        queue="q3",
        jobs=[job_pb2.NewJob(job_key="once")],
        options=job_pb2.JobOptions(batch_id=batch),
    )
    first = (await calls.jobs.Push(request)).first_id
    await calls.jobs.Push(request)
    await calls.close(batch)
    await calls.ack(await calls.pull("q3"))
    assert (await calls.until(batch, is_complete)).total == 1
    again = await calls.jobs.Push(request)
    assert [one.id for one in again.exceptions] == [first]


async def test_cancel_reaches_nested_batches_and_callbacks_come(calls: Batches) -> None:
    outer = await calls.create(on_complete="always")
    inner = await calls.create(parent_id=outer)
    for queue in QUEUES:
        await calls.push(outer, queue, 3)
        await calls.push(inner, queue, 2)
    running = await calls.pull("q0", 1)
    request = pb.CancelBatchRequest(id=outer, dry_run=True)
    reply = await calls.batches.CancelBatch(request)
    assert (reply.cancelled, reply.requested) == (59, 1)
    request = pb.CancelBatchRequest(id=outer, reason="wrong file")
    reply = await calls.batches.CancelBatch(request)
    assert (reply.cancelled, reply.requested, reply.batch.cancel_reason) == (59, 1, "wrong file")
    assert is_complete(await calls.until(inner, is_complete))
    await calls.ack(running)
    found = await calls.until(outer, is_complete)
    assert (found.total, found.cancelled) == (37, 37)
    assert await calls.called("always") == ["on_complete"]


async def test_list_pages_and_filters(calls: Batches) -> None:
    made = [await calls.create(name=f"n{at % 2}", tags=["t"]) for at in range(5)]
    await calls.close(made[0])
    seen: list[int] = []
    token = ""
    while True:
        request = pb.ListBatchesRequest(page_size=2, page_token=token, tags=["t"])
        reply = await calls.batches.ListBatches(request)
        seen += [one.id for one in reply.batches]
        token = reply.next_page_token
        if not token:
            break
    assert seen == sorted(made)
    request = pb.ListBatchesRequest(name="n0", states=[pb.BATCH_STATE_OPEN])
    reply = await calls.batches.ListBatches(request)
    assert [one.id for one in reply.batches] == sorted(made[2::2])


async def test_same_request_creates_one_batch(calls: Batches) -> None:
    first = await calls.create(request_id="r", name="a")
    assert await calls.create(request_id="r", name="a") == first
    with pytest.raises(aio.AioRpcError) as caught:
        await calls.create(request_id="r", name="b")
    assert caught.value.code() is grpc.StatusCode.ALREADY_EXISTS


async def test_watchers_hear_of_the_end_of_a_batch(calls: Batches) -> None:
    watch = calls.jobs.Watch(
        job_service_pb2.WatchRequest(kinds=[event_pb2.EVENT_KIND_BATCH_COMPLETED])
    )
    replies = aiter(watch)
    await anext(replies)
    batch = await calls.create(name="import")
    await calls.close(batch)
    events: list[event_pb2.Event] = []
    while not events:
        events += (await anext(replies)).events
    assert [(one.batch_id, one.name) for one in events] == [(batch, "import")]
    watch.cancel()


async def test_batches_survive_a_restart(tmp_path) -> None:
    """With their counts, and what was not decided then is decided once."""
    async with running_server(tmp_path) as server, connect(server.address) as channel:
        calls = Batches(channel)
        batch = await calls.create(on_complete="always", on_success="then", tags=["t"])
        inner = await calls.create(parent_id=batch)
        for queue in QUEUES:
            await calls.push(batch, queue, 2)
        await calls.close(batch)
        await calls.ack(await calls.pull("q0"))
        before = await calls.until(batch, lambda one: one.done == 2)
    async with running_server(tmp_path) as server, connect(server.address) as channel:
        calls = Batches(channel)
        assert await calls.get(batch) == before
        for queue in QUEUES[1:]:
            await calls.ack(await calls.pull(queue))
        await calls.close(inner)
        found = await calls.until(batch, is_complete)
        assert (found.total, found.done) == (25, 25)
        assert await calls.called("then", "always") == ["on_success", "on_complete"]

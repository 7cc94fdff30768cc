"""Both clients on the real server, on both transports: work by hand, wait, watch, operate."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from functools import partial
from typing import Any

import grpc
import pytest

from jobline import (
    AckLevel,
    EventKind,
    FailAction,
    IdempotencyMismatch,
    InvalidArgument,
    JobCancelled,
    JobDead,
    JobFilter,
    JobNotFound,
    JobOptions,
    JobState,
    LeaseReason,
    OffsetGone,
    QueueNotFound,
    QueueSettings,
    QueueWeight,
    SettleOutcome,
    TooLarge,
    WaitTimeout,
    error_from_rpc,
)
from jobline.v1 import job_pb2
from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from tests.client.live.either import in_thread

DONE = SettleOutcome.DONE
UNKNOWN = 7 << 40  # an id that no job of these tests has


@pytest.fixture
def queue():
    """A queue of this test's own."""
    return f"q-{uuid.uuid4().hex[:12]}"


async def test_a_job_is_pulled_and_acked(client, queue):
    """Its payload and everything it was pushed with arrive; its result is kept."""
    options = JobOptions(name="n", headers={"a": "b"}, priority=2)
    pushed = await client("push", queue, {"x": 1}, options=options, job_key="k")
    assert pushed.ack_level is AckLevel.FSYNCED
    (job,) = await client("pull", queue, wait=5, lease=60, worker="w", names=["n"])
    assert (job.id, job.queue, job.name, job.attempt) == (pushed.id, queue, "n", 1)
    assert (job.value(), job.json(), job.headers, job.job_key) == (
        {"x": 1},
        {"x": 1},
        {"a": "b"},
        "k",
    )
    assert (job.reason, job.lease.total_seconds()) == (LeaseReason.FIRST, 60)
    assert job.pushed_at is not None
    assert await client("ack", job, result={"y": 2}) == [DONE]
    assert await client("ack", (job.id, job.delivery), result={"y": 2}) == [
        SettleOutcome.ALREADY_DONE
    ]
    end = await client("wait_one", job.id, timeout=5)
    assert (end.ok, end.value()) == (True, {"y": 2})


async def test_a_lot_is_pulled_as_runs_and_acked_at_once(client, queue):
    """Plain jobs travel as columns both ways."""
    lot = await client("push_payloads", queue, [b"%d" % n for n in range(50)])
    jobs = await client("pull", QueueWeight(queue, 2), max_jobs=100)
    assert [job.id for job in jobs] == list(lot.ids)
    assert [job.payload for job in jobs] == [b"%d" % n for n in range(50)]
    assert await client("ack", *jobs) == [DONE] * 50
    assert await client("pull", queue) == []


async def test_failing_releasing_and_extending(client, queue):
    """What becomes of a job is told at once."""
    first, second = [entry.id for entry in await client("push_many", queue, [b"1", b"2"])]
    jobs = {job.id: job for job in await client("pull", queue, max_jobs=2)}
    assert await client("extend", *jobs.values(), progress=50, checkpoint={"at": 1}) == [DONE, DONE]
    failed = await client("fail", jobs[first], ValueError("no"), retry_after=3600)
    assert (failed.outcome, failed.state) == (DONE, JobState.SCHEDULED)
    assert failed.run_at is not None
    assert await client("release", jobs[second]) == [DONE]
    (again,) = await client("pull", queue)
    assert (again.id, again.reason, again.checkpoint) == (second, LeaseReason.RELEASED, b'{"at":1}')
    assert await client("ack", jobs[second]) == [SettleOutcome.LEASE_LOST]
    dead = await client("fail", again, "hopeless", then=FailAction.DEAD)
    assert dead.state is JobState.DEAD
    job = await client("jobs.get", first)
    assert (job.error.type, job.error.message) == ("ValueError", "no")


async def test_waiting_tells_every_way_of_ending(client, queue):
    """Each with an error of its own, and a job that is not there too."""
    ids = [entry.id for entry in await client("push_many", queue, [b"1", b"2", b"3"])]
    jobs = await client("pull", queue, max_jobs=3)
    await client("ack", jobs[0], result=b"\x00raw")
    await client("fail", jobs[1], "no", then=FailAction.DEAD)
    await client("fail", jobs[2], then=FailAction.CANCEL)
    ends = {end.id: end for end in await client("wait", *ids, UNKNOWN, timeout=5)}
    assert ends[ids[0]].value() == b"\x00raw"
    with pytest.raises(JobDead, match="explicit_fail"):
        ends[ids[1]].value()
    with pytest.raises(JobCancelled):
        ends[ids[2]].value()
    with pytest.raises(JobNotFound):
        ends[UNKNOWN].value()


async def test_waiting_ends_with_its_time(client, queue):
    """The error has the id, to wait for again."""
    pushed = await client("push", queue, b"")
    with pytest.raises(WaitTimeout) as caught:
        await client("push_and_wait", queue, b"", timeout=0.05)
    assert caught.value.id == pushed.id + 1
    assert await client("wait", pushed.id, timeout=0) == []


async def test_watching_tells_what_happens_and_resumes(client, queue):
    """Each event has a token; what came after it is told again."""
    watching = asyncio.create_task(
        client.first("watch", 2, queues=[queue], kinds=[EventKind.PUSHED, EventKind.COMPLETED])
    )
    seen = []
    while not watching.done():
        seen.append((await client("push", queue, b"")).id)
    first, second = watching.result()
    assert first.event.kind == second.event.kind == EventKind.PUSHED
    (again,) = await client.first(
        "watch", 1, queues=[queue], kinds=[EventKind.PUSHED], resume_token=first.resume_token
    )
    assert again.event.job_id in seen
    with pytest.raises((OffsetGone, InvalidArgument)):
        await client.first("watch", 1, resume_token="nonsense")


async def test_refusals_name_their_field(client, queue):
    """Syntax, existence, keys, and what is not served yet."""
    with pytest.raises(InvalidArgument) as caught:
        await client("push", "no spaces", b"")
    assert (caught.value.field, caught.value.reason) == ("queue", "INVALID_FIELD")
    with pytest.raises(InvalidArgument, match="lease"):
        await client("push", queue, b"", options=JobOptions(lease=0.5))
    with pytest.raises(QueueNotFound):
        await client("queues.get", queue)
    with pytest.raises(JobNotFound):
        await client("jobs.get", UNKNOWN)
    await client("push", queue, b"1", job_key="k")
    with pytest.raises(IdempotencyMismatch):
        await client("push", queue, b"2", job_key="k")


async def test_one_bad_push_does_not_cost_the_others_theirs(client, queue):
    """A payload that is too large is refused alone, whatever it travelled with."""
    pushes = [b"1", b"x" * ((10 << 20) + 1), b"3"]
    results = await asyncio.gather(
        *(client("push", queue, payload) for payload in pushes), return_exceptions=True
    )
    assert [isinstance(result, Exception) for result in results] == [False, True, False]
    assert isinstance(results[1], TooLarge)


async def test_operators_see_and_change_jobs(client, queue):
    """By id or by filter, with counts before anything is done."""
    ids = [entry.id for entry in await client("push_many", queue, [b"1", b"2", b"3"], delay=3600)]
    where = JobFilter(queue=queue)
    assert (await client("jobs.promote", where, dry_run=True)).count == 3
    assert (await client("jobs.promote", ids[0])).count == 1
    explained = await client("jobs.explain", ids[1])
    assert explained.state is JobState.SCHEDULED
    assert (await client("jobs.cancel", ids[1], reason="test")).count == 1
    assert (await client("jobs.retry", ids[1])).count == 1
    assert (await client("jobs.delete", ids[2])).count == 1
    listed = await client("jobs.list", where, page_size=1, include_payloads=True)
    assert [(job.id, job.payload) for job in listed] == [(ids[0], b"1"), (ids[1], b"2")]
    page = await client("jobs.list_page", where, page_size=1)
    assert page.next_page_token
    await client("push", queue, b"4", job_key="k")
    assert (await client("jobs.get_by_key", queue, "k")).payload == b"4"


async def test_operators_see_and_change_queues(client, queue):
    """Settings, pause, drain, clean, delete."""
    changed = await client("queues.update", queue, max_attempts=7, lease="1m")
    assert changed.settings == QueueSettings(max_attempts=7, lease=timedelta(minutes=1))
    changed = await client("queues.update", queue, lease=None)
    assert changed.settings == QueueSettings(max_attempts=7)
    changed = await client("queues.update", queue, QueueSettings(max_waiting=9))
    assert changed.settings == QueueSettings(max_waiting=9)
    assert (await client("queues.pause", queue, reason="test")).paused
    assert not (await client("queues.resume", queue)).paused
    await client("push_many", queue, [b"1", b"2"])
    assert (await client("queues.get", queue)).counts.ready == 2
    for order in ("name", "activity desc"):
        listed = await client("queues.list", queue[:4], order_by=order, page_size=2)
        assert queue in [entry.name for entry in listed]
    assert (await client("queues.drain", queue, dry_run=True)).count == 2
    assert (await client("queues.drain", queue)).count == 2
    await client("queues.clean", queue, state="completed", older="1m")
    assert (await client("queues.delete", queue)).count >= 0


async def test_operators_see_dead_jobs_and_the_server(client, queue):
    """Counts, lists, and who is connected."""
    await client("push", queue, b"1")
    (job,) = await client("pull", queue)
    await client("fail", job, "no", then=FailAction.DEAD)
    stats = await client("dead.stats", queue)
    assert stats.total == 1
    dead = await client("dead.list", include_payloads=True, page_size=1)
    assert job.id in [entry.id for entry in dead]
    assert (await client("dead.list_page")).jobs
    assert (await client("dead.purge", everything=True, dry_run=True)).count >= 1
    assert (await client("admin.stats")).version
    assert await client("admin.workers", queue) == []


async def test_the_channel_serves_bare_stubs(client, queue):
    """What the client does not offer is one line away."""
    stub = JobServiceStub(client.client.channel)
    request = pb.PushRequest(queue=queue, options=job_pb2.JobOptions(webhook="u"), payloads=[b""])
    push: Any = stub.Push
    call = push if client.is_async else partial(in_thread, push)
    with pytest.raises(grpc.RpcError) as caught:
        await call(request)
    error = error_from_rpc(caught.value)
    assert isinstance(error, InvalidArgument)
    assert error.field == "options.webhook"

"""Children that a running job adds to itself, over a real socket."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc import aio

from jobline.v1 import event_pb2, job_admin_service_pb2, job_pb2, job_service_pb2
from jobline.v1 import flow_service_pb2 as pb
from jobline_server.rpc.errors import DETAILS_KEY
from jobline_server.testing import running_server
from tests.server.conftest import connect
from tests.server.http_calls import call_json, client_of, post, refusal_of
from tests.server.test_flows import BLOCKED, COMPLETED, DEAD, QUEUES, READY, Flows, job, shown

NOWHERE = 987_654_321


@pytest.fixture
def calls(channel: aio.Channel) -> Flows:
    return Flows(channel)


async def running(calls: Flows, queue: str = "parents", **options) -> job_pb2.LeasedJob:
    """A job that a worker has."""
    await calls.push(job(queue, **options))
    return await calls.pull(queue)


async def add(
    calls: Flows, parent: job_pb2.LeasedJob, *jobs: pb.FlowJob, request_id: str = ""
) -> list[int]:
    lease = pb.FlowParent(id=parent.id, delivery=parent.delivery)
    request = pb.PushFlowRequest(jobs=jobs, request_id=request_id, parent=lease)
    return list((await calls.flows.PushFlow(request)).ids)


def reason_of(error: aio.AioRpcError) -> str:
    """The reason among the details of a refusal."""
    details = dict(error.trailing_metadata() or ())[DETAILS_KEY]
    info = error_details_pb2.ErrorInfo()
    status_pb2.Status.FromString(details).details[0].Unpack(info)
    return str(info.reason)


async def refused(calls: Flows, parent: job_pb2.LeasedJob, *jobs: pb.FlowJob) -> str:
    before = await calls.count()
    with pytest.raises(aio.AioRpcError) as error:
        await add(calls, parent, *jobs)
    assert error.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert await calls.count() == before
    return reason_of(error.value)


async def test_g26_running_job_waits_for_a_flow_below_it(calls: Flows) -> None:
    """Its roots, in any shards, are its children; those below them are theirs."""
    parent = await running(calls)
    ids = await add(calls, parent, *[job(queue, 12) for queue in QUEUES], job("below"))
    *roots, leaf = ids
    flow = (await calls.get(parent.id, max_depth=1)).jobs
    assert (flow[0].state, list(flow[0].children)) == (BLOCKED, roots)
    assert await calls.done("below") == leaf
    for queue in QUEUES:
        assert (await calls.get(parent.id, max_depth=0)).jobs[0].state == BLOCKED
        await calls.done(queue, queue.encode())
    again = await calls.pull("parents")
    assert (again.id, again.attempt) == (parent.id, 1)
    assert again.reason == job_pb2.LEASE_REASON_CHILDREN_ENDED
    assert again.delivery > parent.delivery
    more = await add(calls, again, job("q3"))
    await calls.done("q3")
    assert await calls.done("parents") == parent.id
    found = await calls.get(parent.id, max_depth=1, include_results=True)
    assert list(found.jobs[0].children) == [*roots, *more]
    assert [one.result.decode() for one in found.jobs[1:]] == [*QUEUES, ""]
    assert {one.state for one in found.jobs} == {COMPLETED}


async def test_stale_lease_is_refused(calls: Flows) -> None:
    parent = await running(calls)
    for id_, delivery in (
        (parent.id, parent.delivery - 1),
        (NOWHERE, parent.delivery),
        (2**64 - 1, parent.delivery),
    ):
        wrong = job_pb2.LeasedJob(id=id_, delivery=delivery)
        assert await refused(calls, wrong, job("q0")) == "LEASE_LOST"
    await add(calls, parent, job("q0"))
    assert await refused(calls, parent, job("q0")) == "LEASE_LOST"
    item = job_service_pb2.AckItem(id=parent.id, delivery=parent.delivery)
    reply = await calls.jobs.Ack(job_service_pb2.AckRequest(items=[item]))
    assert [one.outcome for one in reply.exceptions] == [job_service_pb2.SETTLE_OUTCOME_LEASE_LOST]


async def test_cancelled_job_is_settled_first(calls: Flows) -> None:
    parent = await running(calls)
    which = job_admin_service_pb2.JobSelection(ids=[parent.id])
    await calls.admin.CancelJobs(job_admin_service_pb2.CancelJobsRequest(jobs=which))
    assert await refused(calls, parent, job("q0")) == "WRONG_STATE"


async def test_same_call_returns_the_same_ids_also_after_the_parent_went_on(calls: Flows) -> None:
    """The answer that is known comes before a look at the lease."""
    parent = await running(calls)
    jobs = [job("q0"), job("q1")]
    ids = await add(calls, parent, *jobs, request_id="r")
    assert await add(calls, parent, *jobs, request_id="r") == ids
    await calls.done("q0")
    await calls.done("q1")
    assert await calls.done("parents") == parent.id
    assert await add(calls, parent, *jobs, request_id="r") == ids
    other = job_pb2.LeasedJob(id=parent.id, delivery=parent.delivery + 1)
    with pytest.raises(aio.AioRpcError) as error:
        await add(calls, other, *jobs, request_id="r")
    assert reason_of(error.value) == "IDEMPOTENCY_MISMATCH"
    assert await calls.count() == 3


async def test_parent_ends_with_a_child_that_fails(calls: Flows) -> None:
    parent = await running(calls)
    await add(calls, parent, job("q0"), job("q1"))
    leased = await calls.pull("q1")
    item = job_service_pb2.FailItem(
        id=leased.id, delivery=leased.delivery, then=job_service_pb2.FAIL_ACTION_DEAD
    )
    await calls.jobs.Fail(job_service_pb2.FailRequest(items=[item]))
    async for _ in calls.jobs.Wait(job_service_pb2.WaitRequest(ids=[parent.id])):
        pass
    found = (await calls.get(parent.id)).jobs
    assert (found[0].state, found[0].reason) == (DEAD, job_pb2.END_REASON_DEPENDENCY_FAILED)
    assert found[1].state == READY


async def test_blocked_parent_survives_a_restart(tmp_path) -> None:
    """G26: and so does the known answer, in the same transaction."""
    async with running_server(tmp_path) as server, connect(server.address) as channel:
        calls = Flows(channel)
        parent = await running(calls)
        extend = job_service_pb2.ExtendItem(
            id=parent.id, delivery=parent.delivery, checkpoint=b"half"
        )
        await calls.jobs.Extend(job_service_pb2.ExtendRequest(items=[extend]))
        ids = await add(calls, parent, job("q0"), job("q5"), request_id="r")
        await calls.done("q0", b"zero")
    async with running_server(tmp_path) as server, connect(server.address) as channel:
        calls = Flows(channel)
        assert await add(calls, parent, job("q0"), job("q5"), request_id="r") == ids
        assert shown(await calls.get(parent.id))[0] == (parent.id, "parents", BLOCKED, ids)
        await calls.done("q5")
        again = await calls.pull("parents")
        assert (again.id, again.attempt, again.checkpoint) == (parent.id, 1, b"half")


async def test_why_it_is_not_running(calls: Flows) -> None:
    parent = await running(calls)
    one, _ = await add(calls, parent, job("q0"), job("q1"))
    await calls.done("q1")
    request = job_admin_service_pb2.ExplainJobRequest(id=parent.id)
    [obstacle] = (await calls.admin.ExplainJob(request)).obstacles
    assert obstacle.message == f"it waits for 1 of the 2 jobs that it depends on: {one}"


async def test_refused_part_keeps_the_lease(calls: Flows) -> None:
    """What is refused is refused before the lease ends."""
    parent = await running(calls)
    with pytest.raises(aio.AioRpcError):
        await add(calls, parent, job("q0"), job("q0", limiters=["nowhere"]))
    with pytest.raises(aio.AioRpcError) as error:
        await add(calls, parent, *[job("q0")] * 1_001)
    assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    item = job_service_pb2.AckItem(id=parent.id, delivery=parent.delivery)
    reply = await calls.jobs.Ack(job_service_pb2.AckRequest(items=[item]))
    assert not reply.exceptions
    assert await calls.count() == 1


async def test_watchers_see_it_blocked_and_unblocked(calls: Flows) -> None:
    [id_] = await calls.push(job("parents"))
    watch = calls.jobs.Watch(job_service_pb2.WatchRequest(job_id=id_))
    await watch.read()
    await add(calls, await calls.pull("parents"), job("q0"))
    await calls.done("q0")
    await calls.done("parents")
    events: list[Any] = []
    async with asyncio.timeout(20):
        while not events or events[-1].kind != event_pb2.EVENT_KIND_FLOW_COMPLETED:
            answer: Any = await watch.read()
            events += answer.events
    watch.cancel()
    assert [one.kind for one in events][-6:] == [
        event_pb2.EVENT_KIND_LEASED,
        event_pb2.EVENT_KIND_BLOCKED,
        event_pb2.EVENT_KIND_UNBLOCKED,
        event_pb2.EVENT_KIND_LEASED,
        event_pb2.EVENT_KIND_COMPLETED,
        event_pb2.EVENT_KIND_FLOW_COMPLETED,
    ]
    blocked = events[-5]
    assert (blocked.state_before, blocked.state) == (job_pb2.JOB_STATE_ACTIVE, BLOCKED)
    assert (blocked.job_id, blocked.queue, blocked.worker) == (id_, "parents", "w")


async def test_it_is_a_call_over_http() -> None:
    async with (
        running_server() as server,
        connect(server.address) as channel,
        client_of(server) as client,
    ):
        calls = Flows(channel)
        parent = await running(calls)
        lease = {"id": str(parent.id), "delivery": str(parent.delivery)}
        request = {"jobs": [{"queue": "q0"}], "parent": lease}
        reply = await call_json(client, "FlowService/PushFlow", request)
        assert await calls.done("q0") == int(reply["ids"][0])
        again = await post(client, "FlowService/PushFlow", json.dumps(request).encode())
        assert refusal_of(again).reason == "LEASE_LOST"

"""Flows over a real socket: stored whole, across shards, looked at, and over restarts."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from grpc import aio

from jobline.v1 import (
    flow_service_pb2 as pb,
)
from jobline.v1 import (
    flow_service_pb2_grpc,
    job_admin_service_pb2,
    job_admin_service_pb2_grpc,
    job_pb2,
    job_service_pb2,
    job_service_pb2_grpc,
    queue_service_pb2,
    queue_service_pb2_grpc,
)
from jobline_server.rpc import limits as rpc_limits
from jobline_server.runtime.queries import flows as looks
from jobline_server.testing import running_server
from tests.server.conftest import connect

QUEUES = [f"q{number}" for number in range(12)]
COMPLETED, DEAD = job_pb2.JOB_STATE_COMPLETED, job_pb2.JOB_STATE_DEAD
BLOCKED, READY = job_pb2.JOB_STATE_BLOCKED, job_pb2.JOB_STATE_READY


def job(queue: str, *children: int, text: str = "x", **options) -> pb.FlowJob:
    own = job_pb2.JobOptions(**options) if options else None
    return pb.FlowJob(queue=queue, job=job_pb2.NewJob(text=text, options=own), children=children)


class Flows:
    """Short words for the calls of these tests."""

    def __init__(self, channel: aio.Channel) -> None:
        self.flows = flow_service_pb2_grpc.FlowServiceStub(channel)
        self.jobs = job_service_pb2_grpc.JobServiceStub(channel)
        self.queues = queue_service_pb2_grpc.QueueServiceStub(channel)
        self.admin = job_admin_service_pb2_grpc.JobAdminServiceStub(channel)

    async def push(self, *jobs: pb.FlowJob, request_id: str = "") -> list[int]:
        request = pb.PushFlowRequest(jobs=jobs, request_id=request_id)
        return list((await self.flows.PushFlow(request)).ids)

    async def get(self, job_id: int, **fields) -> pb.GetFlowResponse:
        return await self.flows.GetFlow(pb.GetFlowRequest(id=job_id, **fields))

    async def pull(self, queue: str, wait: int = 20) -> job_pb2.LeasedJob:
        """The next job of a queue."""
        request = job_service_pb2.PullRequest(
            queues=[job_service_pb2.QueueWeight(queue=queue)],
            worker="w",
            wait=Duration(seconds=wait),
        )
        (leased,) = (await self.jobs.Pull(request)).jobs
        return leased

    async def done(self, queue: str, result: bytes = b"") -> int:
        """The next job of a queue completes."""
        leased = await self.pull(queue)
        item = job_service_pb2.AckItem(id=leased.id, delivery=leased.delivery, result=result)
        await self.jobs.Ack(job_service_pb2.AckRequest(items=[item]))
        return leased.id

    async def drain(self, *queues: str) -> int:
        """Jobs of these queues complete, as long as there are any; returns how many."""
        weights = [job_service_pb2.QueueWeight(queue=queue) for queue in queues]
        request = job_service_pb2.PullRequest(queues=weights, max_jobs=1_000, worker="w")
        count = 0
        while leased := (await self.jobs.Pull(request)).jobs:
            items = [job_service_pb2.AckItem(id=one.id, delivery=one.delivery) for one in leased]
            await self.jobs.Ack(job_service_pb2.AckRequest(items=items))
            count += len(leased)
        return count

    async def dies(self, queue: str) -> None:
        """The next job of a queue is dead."""
        leased = await self.pull(queue)
        item = job_service_pb2.FailItem(
            id=leased.id, delivery=leased.delivery, then=job_service_pb2.FAIL_ACTION_DEAD
        )
        await self.jobs.Fail(job_service_pb2.FailRequest(items=[item]))

    async def count(self) -> int:
        """How many jobs there are."""
        request = job_admin_service_pb2.ListJobsRequest(page_size=1_000)
        return len((await self.admin.ListJobs(request)).jobs)


@pytest.fixture
def calls(channel: aio.Channel) -> Flows:
    return Flows(channel)


def shown(flow: pb.GetFlowResponse) -> list[tuple[int, str, int, list[int]]]:
    return [(one.id, one.queue, one.state, list(one.children)) for one in flow.jobs]


async def test_flow_across_queues_and_shards_runs_from_its_leaves_to_its_root(
    calls: Flows,
) -> None:
    """G13: a parent is handed out when its last child has completed."""
    ids = await calls.push(
        job("q0", 2, 1),
        *[job(queue, 3) for queue in QUEUES[1:3]],
        job("q3", name="leaf"),
    )
    root, left, right, leaf = ids
    assert shown(await calls.get(root)) == [
        (root, "q0", BLOCKED, [right, left]),
        (right, "q2", BLOCKED, [leaf]),
        (left, "q1", BLOCKED, [leaf]),
        (leaf, "q3", READY, []),
    ]
    assert await calls.done("q3", b"3") == leaf
    assert await calls.done("q1", b"1") == left
    assert (await calls.get(root)).jobs[0].state == BLOCKED
    assert await calls.done("q2", b"22") == right
    assert await calls.done("q0") == root
    found = await calls.get(root, include_results=True)
    assert [one.state for one in found.jobs] == [COMPLETED] * 4
    assert [one.result for one in found.jobs] == [b"", b"22", b"1", b"3"]
    assert [one.result_bytes for one in (await calls.get(root)).jobs] == [0, 2, 1, 1]
    assert found.jobs[3].name == "leaf"


async def test_refused_flow_leaves_nothing(calls: Flows) -> None:
    """Also if only its last job is refused, and if its queue is full."""
    jobs = [job(queue) for queue in QUEUES]
    with pytest.raises(aio.AioRpcError) as refused:
        await calls.push(*jobs, job("q0", *range(12), group="g", priority=3))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert await calls.count() == 0


async def test_repeated_flow_returns_the_same_ids(calls: Flows) -> None:
    jobs = [job("q0", 1, 2), job("q1"), job("q2")]
    ids = await calls.push(*jobs, request_id="r")
    assert await calls.push(*jobs, request_id="r") == ids
    assert await calls.push(*jobs) != ids
    with pytest.raises(aio.AioRpcError) as refused:
        await calls.push(*jobs[:2], jobs[1], request_id="r")
    assert refused.value.code() is grpc.StatusCode.ALREADY_EXISTS


async def test_parent_ends_as_its_policy_says(calls: Flows) -> None:
    fails, ignores, _ = await calls.push(
        job("q0", 2),
        job("q1", 2, on_dependency_failure=job_pb2.DEPENDENCY_POLICY_IGNORE),
        job("q2"),
    )
    await calls.dies("q2")
    assert await calls.done("q1") == ignores
    async for _ in calls.jobs.Wait(job_service_pb2.WaitRequest(ids=[fails])):
        pass
    found = (await calls.get(fails)).jobs[0]
    assert (found.state, found.reason) == (DEAD, job_pb2.END_REASON_DEPENDENCY_FAILED)


async def test_a_child_says_what_its_parents_do_without_it(calls: Flows) -> None:
    """Each about itself alone, across shards: one is ignored, and then the other fails them."""
    children = [job("q3"), job("q4"), job("q5")]
    children[0].on_failure = job_pb2.DEPENDENCY_POLICY_IGNORE
    children[1].on_failure = job_pb2.DEPENDENCY_POLICY_CONTINUE
    ids = await calls.push(job("q0", 3, 5), job("q1", 3, 4), job("q2", 3, 4, 5), *children)
    await calls.dies("q3")
    await calls.dies("q4")
    assert {await calls.done(queue) for queue in ("q1", "q2")} == {*ids[1:3]}
    found = await calls.get(ids[2])
    assert [one.state for one in found.jobs] == [COMPLETED, DEAD, DEAD, READY]
    await calls.dies("q5")
    async for _ in calls.jobs.Wait(job_service_pb2.WaitRequest(ids=[ids[0]])):
        pass
    found = await calls.get(ids[0])
    assert (found.jobs[0].state, found.jobs[0].reason) == (
        DEAD,
        job_pb2.END_REASON_DEPENDENCY_FAILED,
    )


async def test_look_is_bounded(calls: Flows, monkeypatch: pytest.MonkeyPatch) -> None:
    """By jobs, by depth, by children and by results."""
    ids = await calls.push(job("q0", 1, 2, 3), job("q1", 4), job("q1"), job("q1"), job("q2"))
    assert not (await calls.get(ids[0])).is_cut
    for fields, count in (({"max_jobs": 3}, 3), ({"max_depth": 1}, 4), ({"max_depth": 0}, 1)):
        found = await calls.get(ids[0], **fields)
        assert (len(found.jobs), found.is_cut) == (count, True)
    monkeypatch.setattr(looks, "CHILDREN_MAX", 3)
    found = await calls.get(ids[0])
    assert (len(found.jobs), found.is_cut) == (1, True)
    monkeypatch.undo()
    monkeypatch.setattr(looks, "RESULT_BYTES_MAX", 10)
    for result in (b"123456", b"123456"):
        await calls.done("q1", result)
    results = (await calls.get(ids[0], include_results=True)).jobs[1:]
    assert sorted(one.result for one in results) == [b"", b"", b"", b"123456"]
    assert sorted(one.result_bytes for one in results) == [0, 0, 6, 6]


async def test_child_that_is_not_kept_is_shown_without_a_state(calls: Flows) -> None:
    gone = job_pb2.Retention(remove_on_complete=True)
    root, child = await calls.push(job("q0", 1), job("q1", retention=gone))
    await calls.done("q1")
    assert shown(await calls.get(root))[1:] == [(child, "q1", COMPLETED, [])]
    selection = job_admin_service_pb2.JobSelection(ids=[child])
    await calls.admin.DeleteJobs(job_admin_service_pb2.DeleteJobsRequest(jobs=selection))
    await calls.done("q0")
    assert shown(await calls.get(root)) == [(root, "q0", COMPLETED, [child]), (child, "", 0, [])]


async def test_limits_of_a_flow(calls: Flows) -> None:
    """100 in a row, and 20,000 children together."""
    chain = [job("q0", *([at + 1] if at < 99 else [])) for at in range(100)]
    assert len(await calls.push(*chain)) == 100
    with pytest.raises(aio.AioRpcError, match="in a row"):
        await calls.push(*chain[:-1], job("q0", 100), job("q0"))
    wide = [job("q0", *range(21, 1_000)) for _ in range(21)]
    with pytest.raises(aio.AioRpcError, match="together"):
        await calls.push(*wide, *[job("q0")] * 1_000)
    half = "x" * (9 << 20)
    with pytest.raises(aio.AioRpcError) as refused:
        await calls.push(job("q0", text=half), job("q1", text=half))
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert await calls.count() == 100


async def test_one_job_may_wait_for_all_others(calls: Flows) -> None:
    """Of all shards, in parts of messages between them."""
    others = [job(QUEUES[at % 12], text=str(at)) for at in range(9_999)]
    root, *ids = await calls.push(job("root", *range(1, 10_000)), *others)
    found = await calls.get(root, max_jobs=10_000)
    assert (list(found.jobs[0].children), len(found.jobs), found.is_cut) == (ids, 10_000, False)
    assert found.jobs[0].state == BLOCKED
    assert await calls.drain(*QUEUES) == 9_999
    assert await calls.done("root") == root
    found = await calls.get(root, max_jobs=10_000)
    assert {one.state for one in found.jobs} == {COMPLETED}


async def test_flows_survive_a_restart(tmp_path) -> None:
    async with running_server(tmp_path) as server, connect(server.address) as channel:
        ids = await Flows(channel).push(job("q0", 1), job("q1", 2), job("q5"), request_id="r")
        await Flows(channel).done("q5", b"five")
    async with running_server(tmp_path) as server, connect(server.address) as channel:
        again = await Flows(channel).push(job("q0", 1), job("q1", 2), job("q5"), request_id="r")
        assert again == ids
        found = await Flows(channel).get(ids[0], include_results=True)
        assert [list(one.children) for one in found.jobs] == [[ids[1]], [ids[2]], []]
        assert found.jobs[2].result == b"five"
        await Flows(channel).done("q1")
        assert await Flows(channel).done("q0") == ids[0]


async def test_others_are_served_while_a_flow_of_ten_thousand_jobs_is_pushed(
    calls: Flows,
) -> None:
    """It is stored in slices, and looked at in slices."""
    jobs = [job("root", *range(1, 11))]
    jobs += [job("nodes", *range(11 + at, rpc_limits.FLOW_JOBS_MAX, 10)) for at in range(10)]
    jobs += [
        job(QUEUES[at % 12], text=str(at), priority=at % 3)
        for at in range(rpc_limits.FLOW_JOBS_MAX - 11)
    ]
    request = pb.PushFlowRequest(jobs=jobs)
    pushing = asyncio.ensure_future(calls.flows.PushFlow(request))
    served = 0
    while not pushing.done():
        await calls.queues.ListQueues(queue_service_pb2.ListQueuesRequest(page_size=1))
        served += 1
    ids = (await pushing).ids
    # In one step it would be two: one before, and one after it.
    assert served > 2
    found = await calls.get(ids[0], max_jobs=rpc_limits.FLOW_JOBS_MAX)
    assert not found.is_cut
    assert {one.id for one in found.jobs} == set(ids)
    assert len(found.jobs) == rpc_limits.FLOW_JOBS_MAX

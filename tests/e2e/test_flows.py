"""Flows by the clients, on a real server: built, worked on, and their results read."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from jobline import (
    AsyncClient,
    Client,
    EndReason,
    EventKind,
    FailAction,
    FlowJob,
    InvalidArgument,
    JobNotFound,
    JobState,
)
from jobline_server.testing import RunningServer, running_server
from tests.e2e.test_every_event import watching
from tests.e2e.webhook_receiver import receiving

BLOCKED, READY, COMPLETED = JobState.BLOCKED, JobState.READY, JobState.COMPLETED


async def test_a_flow_from_its_leaves_to_its_root(client: AsyncClient) -> None:
    shared = FlowJob("leaves", {"n": 1}, name="leaf", priority=3)
    left, right = (FlowJob(queue, b"raw", children=[shared]) for queue in ("left", "right"))
    root = FlowJob("root", "r", children=[left, right])
    pushed = await client.flows.push(root)
    assert len(pushed.ids) == 4
    assert pushed.id == pushed.id_of(root)
    flow = await client.flows.get(pushed.id)
    assert flow.root.id == pushed.id
    assert [(job.queue, job.state) for job in flow.jobs] == [
        ("root", BLOCKED),
        ("left", BLOCKED),
        ("right", BLOCKED),
        ("leaves", READY),
    ]
    assert flow.root.children == (pushed.id_of(left), pushed.id_of(right))
    for queue in ("leaves", "right", "left"):
        (job,) = await client.pull(queue, wait=20)
        if queue == "leaves":
            assert (job.value(), job.name, job.options.priority) == ({"n": 1}, "leaf", 3)
        await client.ack(job, result=queue)
    (job,) = await client.pull("root", wait=20)
    children = await client.flows.children(job.id)
    assert [child.result_value(str) for child in children] == ["left", "right"]
    assert (await client.flows.children(children[0].id))[0].result_value() == "leaves"
    assert children[0].state is COMPLETED
    await client.ack(job)
    with pytest.raises(InvalidArgument, match="does not belong"):
        pushed.id_of(FlowJob("root"))
    with pytest.raises(JobNotFound):
        await client.flows.get(5)


async def test_results_beyond_one_answer_are_read_one_by_one(client: AsyncClient) -> None:
    leaves = [FlowJob("leaves") for _ in range(3)]
    pushed = await client.flows.push(FlowJob("root", children=leaves))
    large = b"x" * (1 << 20)
    for job in await client.pull("leaves", max_jobs=3, wait=20):
        await client.ack(job, result=large)
    (job,) = await client.pull("root", wait=20)
    assert job.id == pushed.id
    assert [len(one.result) for one in await client.flows.children(job.id)] == [1 << 20] * 3
    cut = await client.flows.get(job.id, results=True)
    assert sum(len(one.result) for one in cut.jobs) == 1 << 20
    assert sum(one.result_bytes for one in cut.jobs) == 3 << 20


async def test_the_same_request_pushes_one_flow(client: AsyncClient) -> None:
    root = FlowJob("root", children=[FlowJob("leaves")])
    first = await client.flows.push(root, request_id="r")
    assert (await client.flows.push(root, request_id="r")).ids == first.ids
    assert (await client.flows.push(root)).ids != first.ids


async def test_failed_child_ends_its_parent(client: AsyncClient) -> None:
    child = FlowJob("leaves")
    pushed = await client.flows.push(FlowJob("root", children=[child]))
    (job,) = await client.pull("leaves", wait=20)
    await client.fail(job, "no", then=FailAction.DEAD)
    (end,) = [end async for end in client.wait(pushed.id, timeout=20)]
    root = (await client.flows.get(pushed.id)).root
    assert end.state is root.state
    assert (root.state, root.reason) == (JobState.DEAD, EndReason.DEPENDENCY_FAILED)


async def test_a_child_may_fail_alone(client: AsyncClient) -> None:
    """Its parent does without it, and is told how it ended; a root has nobody to do so."""
    child = FlowJob("leaves", on_failure="ignore")
    pushed = await client.flows.push(FlowJob("root", children=[child]))
    (job,) = await client.pull("leaves", wait=20)
    await client.fail(job, "no", then=FailAction.DEAD)
    (root,) = await client.pull("root", wait=20)
    assert root.id == pushed.id
    assert [one.state for one in await client.flows.children(root.id)] == [JobState.DEAD]
    with pytest.raises(InvalidArgument) as refused:
        await client.flows.push(child)
    assert refused.value.field == "jobs[0].on_failure"
    with pytest.raises(InvalidArgument, match="on_failure"):
        FlowJob("q", on_failure="no")  # type: ignore[arg-type]  # refused


async def test_wrong_flows_are_refused_before_they_are_sent(client: AsyncClient) -> None:
    with pytest.raises(InvalidArgument, match="children"):
        FlowJob("q", children=["no"])  # type: ignore[list-item]  # refused
    with pytest.raises(InvalidArgument, match="root"):
        await client.flows.push("no")  # type: ignore[arg-type]  # refused
    with pytest.raises(TypeError, match="odd"):
        FlowJob("q", odd=1)  # type: ignore[call-arg]  # refused
    with pytest.raises(InvalidArgument) as refused:
        await client.flows.push(FlowJob("q", children=[FlowJob("_x")]))
    assert refused.value.field == "jobs[1].queue"


async def test_roots_are_known_after_a_restart_and_a_retry(tmp_path: Path) -> None:
    """By a checkpoint, as a stop writes one; and by the record of a job that ended."""
    async with running_server(tmp_path) as server, AsyncClient(server.address) as client:
        root = FlowJob("root", children=[FlowJob("leaves")])
        waits, alone = await client.flows.push(root), await client.flows.push(FlowJob("alone"))
        (job,) = await client.pull("alone", wait=20)
        await client.fail(job, "no", then=FailAction.DEAD)
    async with (
        running_server(tmp_path) as server,
        AsyncClient(server.address) as client,
        watching(client) as watched,
    ):
        await client.jobs.retry(alone.id)
        for queue in ("alone", "leaves", "root"):
            (job,) = await client.pull(queue, wait=20)
            await client.ack(job)
        last = await client.flows.push(FlowJob("alone"))
        await client.jobs.cancel(last.id)
        await watched.until({EventKind.FLOW_FAILED})
    found = [(event.kind, event.job_id) for event in watched.events]
    completed, failed = EventKind.FLOW_COMPLETED, EventKind.FLOW_FAILED
    assert [one for one in found if one[0] in (completed, failed)] == [
        (completed, alone.id),
        (completed, waits.id),
        (failed, last.id),
    ]


async def test_webhooks_may_ask_for_the_ends_of_flows() -> None:
    async with (
        running_server(webhook_private_networks=True) as server,
        AsyncClient(server.address) as client,
        receiving() as receiver,
    ):
        await client.webhooks.create("flows", receiver.url, events=["flow_completed"])
        pushed = await client.flows.push(FlowJob("root", children=[FlowJob("leaves")]))
        for queue in ("leaves", "root"):
            (job,) = await client.pull(queue, wait=20)
            await client.ack(job)
        [one] = await receiver.wait(1)
        event = json.loads(one.body)
        assert (event["type"], event["data"]["job_id"]) == ("flow.completed", pushed.id)
        assert event["data"]["queue"] == "root"


async def test_blocking_client_does_the_same(server: RunningServer) -> None:
    def run() -> None:
        with Client(server.address) as client:
            pushed = client.flows.push(FlowJob("root", children=[FlowJob("leaves", 7)]))
            (job,) = client.pull("leaves", wait=20)
            client.ack(job, result=8)
            (root,) = client.pull("root", wait=20)
            assert root.id == pushed.id
            assert [one.result_value() for one in client.flows.children(root.id)] == [8]

    await asyncio.to_thread(run)

"""What a caller does not see is not there: jobs, batches and schedules of other queues get the
reply of those that do not exist, whatever is asked.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from jobline_server.testing import RunningServer, running_server
from tests.server.access import api_key, auth_file, channel_of, role
from tests.server.calling import PACKAGE, Refusal, method_of, refusal_of

ALL = ["push", "work", "read", "read_payload", "manage"]
UNKNOWN = 8796093022299
FILE = (
    role("ours", (["ours"], ALL))
    + role("looks", (["ours", "shown"], ["read"]))
    + role("root", (["*"], [*ALL, "admin"]))
    + "".join(api_key(name, name) for name in ("ours", "looks", "root"))
)
SECRET = {"text": "secret", "options": {"name": "n", "headers": {"trace": "secret"}}}
FAILED = {"type": "Wrong", "message": "secret", "stack": "secret", "details": "c2VjcmV0"}


@dataclass
class World:
    server: RunningServer
    root: aio.Channel
    ours: aio.Channel
    looks: aio.Channel

    async def ask(self, channel: aio.Channel, rpc: str, **request: Any) -> Any:
        """The reply to a call."""
        method = method_of(rpc)
        message = ParseDict(request, GetMessageClass(method.input_type)())
        reply = GetMessageClass(method.output_type).FromString
        path, write = f"/{PACKAGE}.{rpc}", type(message).SerializeToString
        if method.server_streaming:
            return [one async for one in channel.unary_stream(path, write, reply)(message)]
        return await channel.unary_unary(path, write, reply)(message)

    async def refused(self, channel: aio.Channel, rpc: str, **request: Any) -> Refusal:
        with pytest.raises(aio.AioRpcError) as caught:
            await self.ask(channel, rpc, **request)
        return refusal_of(caught.value)

    async def push(self, queue: str, **options: Any) -> int:
        reply = await self.ask(
            self.root, "JobService/Push", queue=queue, jobs=[SECRET], options=options
        )
        return int(reply.ids[0])

    async def lease(self, queue: str) -> tuple[int, int]:
        reply = await self.ask(self.root, "JobService/Pull", queues=[{"queue": queue}])
        return reply.jobs[0].id, reply.jobs[0].delivery

    async def dead(self, queue: str) -> int:
        """A job that has ended, with an error."""
        await self.push(queue)
        job_id, delivery = await self.lease(queue)
        item = {"id": job_id, "delivery": delivery, "error": FAILED, "then": 2}
        await self.ask(self.root, "JobService/Fail", items=[item])
        return job_id


@pytest.fixture(scope="module")
async def world(transport: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    path = auth_file(tmp_path_factory.mktemp("auth"), FILE)
    async with running_server(transport=transport, auth=path) as server:
        address = server.address
        async with (
            channel_of(address, "root") as root,
            channel_of(address, "ours") as ours,
            channel_of(address, "looks") as looks,
        ):
            yield World(server, root, ours, looks)


BY_ID: dict[str, Callable[[int], dict[str, Any]]] = {
    "JobAdminService/GetJob": lambda job: {"id": job},
    "JobAdminService/GetJobLogs": lambda job: {"id": job},
    "JobAdminService/ExplainJob": lambda job: {"id": job},
    "JobAdminService/UpdateJob": lambda job: {"id": job, "priority": 1, "updateMask": "priority"},
    "JobAdminService/PromoteJobs": lambda job: {"jobs": {"ids": [job]}},
    "JobAdminService/CancelJobs": lambda job: {"jobs": {"ids": [job]}},
    "JobAdminService/RetryJobs": lambda job: {"jobs": {"ids": [job]}},
    "JobAdminService/DeleteJobs": lambda job: {"jobs": {"ids": [job]}},
    "FlowService/GetFlow": lambda job: {"id": job},
    "JobService/Wait": lambda job: {"ids": [job], "timeout": "0.1s"},
    "JobService/Watch": lambda job: {"jobId": job},
    "JobService/Ack": lambda job: {"ids": [job], "deliveries": [7]},
    "JobService/Fail": lambda job: {"items": [{"id": job, "delivery": 7}]},
    "JobService/Release": lambda job: {"items": [{"id": job, "delivery": 7}]},
    "JobService/Extend": lambda job: {"items": [{"id": job, "delivery": 7}]},
    "JobService/Push": lambda job: {
        "queue": "ours",
        "jobs": [{"text": "x", "options": {"dependsOn": [job]}}],
    },
    "FlowService/PushFlow": lambda job: {
        "jobs": [{"queue": "ours", "job": {"text": "x"}}],
        "parent": {"id": job, "delivery": 7},
    },
}


@pytest.mark.parametrize("rpc", BY_ID)
async def test_a_job_of_another_queue_is_one_that_does_not_exist(world: World, rpc: str) -> None:
    """The same reply for a live job, one that has ended, and one that never was."""
    said = []
    for job_id in (UNKNOWN, await world.push("theirs"), await world.dead("theirs")):
        try:
            reply = await world.ask(world.ours, rpc, **BY_ID[rpc](job_id))
            text = str(reply)
        except aio.AioRpcError as error:
            refusal = refusal_of(error)
            text = f"{refusal.code} {refusal.reason} {refusal.field} {refusal.message}"
        said.append(text.replace(str(job_id), "ID"))
    assert said[0] == said[1] == said[2]
    assert "NOT_ALLOWED" not in said[0]


async def test_ones_own_jobs_are_there(world: World) -> None:
    """By the same calls."""
    for rpc, request in BY_ID.items():
        if rpc in {"JobService/Watch", "FlowService/PushFlow"}:
            continue
        job_id = await world.push("ours", maxAttempts=5)
        try:
            reply = str(await world.ask(world.ours, rpc, **request(job_id)))
        except aio.AioRpcError as error:
            reply = refusal_of(error).reason
        assert "NOT_FOUND" not in reply, rpc
        assert "not_found" not in reply, rpc


async def test_what_may_be_read_and_not_changed_is_refused(world: World) -> None:
    """Who sees a job is told that it is the verb that is missing."""
    job_id = await world.push("shown")
    selected = {"jobs": {"ids": [job_id]}}
    for rpc, request in (
        ("JobAdminService/CancelJobs", selected),
        ("JobAdminService/UpdateJob", {"id": job_id, "priority": 1, "updateMask": "priority"}),
        ("JobAdminService/GetJobLogs", {"id": job_id}),
    ):
        assert (await world.refused(world.looks, rpc, **request)).reason == "NOT_ALLOWED"


async def test_some_of_many(world: World) -> None:
    """A call on many jobs does its own part."""
    own, strange = await world.push("ours"), await world.push("theirs")
    ids = [strange, own, UNKNOWN]
    reply = await world.ask(world.ours, "JobAdminService/CancelJobs", jobs={"ids": ids})
    assert reply.count == 1
    assert sorted(reply.not_found_ids) == sorted([strange, UNKNOWN])
    live = await world.ask(world.root, "JobAdminService/GetJob", id=strange)
    assert live.job.state == 3
    ended = await world.ask(world.ours, "JobService/Wait", ids=ids, timeout="5s")
    assert {one.id: one.not_found for one in ended} == {own: False, strange: True, UNKNOWN: True}


async def test_a_lease_of_another_queue_cannot_be_settled(world: World) -> None:
    """Not even with the right delivery."""
    await world.push("theirs")
    job_id, delivery = await world.lease("theirs")
    settle = {"ids": [job_id], "deliveries": [delivery]}
    reply = await world.ask(world.ours, "JobService/Ack", **settle)
    assert [one.outcome for one in reply.exceptions]
    item = {"id": job_id, "delivery": delivery}
    for verb in ("Fail", "Release", "Extend"):
        await world.ask(world.ours, f"JobService/{verb}", items=[item])
    reply = await world.ask(world.root, "JobService/Ack", **settle)
    assert not reply.exceptions


async def test_a_stream_cannot_settle_leases_of_another_queue(world: World) -> None:
    await world.push("theirs")
    job_id, delivery = await world.lease("theirs")
    method = method_of("JobService/Stream")
    frame, reply = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    stream = world.ours.stream_stream(
        f"/{PACKAGE}.JobService/Stream", frame.SerializeToString, reply.FromString
    )()
    opening = {"open": {"queues": [{"queue": "ours"}], "worker": {"id": "w"}}}
    await stream.write(ParseDict(opening, frame()))
    settle = {"settles": [{"seq": 1, "ackIds": [job_id], "ackDeliveries": [delivery]}]}
    await stream.write(ParseDict(settle, frame()))
    while not (answer := await stream.read()).confirms:
        pass
    assert answer.confirms[0].exceptions
    stream.cancel()
    assert not (
        await world.ask(world.root, "JobService/Ack", ids=[job_id], deliveries=[delivery])
    ).exceptions


async def test_contents_need_read_payload(world: World) -> None:
    """Payloads, headers, results and errors are left out of all that may be read."""
    job_id, waiting = await world.dead("shown"), await world.push("shown")
    found = await world.ask(world.looks, "JobAdminService/GetJob", id=job_id)
    assert (found.job.id, found.job.error.type) == (job_id, "Wrong")
    chosen = {"queue": "shown"}
    said = [str(found)]
    for rpc, request in (
        ("JobAdminService/GetJob", {"id": waiting}),
        ("JobAdminService/ListJobs", {"filter": chosen, "includePayloads": True}),
        (
            "JobAdminService/ListJobs",
            {"filter": chosen, "includePayloads": True, "acceptsRuns": True},
        ),
        ("DeadLetterService/ListDeadJobs", {"filter": chosen, "includePayloads": True}),
        ("JobService/Wait", {"ids": [job_id], "timeout": "1s"}),
        ("FlowService/GetFlow", {"id": job_id, "includeResults": True}),
    ):
        reply = await world.ask(world.looks, rpc, **request)
        assert str(reply)
        said.append(str(reply))
        full = str(await world.ask(world.root, rpc, **request))
        assert "secret" in full or rpc.startswith("FlowService"), rpc
    assert not [text for text in said if "secret" in text]


async def test_conditions_on_contents_need_read_payload(world: World) -> None:
    """Or they would tell, guess by guess."""
    for condition in ({"headers": {"trace": "secret"}}, {"errorContains": "sec"}):
        chosen = {"queue": "shown", **condition}
        refusal = await world.refused(world.looks, "JobAdminService/ListJobs", filter=chosen)
        assert "read_payload" in refusal.message


async def test_events_have_no_contents_without_read_payload(world: World) -> None:
    """And none of other queues."""
    method = method_of("JobService/Watch")
    request, reply = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    watch = world.looks.unary_stream(
        f"/{PACKAGE}.JobService/Watch", request.SerializeToString, reply.FromString
    )(ParseDict({"queues": ["shown"]}, request()))
    await watch.read()
    await world.dead("shown")
    said = ""
    while "Wrong" not in said:
        said += str(await watch.read())
    watch.cancel()
    assert "secret" not in said
    refusal = await world.refused(world.looks, "JobService/Watch", queues=["shown", "theirs"])
    assert refusal.reason == "NOT_ALLOWED"


async def test_lists_have_what_may_be_read(world: World) -> None:
    await world.push("theirs")
    await world.push("ours")
    listed = await world.ask(world.ours, "QueueService/ListQueues")
    assert [queue.name for queue in listed.queues] == ["ours"]


async def test_a_batch_belongs_to_the_queues_of_its_callbacks(world: World) -> None:
    callback = {"queue": "theirs", "text": "done"}
    created = await world.ask(world.root, "BatchService/CreateBatch", onComplete=callback)
    theirs = created.batch.id
    for rpc in ("GetBatch", "CloseBatch"):
        refusals = [
            await world.refused(world.ours, f"BatchService/{rpc}", id=batch)
            for batch in (theirs, UNKNOWN)
        ]
        assert {one.reason for one in refusals} == {"BATCH_NOT_FOUND"}
    refusal = await world.refused(
        world.ours, "JobService/Push", queue="ours", payloads=["eA=="], options={"batchId": theirs}
    )
    assert refusal.reason == "BATCH_NOT_FOUND"
    refusal = await world.refused(world.ours, "BatchService/CreateBatch", name="of no queue")
    assert refusal.reason == "NOT_ALLOWED"
    callback = {"queue": "ours", "text": "done"}
    created = await world.ask(world.ours, "BatchService/CreateBatch", onComplete=callback)
    await world.ask(world.ours, "BatchService/GetBatch", id=created.batch.id)
    await world.ask(world.ours, "BatchService/CloseBatch", id=created.batch.id)


async def test_a_schedule_belongs_to_its_queue(world: World) -> None:
    settings = {"queue": "theirs", "every": "3600s", "job": {"text": "secret"}}
    await world.ask(
        world.root, "ScheduleService/CreateSchedule", schedule="theirs", settings=settings
    )
    for verb in ("Get", "Pause", "Resume", "Trigger", "Delete"):
        refusals = [
            await world.refused(world.ours, f"ScheduleService/{verb}Schedule", schedule=name)
            for name in ("theirs", "nobodys")
        ]
        assert {one.reason for one in refusals} == {"SCHEDULE_NOT_FOUND"}, verb
    own = settings | {"queue": "ours"}
    refusal = await world.refused(
        world.ours,
        "ScheduleService/CreateSchedule",
        schedule="theirs",
        settings=own,
        upsert=True,
    )
    assert refusal.reason == "NOT_ALLOWED"
    await world.ask(world.ours, "ScheduleService/CreateSchedule", schedule="ours", settings=own)
    seen = await world.ask(world.looks, "ScheduleService/GetSchedule", schedule="ours")
    assert seen.schedule.settings.queue == "ours"
    assert "secret" not in str(seen)
    refusal = await world.refused(world.looks, "ScheduleService/PauseSchedule", schedule="ours")
    assert refusal.reason == "NOT_ALLOWED"
    moved = {"queue": "theirs"}
    refusal = await world.refused(
        world.ours,
        "ScheduleService/UpdateSchedule",
        schedule="ours",
        settings=moved,
        updateMask="queue",
    )
    assert refusal.reason == "NOT_ALLOWED"


async def test_a_flow_shows_what_may_be_read(world: World) -> None:
    flow = [
        {"queue": "ours", "job": {"text": "x"}, "children": [1]},
        {"queue": "theirs", "job": {"text": "secret"}},
    ]
    pushed = await world.ask(world.root, "FlowService/PushFlow", jobs=flow)
    refusal = await world.refused(world.ours, "FlowService/PushFlow", jobs=flow)
    assert refusal.reason == "NOT_ALLOWED"
    found = await world.ask(world.ours, "FlowService/GetFlow", id=pushed.ids[0])
    assert [node.queue for node in found.jobs] == ["ours"]
    assert found.is_cut


async def test_operations_name_the_caller(world: World) -> None:
    """In the list of operations, and in what they leave behind."""
    await world.push("ours")
    await world.ask(world.ours, "QueueService/PauseQueue", queue="ours", reason="a test")
    listed = await world.ask(world.ours, "AdminService/ListOperations", queue="ours")
    assert listed.operations[0].principal == "key:ours"
    queue = await world.ask(world.root, "QueueService/GetQueue", queue="ours")
    assert queue.queue.paused_by == "key:ours"
    await world.ask(world.ours, "QueueService/ResumeQueue", queue="ours")

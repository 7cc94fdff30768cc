"""What a caller does not see is not there: jobs, batches and schedules of other queues get the
reply of those that do not exist, whatever is asked.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from tests.server.calling import PACKAGE, method_of, refusal_of
from tests.server.two_queues import World

UNKNOWN = 8796093022299

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
    stream: Any = world.ours.stream_stream(
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


@pytest.mark.parametrize("result", [b"secret", b""])
async def test_a_result_that_is_left_out_is_said_to_be(world: World, result: bytes) -> None:
    """Who lacks read_payload does not take the job for one that returned nothing."""
    await world.push("shown")
    job_id, delivery = await world.lease("shown")
    item = {"id": job_id, "delivery": delivery, "result": b64encode(result).decode()}
    await world.ask(world.root, "JobService/Ack", items=[item])
    wait = {"ids": [job_id], "timeout": "1s"}
    (shown,) = await world.ask(world.root, "JobService/Wait", **wait)
    (cleared,) = await world.ask(world.looks, "JobService/Wait", **wait)
    assert (shown.result, shown.result_hidden) == (result, False)
    assert (cleared.result, cleared.result_hidden) == (b"", bool(result))


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


@pytest.mark.parametrize("order", ["name", "activity desc"])
async def test_a_page_is_full_of_what_may_be_read_and_its_token_names_nothing_else(
    world: World, order: str
) -> None:
    """The token holds the place of the last queue that was looked at: it is one of the page."""
    for queue in ("busy", "busy", "theirs", "ours", "shown", "zoo"):
        await world.push(queue)
    asked: dict[str, Any] = {"pageSize": 1, "orderBy": order}
    names: list[str] = []
    while True:
        page = await world.ask(world.looks, "QueueService/ListQueues", **asked)
        assert len(page.queues) == 1
        names.append(page.queues[0].name)
        if not page.next_page_token:
            break
        assert page.next_page_token.endswith(names[-1])
        asked["pageToken"] = page.next_page_token
    assert sorted(names) == ["ours", "shown"]

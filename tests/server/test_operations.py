"""Every call by which an operator changes something leaves an operation that can be found."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass
from grpc import StatusCode, aio

from jobline.v1 import admin_service_pb2 as pb
from jobline.v1 import schedule_service_pb2 as schedule_pb
from jobline.v1.admin_service_pb2_grpc import AdminServiceStub
from jobline.v1.schedule_service_pb2_grpc import ScheduleServiceStub
from jobline_server.rpc.audit_log import is_operation
from jobline_server.rpc.guard import only_reads
from jobline_server.testing import running_server
from tests.server.calling import all_rpcs, method_of
from tests.server.conftest import connect

# Producers and workers call these, health checks and tools the others.
OF_OTHERS = {"JobService", "Health", "ServerReflection"}
QUEUE, GROUP = {"queue": "mail"}, {"queue": "mail", "group": "acme"}
JOBS: dict[str, Any] = {"jobs": {"filter": {"queue": "mail"}}}
UNTIL = {"until": f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%dT%H:%M:%SZ}"}
LIMITER = {"limiter": "api"}
SCHEDULE = {"schedule": "report"}
WEBHOOK = {"webhook": "billing"}
# Producers push flows, and create and close batches, as they push jobs.
BY_PRODUCERS = {"BatchService/CreateBatch", "BatchService/CloseBatch", "FlowService/PushFlow"}
# It changes nothing that a queue, a job or a setting is; the log has a line for it.
LOGGED_ONLY = {"AdminService/Backup"}
# A request of each, in an order in which all of them work.
CALLS: dict[str, dict[str, Any]] = {
    "ScheduleService/CreateSchedule": {
        **SCHEDULE,
        "settings": {"queue": "mail", "every": "3600s", "job": {"text": "secret"}},
    },
    "ScheduleService/UpdateSchedule": {
        **SCHEDULE,
        "settings": {"queue": "mail", "limit": 5},
        "updateMask": "limit",
    },
    "ScheduleService/PauseSchedule": SCHEDULE,
    "ScheduleService/ResumeSchedule": SCHEDULE,
    "ScheduleService/TriggerSchedule": SCHEDULE,
    "ScheduleService/DeleteSchedule": SCHEDULE,
    "WebhookService/CreateWebhook": {**WEBHOOK, "settings": {"url": "http://example.com"}},
    "WebhookService/UpdateWebhook": {
        **WEBHOOK,
        "settings": {"queue": "mail"},
        "updateMask": "queue",
    },
    "WebhookService/RotateWebhookSecret": WEBHOOK,
    "WebhookService/TestWebhook": WEBHOOK,
    "WebhookService/DeleteWebhook": WEBHOOK,
    "BatchService/CancelBatch": {"id": "BATCH"},
    "QueueService/UpdateQueue": {**QUEUE, "settings": {"maxAttempts": 5}},
    "QueueService/PauseQueue": QUEUE,
    "QueueService/ResumeQueue": QUEUE,
    "QueueService/LimitQueue": {**QUEUE, **UNTIL},
    "QueueService/UpdateGroup": {**GROUP, "settings": {"concurrency": 2}},
    "QueueService/PauseGroup": GROUP,
    "QueueService/ResumeGroup": GROUP,
    "QueueService/LimitGroup": {**GROUP, **UNTIL},
    "LimiterService/UpsertLimiter": {**LIMITER, "concurrency": 3},
    "LimiterService/EmptyLimiter": {**LIMITER, **UNTIL},
    "LimiterService/DeleteLimiter": LIMITER,
    "JobAdminService/UpdateJob": {"id": "JOB", "priority": 3},
    "JobAdminService/ForgetKey": {"jobKey": {"queue": "mail", "key": "k"}},
    "JobAdminService/PromoteJobs": JOBS,
    "JobAdminService/CancelJobs": JOBS,
    "JobAdminService/RetryJobs": JOBS,
    "JobAdminService/DeleteJobs": JOBS,
    "DeadLetterService/PurgeDeadJobs": {"filter": QUEUE},
    "QueueService/DrainQueue": QUEUE,
    "QueueService/CleanQueue": QUEUE,
    "AdminService/UndoOperation": {"operationId": "LIMITED"},
    "QueueService/DeleteQueue": {**QUEUE, "confirmQueue": "mail"},
}
BULK = [
    rpc
    for rpc in all_rpcs()
    if is_operation(method_of(rpc)) and "dry_run" in method_of(rpc).input_type.fields_by_name
]


@pytest.fixture
async def called(transport: str) -> AsyncIterator[aio.Channel]:
    async with running_server(transport=transport) as server, connect(server.address) as channel:
        yield channel


async def call(channel: aio.Channel, rpc: str, request: dict[str, Any]) -> Any:
    method = method_of(rpc)
    make: Any = channel.unary_unary(
        f"/jobline.v1.{rpc}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    return await make(ParseDict(request, GetMessageClass(method.input_type)()))


async def listed(channel: aio.Channel, **conditions: Any) -> list[pb.Operation]:
    request = pb.ListOperationsRequest(**conditions)
    return [*(await AdminServiceStub(channel).ListOperations(request)).operations]


async def job(channel: aio.Channel) -> str:
    """The id of a job that waits."""
    request = {"queue": "mail", "payloads": ["eA=="], "jobKeys": ["k"]}
    return str((await call(channel, "JobService/Push", request)).first_id)


async def batch(channel: aio.Channel) -> str:
    """The id of a batch without members."""
    return str((await call(channel, "BatchService/CreateBatch", {})).batch.id)


def filled(request: dict[str, Any], **values: str) -> dict[str, Any]:
    """A request with what only a run can say: ids."""
    return {name: values.get(str(value), value) for name, value in request.items()}


def meant(operation: pb.Operation) -> dict[str, Any]:
    """What an operation says that it is about."""
    said = MessageToDict(operation)
    return {
        name: said[name]
        for name in ("queue", "group", "limiter", "schedule", "batchId")
        if name in said
    }


def test_every_call_that_changes_something_is_tried_here() -> None:
    """A new one needs a row, a reason and an operation."""
    changing = {
        rpc
        for rpc in all_rpcs()
        if rpc.split("/")[0].rpartition(".")[2] not in OF_OTHERS and not only_reads(method_of(rpc))
    }
    changing -= BY_PRODUCERS | LOGGED_ONLY
    assert changing == set(CALLS)
    assert all(is_operation(method_of(rpc)) for rpc in changing)
    for rpc in changing:
        assert "operation_id" in method_of(rpc).output_type.fields_by_name


async def test_every_change_leaves_an_operation(called: aio.Channel) -> None:
    """With who called, what was meant and why; the newest is the first of the list."""
    ids = {"JOB": await job(called), "BATCH": await batch(called)}
    for rpc, request in CALLS.items():
        asked = {**filled(request, **ids), "reason": f"because of {rpc}"}
        response = await call(called, rpc, asked)
        [operation] = await listed(called, operation_id=response.operation_id)
        verb = rpc.split("/")[1]
        assert (operation.verb, operation.reason) == (verb, f"because of {rpc}")
        assert operation.state == pb.OPERATION_STATE_DONE
        assert operation.principal == "anonymous@127.0.0.1"
        about: dict[str, Any] = {
            name: request[name] for name in ("group", "limiter", "schedule") if name in request
        }
        if "BatchService" in rpc:
            about["batchId"] = ids["BATCH"]
        elif "limiter" not in request and "WebhookService" not in rpc:
            about["queue"] = "mail"
        assert meant(operation) == about, rpc
        assert "secret" not in operation.request
        assert operation.started_at.seconds <= operation.ended_at.seconds
        assert operation.undoable == (not operation.not_undoable_because)
        if verb == "LimitQueue":
            ids["LIMITED"] = operation.id
    assert [one.verb for one in await listed(called, page_size=3)] == [
        "DeleteQueue",
        "UndoOperation",
        "CleanQueue",
    ]


@pytest.mark.parametrize("rpc", BULK)
async def test_a_dry_run_leaves_none(called: aio.Channel, rpc: str) -> None:
    """It changes nothing."""
    await job(called)
    limited = await call(called, "QueueService/LimitQueue", {**QUEUE, **UNTIL})
    request = filled(CALLS[rpc], BATCH=await batch(called), LIMITED=limited.operation_id)
    request["dryRun"] = True
    assert not (await call(called, rpc, request)).operation_id
    assert [one.verb for one in await listed(called)] == ["LimitQueue"]


def test_every_call_on_many_jobs_has_a_dry_run() -> None:
    counts = {"count", "cancelled"}
    counting = {
        rpc for rpc in CALLS if counts.intersection(method_of(rpc).output_type.fields_by_name)
    }
    assert counting == set(BULK)


@pytest.mark.parametrize(
    "rpc",
    [
        rpc
        for rpc in CALLS
        if {"jobs", "filter"}.intersection(method_of(rpc).input_type.fields_by_name)
    ],
)
async def test_all_jobs_are_chosen_on_purpose_only(called: aio.Channel, rpc: str) -> None:
    """A filter without conditions needs `all`."""
    by_jobs = "jobs" in method_of(rpc).input_type.fields_by_name
    empty: list[dict[str, Any]] = [{"filter": {}}, {}]
    for nothing in empty:
        request: dict[str, Any] = {"jobs": nothing} if by_jobs else nothing
        with pytest.raises(aio.AioRpcError, match="all: true"):
            await call(called, rpc, request)
    everything = {"filter": {}, "all": True}
    await call(called, rpc, {"jobs": everything} if by_jobs else everything)
    [operation] = await listed(called)
    assert '"all":true' in operation.request


async def test_a_refused_call_leaves_none(called: aio.Channel) -> None:
    for rpc, request in (
        ("QueueService/PauseQueue", {"queue": "nowhere"}),
        ("QueueService/DrainQueue", {"queue": "nowhere"}),
        ("LimiterService/DeleteLimiter", {"limiter": "none"}),
        ("AdminService/UndoOperation", {"operationId": "none"}),
    ):
        with pytest.raises(aio.AioRpcError):
            await call(called, rpc, request)
    assert not await listed(called)


async def test_operations_are_filtered_and_paged(called: aio.Channel) -> None:
    stub, settings = AdminServiceStub(called), {"settings": {"maxAttempts": 5}}
    for number in range(7):
        await call(called, "QueueService/UpdateQueue", {"queue": f"q{number % 2}", **settings})
        await call(called, "QueueService/PauseQueue", {"queue": f"q{number % 2}"})
    everything = await listed(called)
    ids = [one.id for one in everything]
    assert len(set(ids)) == 14
    paged, request = [], pb.ListOperationsRequest(page_size=3)
    while True:
        page = await stub.ListOperations(request)
        paged += [one.id for one in page.operations]
        request.page_token = page.next_page_token
        if not page.next_page_token:
            break
    assert paged == ids
    of_queue = await listed(called, queue="q1", verb="PauseQueue")
    assert [(one.queue, one.verb) for one in of_queue] == [("q1", "PauseQueue")] * 3
    assert len(await listed(called, principal="anonymous@127.0.0.1")) == 14
    assert not await listed(called, principal="somebody")
    began = everything[5].started_at
    later = await listed(called, start_time=began)
    earlier = await listed(called, end_time=began)
    assert [one.id for one in later] + [one.id for one in earlier] == ids
    assert everything[5].id in [one.id for one in later]


async def test_what_was_asked_is_kept_within_bounds(called: aio.Channel) -> None:
    ids = {"jobs": {"ids": [str(number) for number in range(1, 10_001)]}}
    done = await call(called, "JobAdminService/CancelJobs", ids)
    payload = {"id": await job(called), "payload": "c2VjcmV0"}
    updated = await call(called, "JobAdminService/UpdateJob", payload)
    for operation_id, has in ((done.operation_id, '"20"]'), (updated.operation_id, '"id"')):
        [operation] = await listed(called, operation_id=operation_id)
        assert has in operation.request
        assert len(operation.request) < 300
        assert "c2VjcmV0" not in MessageToDict(operation)["request"]


async def test_times_out_of_range_are_refused_or_not_looked_at(called: aio.Channel) -> None:
    """JSON knows no such time; what a mask leaves out does not end the call."""
    await call(called, "ScheduleService/CreateSchedule", CALLS["ScheduleService/CreateSchedule"])
    request = schedule_pb.UpdateScheduleRequest(schedule="report")
    request.settings.limit = 5
    request.settings.end.seconds = 1 << 45
    stub = ScheduleServiceStub(called)
    request.update_mask.paths[:] = ["end"]
    with pytest.raises(aio.AioRpcError) as refused:
        await stub.UpdateSchedule(request)
    assert refused.value.code() is StatusCode.INVALID_ARGUMENT
    request.update_mask.paths[:] = ["limit"]
    updated = await stub.UpdateSchedule(request)
    assert updated.schedule.settings.limit == 5
    [operation] = await listed(called, operation_id=updated.operation_id)
    assert (operation.verb, operation.request) == ("UpdateSchedule", "")

"""What operations tell callers: contents of jobs need `read_payload` there, too."""

from __future__ import annotations

import json
from typing import Any

import pytest
from grpc import aio

from tests.server.two_queues import SECRET, World

CHOSEN = {"queue": "shown"}
# Calls that leave an operation, and what is left of their requests without contents.
WITH_CONTENTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "JobAdminService/CancelJobs": (
        {"jobs": {"filter": {**CHOSEN, "headers": {"trace": "secret"}}}},
        {"jobs": {"filter": CHOSEN}},
    ),
    "JobAdminService/RetryJobs": (
        {"jobs": {"filter": {**CHOSEN, "errorContains": "secret"}}},
        {"jobs": {"filter": CHOSEN}},
    ),
    "DeadLetterService/PurgeDeadJobs": (
        {"filter": {**CHOSEN, "errorContains": "secret"}},
        {"filter": CHOSEN},
    ),
    "ScheduleService/CreateSchedule": (
        {"schedule": "report", "settings": {**CHOSEN, "every": "3600s", "job": SECRET}},
        {
            "schedule": "report",
            "settings": {**CHOSEN, "every": "3600s", "job": {"options": {"name": "n"}}},
        },
    ),
}


async def request_of(world: World, caller: aio.Channel, operation_id: str) -> str:
    """What a caller of one queue is shown of what an operation was asked."""
    asked = {**CHOSEN, "operationId": operation_id}
    [operation] = (await world.ask(caller, "AdminService/ListOperations", **asked)).operations
    return str(operation.request)


@pytest.mark.parametrize("rpc", WITH_CONTENTS)
async def test_operations_have_no_contents_without_read_payload(world: World, rpc: str) -> None:
    """Headers of scheduled jobs and conditions of filters are left out, and nothing else."""
    request, left = WITH_CONTENTS[rpc]
    done = await world.ask(world.root, rpc, **request)
    assert json.loads(await request_of(world, world.looks, done.operation_id)) == left
    assert "secret" in await request_of(world, world.root, done.operation_id)
    await world.ask(world.root, "JobAdminService/DeleteJobs", jobs={"filter": CHOSEN})
    if "schedule" in request:
        await world.ask(world.root, "ScheduleService/DeleteSchedule", schedule="report")


async def test_an_operation_whose_request_was_cut_ends_before_its_contents(world: World) -> None:
    """It is no JSON any more, so what stands behind the headers goes, too."""
    headers = {f"trace-{number}": f"secret {'x' * 400}" for number in range(8)}
    chosen = {**CHOSEN, "headers": headers}
    done = await world.ask(world.root, "JobAdminService/CancelJobs", jobs={"filter": chosen})
    assert len(await request_of(world, world.root, done.operation_id)) == 2_048
    shown = await request_of(world, world.looks, done.operation_id)
    assert shown == '{"jobs":{"filter":{"queue":"shown",'


async def test_operations_on_no_queue_need_read_payload_for_all(world: World) -> None:
    """They may be about jobs of any queue."""
    chosen = {"name": "n", "headers": {"trace": "secret"}}
    done = await world.ask(world.root, "JobAdminService/CancelJobs", jobs={"filter": chosen})
    asked = {"operationId": done.operation_id}
    [shown] = (await world.ask(world.looks_all, "AdminService/ListOperations", **asked)).operations
    assert json.loads(shown.request) == {"jobs": {"filter": {"name": "n"}}}


async def test_operations_never_have_the_url_of_a_webhook(world: World) -> None:
    """It may hold a secret, and no call but those of `admin` shows it."""
    settings = {"url": "http://example.com/secret", **CHOSEN}
    for verb in ("Create", "Update"):
        request = {"webhook": "billing", "settings": settings}
        done = await world.ask(world.root, f"WebhookService/{verb}Webhook", **request)
        asked = {"operationId": done.operation_id}
        for caller in (world.root, world.looks_all):
            [shown] = (await world.ask(caller, "AdminService/ListOperations", **asked)).operations
            assert json.loads(shown.request) == {"webhook": "billing", "settings": CHOSEN}
    await world.ask(world.root, "WebhookService/DeleteWebhook", webhook="billing")

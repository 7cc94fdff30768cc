"""Who may make which call: each role and each call, on both transports and over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobline_server.auth.grants import VERBS
from jobline_server.rpc import externalscaler_pb2
from jobline_server.rpc.access.rules import RULES, rule_of
from jobline_server.testing import RunningServer, running_server
from tests.server import http_calls
from tests.server.access import auth_file, channel_of, channel_with, key
from tests.server.calling import PACKAGE, Refusal, all_rpcs, call, encoded, method_of
from tests.server.valid_requests import VALID

# The verb that each call needs on the queue that its request names.
ON_QUEUE = {
    "push": ["JobService/Push", "FlowService/PushFlow", "BatchService/CreateBatch"],
    "work": ["JobService/Pull", "JobService/Stream"],
    "read": [
        *("JobService/Watch", "JobAdminService/ListJobs", "QueueService/GetQueue"),
        *("QueueService/GetQueueHistory", "QueueService/ListGroups"),
        *("DeadLetterService/ListDeadJobs", "DeadLetterService/GetDeadLetterStats"),
        *("AdminService/ListWorkers", "AdminService/ListHandlers", "AdminService/ListOperations"),
    ],
    "manage": [
        *(f"JobAdminService/{verb}Jobs" for verb in ("Promote", "Cancel", "Retry", "Delete")),
        *(f"QueueService/{verb}Queue" for verb in ("Update", "Pause", "Resume", "Limit", "Drain")),
        *("QueueService/CleanQueue", "QueueService/DeleteQueue", "JobAdminService/ForgetKey"),
        *(f"QueueService/{verb}Group" for verb in ("Update", "Pause", "Resume", "Limit")),
        *("DeadLetterService/PurgeDeadJobs", "ScheduleService/CreateSchedule"),
    ],
}
# The verb that each call needs on all queues.
ON_ALL = {
    "read": [
        *("AdminService/GetStats", "LimiterService/GetLimiter", "LimiterService/ListLimiters"),
        "BatchService/ListBatches",
    ],
    "manage": [
        *(f"LimiterService/{verb}Limiter" for verb in ("Upsert", "Empty", "Delete")),
        "BatchService/CancelBatch",
    ],
    "admin": [
        *(rpc for rpc in all_rpcs() if rpc.startswith("WebhookService/")),
        *("AdminService/UndoOperation", "AdminService/Backup", "AdminService/GetBackup"),
    ],
}
# Calls on what is stored: what a caller does not see is not there. Below are their own tests.
STORED = {
    *("JobAdminService/GetJob", "JobAdminService/GetJobLogs", "JobAdminService/ExplainJob"),
    *("JobAdminService/UpdateJob", "FlowService/GetFlow", "JobService/Wait"),
    *(f"JobService/{verb}" for verb in ("Ack", "Fail", "Release", "Extend")),
    *("BatchService/GetBatch", "BatchService/CloseBatch"),
    *(rpc for rpc in all_rpcs() if rpc.startswith("ScheduleService/")),
} - {"ScheduleService/CreateSchedule"}
ANYBODY = {"QueueService/ListQueues"}


def requests_of(rpc: str) -> list[bytes]:
    given = VALID[rpc]
    return [encoded(rpc, given)]


async def ask(server: RunningServer, name: str, rpc: str) -> Refusal | None:
    async with channel_of(server.address, name) as channel:
        return await call(channel, rpc, requests_of(rpc))


def test_every_call_is_in_a_table() -> None:
    listed = [rpc for table in (ON_QUEUE, ON_ALL) for rpcs in table.values() for rpc in rpcs]
    listed += [*STORED, *ANYBODY]
    assert sorted(listed) == sorted(all_rpcs())


def test_every_method_has_a_rule() -> None:
    """A new one without a rule is found here, and by a server with `auth`, which does not start."""
    tests = {f"/{PACKAGE}.TestService/{name}" for name in ("Advance", "Drain", "WaitFor", "Reset")}
    service = externalscaler_pb2.DESCRIPTOR.services_by_name["ExternalScaler"]
    scaler = {f"/{service.full_name}/{method.name}" for method in service.methods}
    assert {f"/{PACKAGE}.{rpc}" for rpc in all_rpcs()} | tests | scaler == set(RULES)
    with pytest.raises(KeyError):
        rule_of(f"/{PACKAGE}.NewService/Call")


@pytest.mark.parametrize("rpc", all_rpcs())
async def test_nobody_may_call_without_a_token(guarded: RunningServer, rpc: str) -> None:
    async with channel_with(guarded.address) as channel:
        refusal = await call(channel, rpc, requests_of(rpc))
    assert refusal is not None
    assert (refusal.code, refusal.reason) == ("UNAUTHENTICATED", "AUTH_REQUIRED")


@pytest.mark.parametrize("rpc", http_calls.UNARY)
async def test_nobody_may_call_over_http_without_a_token(guarded: RunningServer, rpc: str) -> None:
    async with http_calls.client_of(guarded) as client:
        reply = await http_calls.post(client, rpc, json.dumps(VALID[rpc]).encode())
    assert reply.status_code == 401
    assert reply.headers["www-authenticate"] == "Bearer"
    assert http_calls.refusal_of(reply).reason == "AUTH_REQUIRED"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("needed", ON_QUEUE)
async def test_verbs_on_queues(guarded: RunningServer, verb: str, needed: str) -> None:
    """With the verb on the queue a call is made, with any other verb it is not."""
    for rpc in ON_QUEUE[needed]:
        for scope in ("fuzz", "all"):
            refusal = await ask(guarded, f"{scope}-{verb}", rpc)
            is_denied = refusal is not None and refusal.reason == "NOT_ALLOWED"
            assert is_denied == (verb != needed), (rpc, scope, refusal)
            if is_denied:
                assert refusal is not None
                assert refusal.code == "PERMISSION_DENIED"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("needed", ON_ALL)
async def test_verbs_on_all_queues(guarded: RunningServer, verb: str, needed: str) -> None:
    """What belongs to the server needs the verb on all queues."""
    for rpc in ON_ALL[needed]:
        for scope in ("fuzz", "all"):
            refusal = await ask(guarded, f"{scope}-{verb}", rpc)
            is_denied = refusal is not None and refusal.reason == "NOT_ALLOWED"
            assert is_denied == ((scope, verb) != ("all", needed)), (rpc, scope, refusal)


@pytest.mark.parametrize("rpc", sorted(set(all_rpcs()) - STORED - ANYBODY))
async def test_other_queues_are_not_ones_own(guarded: RunningServer, rpc: str) -> None:
    """All verbs on another queue are of no use."""
    refusal = await ask(guarded, "stranger", rpc)
    assert refusal is not None
    assert refusal.reason == "NOT_ALLOWED"


@pytest.mark.parametrize("rpc", all_rpcs())
async def test_root_may_call_everything(guarded: RunningServer, rpc: str) -> None:
    refusal = await ask(guarded, "root", rpc)
    assert refusal is None or refusal.reason not in {"NOT_ALLOWED", "AUTH_REQUIRED"}


@pytest.mark.parametrize("rpc", sorted(set(http_calls.UNARY) - STORED - ANYBODY))
async def test_the_same_rules_hold_over_http(guarded: RunningServer, rpc: str) -> None:
    async with http_calls.client_of(guarded) as client:
        body = json.dumps(VALID[rpc]).encode()
        bearer = {"authorization": f"Bearer {key('stranger')}"}
        refused = await http_calls.post(client, rpc, body, **bearer)
        bearer = {"authorization": f"Bearer {key('root')}"}
        taken = await http_calls.post(client, rpc, body, **bearer)
    assert refused.status_code == 403
    assert http_calls.refusal_of(refused).reason == "NOT_ALLOWED"
    assert taken.status_code not in {401, 403}, method_of(rpc).name


async def test_a_refusal_names_the_verb_and_the_queue(guarded: RunningServer) -> None:
    refusal = await ask(guarded, "fuzz-read", "JobService/Push")
    assert refusal is not None
    assert refusal.message == "key:fuzz-read has no role with the verb push for queue fuzz"


async def test_health_is_for_everybody(guarded: RunningServer) -> None:
    async with channel_with(guarded.address) as channel:
        check: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert await check(b"") == b"\x08\x01"


async def test_a_wrong_file_stops_the_start(tmp_path: Path) -> None:
    path = auth_file(tmp_path, "[[keys]]\nname = 'x'\n")
    with pytest.raises(Exception, match=r"keys\[0\] \(x\)\.roles: Field required"):
        async with running_server(auth=path):
            pass

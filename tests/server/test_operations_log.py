"""The audit log: changes by operators are logged."""

from __future__ import annotations

import pytest

from jobline.v1 import dead_letter_service_pb2 as dead_pb
from jobline.v1 import job_admin_service_pb2 as admin_pb
from jobline.v1 import limiter_service_pb2 as limiter_pb
from jobline.v1 import queue_service_pb2 as queue_pb
from jobline.v1.dead_letter_service_pb2_grpc import DeadLetterServiceStub
from jobline.v1.job_admin_service_pb2_grpc import JobAdminServiceStub
from jobline.v1.limiter_service_pb2_grpc import LimiterServiceStub
from jobline.v1.queue_service_pb2_grpc import QueueServiceStub
from jobline_server.rpc import audit_log
from jobline_server.testing import running_server
from tests.server.conftest import connect


class Log:
    """Keeps the lines."""

    def __init__(self) -> None:
        self.lines: list[dict[str, object]] = []

    def info(self, event: str, **values: object) -> None:
        assert event == "operation"
        self.lines.append(values)


async def test_operations_are_said_in_the_log_with_their_reason(
    transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial and a look are not."""
    log = Log()
    monkeypatch.setattr(audit_log, "LOG", log)
    async with running_server(transport=transport) as server, connect(server.address) as channel:
        jobs, queues = JobAdminServiceStub(channel), QueueServiceStub(channel)
        change = queue_pb.UpdateQueueRequest(queue="mail", reason="new")
        change.settings.max_attempts = 5
        await queues.UpdateQueue(change)
        trial = admin_pb.DeleteJobsRequest(dry_run=True, reason="trial")
        trial.jobs.filter.queue = "mail"
        await jobs.DeleteJobs(trial)
        await queues.GetQueue(queue_pb.GetQueueRequest(queue="mail"))
        deleting = admin_pb.DeleteJobsRequest(reason="spam")
        deleting.jobs.filter.queue = "mail"
        done = await jobs.DeleteJobs(deleting)
    said = log.lines
    assert [(line["method"], line["reason"]) for line in said] == [
        ("UpdateQueue", "new"),
        ("DeleteJobs", "spam"),
    ]
    assert said[0]["queue"] == "mail"
    assert (said[1]["count"], said[1]["operation_id"]) == (0, done.operation_id)


async def test_an_operation_on_many_jobs_says_which_were_meant(
    transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids are counted, for there may be 10,000."""
    log = Log()
    monkeypatch.setattr(audit_log, "LOG", log)
    async with running_server(transport=transport) as server, connect(server.address) as channel:
        jobs, dead = JobAdminServiceStub(channel), DeadLetterServiceStub(channel)
        by_filter = admin_pb.CancelJobsRequest(reason="spam")
        by_filter.jobs.filter.queue = "mail"
        await jobs.CancelJobs(by_filter)
        by_id = admin_pb.CancelJobsRequest()
        by_id.jobs.ids.extend([5, 6])
        await jobs.CancelJobs(by_id)
        await dead.PurgeDeadJobs(dead_pb.PurgeDeadJobsRequest(all=True))
    assert [line["jobs"] for line in log.lines] == [{"queue": "mail"}, "2 ids", "all"]
    assert log.lines[0]["active_told_to_stop"] == 0


async def test_changes_of_limiters_are_said_with_their_names(
    transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log()
    monkeypatch.setattr(audit_log, "LOG", log)
    async with running_server(transport=transport) as server, connect(server.address) as channel:
        limiters = LimiterServiceStub(channel)
        await limiters.UpsertLimiter(limiter_pb.UpsertLimiterRequest(limiter="api", concurrency=1))
        await limiters.GetLimiter(limiter_pb.GetLimiterRequest(limiter="api"))
        await limiters.EmptyLimiter(limiter_pb.EmptyLimiterRequest(limiter="api", reason="429"))
        await limiters.DeleteLimiter(limiter_pb.DeleteLimiterRequest(limiter="api"))
    assert all(line.pop("operation_id") for line in log.lines)
    assert log.lines == [
        {"method": "UpsertLimiter", "limiter": "api", "reason": ""},
        {"method": "EmptyLimiter", "limiter": "api", "reason": "429"},
        {"method": "DeleteLimiter", "limiter": "api", "reason": ""},
    ]

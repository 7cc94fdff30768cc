"""The table: for each method, what its caller must be allowed.

A new method stands here, or a server with `auth` does not start. Choose its verb by what a caller
gets: `push` and `work` for producers and workers, `read` for what the server knows of
jobs and queues, `read_payload` for what is in them, `manage` for changes to a queue and its jobs,
`admin` for what reaches beyond all queues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jobline.v1 import job_admin_service_pb2 as jobs_pb
from jobline_server.auth.grants import ADMIN, MANAGE, PUSH, READ, READ_PAYLOAD
from jobline_server.rpc.access import (
    checks,
    contents,
    push_checks,
    schedule_checks,
    work_checks,
)
from jobline_server.rpc.access.checks import Check
from jobline_server.rpc.access.contents import Show

HEALTH = "/grpc.health.v1.Health/"
REFLECTION = ("/grpc.reflection.v1.", "/grpc.reflection.v1alpha.")


@dataclass(frozen=True, slots=True)
class Rule:
    """How calls of a method are checked, and what is left out of the replies."""

    check: Check
    show: Show | None = None


_read_queue = Rule(checks.needs_queue(READ))
_manage_queue = Rule(checks.needs_queue(MANAGE))
_manage_schedule = Rule(schedule_checks.needs_schedule(MANAGE), contents.show_schedule)
_admin = Rule(checks.needs_all(ADMIN))

_JOBS = {
    "Push": Rule(push_checks.push),
    "Pull": Rule(work_checks.pull),
    "Ack": Rule(work_checks.settle),
    "Fail": Rule(work_checks.settle),
    "Release": Rule(work_checks.release),
    "Extend": Rule(work_checks.settle),
    "Stream": Rule(work_checks.stream_frame),
    "Wait": Rule(work_checks.wait, contents.show_waited),
    "Watch": Rule(work_checks.watch, contents.show_events),
}
_JOB_ADMIN = {
    "GetJob": Rule(checks.get_job, contents.show_job),
    "ListJobs": Rule(checks.needs_filter(READ), contents.show_jobs),
    "GetJobLogs": Rule(checks.needs_job(READ_PAYLOAD)),
    "ExplainJob": Rule(checks.needs_job(READ)),
    "UpdateJob": Rule(checks.needs_job(MANAGE), contents.show_job),
    "PromoteJobs": Rule(checks.needs_selection(jobs_pb.PromoteJobsResponse), contents.show_hidden),
    "CancelJobs": Rule(checks.needs_selection(jobs_pb.CancelJobsResponse), contents.show_hidden),
    "RetryJobs": Rule(checks.needs_selection(jobs_pb.RetryJobsResponse), contents.show_hidden),
    "DeleteJobs": Rule(checks.needs_selection(jobs_pb.DeleteJobsResponse), contents.show_hidden),
    "ForgetKey": Rule(checks.forget_key),
}
_QUEUES = {
    # It looks at the roles itself, so that each page is full of what the caller may read.
    "ListQueues": Rule(checks.anybody),
    "GetQueue": _read_queue,
    "GetQueueHistory": _read_queue,
    "ListGroups": _read_queue,
    "UpdateQueue": _manage_queue,
    "PauseQueue": _manage_queue,
    "ResumeQueue": _manage_queue,
    "LimitQueue": _manage_queue,
    "DrainQueue": _manage_queue,
    "CleanQueue": _manage_queue,
    "DeleteQueue": _manage_queue,
    "UpdateGroup": _manage_queue,
    "PauseGroup": _manage_queue,
    "LimitGroup": _manage_queue,
    "ResumeGroup": _manage_queue,
}
_LIMITERS = {
    "GetLimiter": Rule(checks.needs_all(READ)),
    "ListLimiters": Rule(checks.needs_all(READ)),
    "UpsertLimiter": Rule(checks.needs_all(MANAGE)),
    "DeleteLimiter": Rule(checks.needs_all(MANAGE)),
    "EmptyLimiter": Rule(checks.needs_all(MANAGE)),
}
_SCHEDULES = {
    "CreateSchedule": Rule(schedule_checks.create_schedule, contents.show_schedule),
    "GetSchedule": Rule(schedule_checks.needs_schedule(READ), contents.show_schedule),
    "ListSchedules": Rule(checks.needs_queue(READ), contents.show_schedules),
    "UpdateSchedule": _manage_schedule,
    "DeleteSchedule": Rule(schedule_checks.needs_schedule(MANAGE)),
    "PauseSchedule": _manage_schedule,
    "ResumeSchedule": _manage_schedule,
    "TriggerSchedule": _manage_schedule,
    "PreviewSchedule": Rule(schedule_checks.preview),
}
_BATCHES = {
    "CreateBatch": Rule(push_checks.create_batch),
    "CloseBatch": Rule(push_checks.needs_batch(PUSH)),
    "GetBatch": Rule(push_checks.needs_batch(READ)),
    "ListBatches": Rule(checks.needs_all(READ)),
    # Its members are in any queues.
    "CancelBatch": Rule(checks.needs_all(MANAGE)),
}
# The URL of a webhook may hold a secret, and what it is sent leaves the house.
_WEBHOOKS = {
    "CreateWebhook": _admin,
    "GetWebhook": _admin,
    "ListWebhooks": _admin,
    "UpdateWebhook": _admin,
    "DeleteWebhook": _admin,
    "TestWebhook": _admin,
    "RotateWebhookSecret": _admin,
    "ListWebhookDeliveries": _admin,
}
_FLOWS = {
    "PushFlow": Rule(push_checks.push_flow),
    "GetFlow": Rule(checks.needs_job(READ), contents.show_flow),
}
_DEAD_LETTERS = {
    "ListDeadJobs": Rule(checks.needs_filter(READ), contents.show_jobs),
    "GetDeadLetterStats": _read_queue,
    "PurgeDeadJobs": Rule(checks.needs_filter(MANAGE)),
}
_SERVER = {
    "GetStats": Rule(checks.needs_all(READ)),
    "ListWorkers": Rule(checks.needs_queue(READ), contents.show_workers),
    "ListHandlers": _read_queue,
    "ListOperations": Rule(checks.needs_queue(READ), contents.show_operations),
    # An operation may have changed anything.
    "UndoOperation": _admin,
    # A backup has all that there is.
    "Backup": _admin,
    "GetBackup": _admin,
}
_SCALERS = {
    "IsActive": Rule(checks.needs_scaled(READ)),
    "StreamIsActive": Rule(checks.needs_scaled(READ)),
    "GetMetricSpec": Rule(checks.needs_scaled(READ)),
    "GetMetrics": Rule(checks.needs_scaled(READ)),
}
_TESTS = {"Advance": _admin, "Drain": _admin, "WaitFor": _admin, "Reset": _admin}

RULES: Mapping[str, Rule] = {
    f"/{service}/{method}": rule
    for service, methods in (
        ("jobline.v1.JobService", _JOBS),
        ("jobline.v1.JobAdminService", _JOB_ADMIN),
        ("jobline.v1.QueueService", _QUEUES),
        ("jobline.v1.LimiterService", _LIMITERS),
        ("jobline.v1.ScheduleService", _SCHEDULES),
        ("jobline.v1.BatchService", _BATCHES),
        ("jobline.v1.WebhookService", _WEBHOOKS),
        ("jobline.v1.FlowService", _FLOWS),
        ("jobline.v1.DeadLetterService", _DEAD_LETTERS),
        ("jobline.v1.AdminService", _SERVER),
        ("jobline.v1.TestService", _TESTS),
        ("externalscaler.ExternalScaler", _SCALERS),
    )
    for method, rule in methods.items()
}
_ANYBODY = Rule(checks.anybody)


def rule_of(path: str) -> Rule | None:
    """Returns the rule of a method, by its path; None for one that is open to all. Raises KeyError
    for a method that has none.
    """
    if path.startswith(HEALTH):
        return None
    if path.startswith(REFLECTION):
        return _ANYBODY
    return RULES[path]

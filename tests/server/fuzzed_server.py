"""The server under the fuzzer: what is put into it before, and what is looked at afterwards."""

from __future__ import annotations

from typing import Any

from jobline.v1 import job_admin_service_pb2, limiter_service_pb2
from jobline.v1 import job_service_pb2 as jobs
from jobline.v1 import queue_service_pb2 as queues
from jobline.v1 import schedule_service_pb2 as schedules
from jobline.v1 import webhook_service_pb2 as webhooks
from jobline.v1.job_admin_service_pb2_grpc import JobAdminServiceStub
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline.v1.limiter_service_pb2_grpc import LimiterServiceStub
from jobline.v1.queue_service_pb2_grpc import QueueServiceStub
from jobline.v1.schedule_service_pb2_grpc import ScheduleServiceStub
from jobline.v1.webhook_service_pb2_grpc import WebhookServiceStub
from tests.server.world import make

SECRET = "hunter2-of-others"
HIDDEN = "hidden"

Headers = list[tuple[str, str]]


async def fill(channel: Any, root: Headers) -> None:
    """Puts jobs there that belong to others, and some that everybody may name."""
    stub: Any = JobServiceStub(channel)
    options = {"headers": {SECRET: SECRET}, "tags": [SECRET]}
    secret = {"queue": HIDDEN, "payloads": [SECRET.encode()] * 9, "options": options}
    await stub.Push(make(jobs.PushRequest, **secret), metadata=root)
    pull = make(jobs.PullRequest, queues=[{"queue": HIDDEN}], max_jobs=3)
    ended, dead, _ = (await stub.Pull(pull, metadata=root)).jobs
    ack = {"id": ended.id, "delivery": ended.delivery, "result": SECRET.encode()}
    await stub.Ack(make(jobs.AckRequest, items=[ack]), metadata=root)
    error = {"type": SECRET, "message": SECRET}
    fail = {"id": dead.id, "delivery": dead.delivery, "error": error, "then": jobs.FAIL_ACTION_DEAD}
    await stub.Fail(make(jobs.FailRequest, items=[fail]), metadata=root)
    await stub.Push(jobs.PushRequest(queue="fuzz", payloads=[b"x"] * 9), metadata=root)


async def ids(channel: Any, root: Headers) -> list[int]:
    """Ids and deliveries of jobs that the server has."""
    listed = await JobAdminServiceStub(channel).ListJobs(
        job_admin_service_pb2.ListJobsRequest(page_size=50), metadata=root
    )
    return [number for job in listed.jobs for number in (job.id, job.delivery)]


async def empty(channel: Any, root: Headers) -> None:
    """Deletes all that can be deleted."""
    queue: Any = QueueServiceStub(channel)
    every = queues.ListQueuesRequest(page_size=1_000)
    for one in (await queue.ListQueues(every, metadata=root)).queues:
        gone = queues.DeleteQueueRequest(queue=one.name, confirm_queue=one.name, force=True)
        await queue.DeleteQueue(gone, metadata=root)
    hook: Any = WebhookServiceStub(channel)
    for one in (await hook.ListWebhooks(webhooks.ListWebhooksRequest(), metadata=root)).webhooks:
        await hook.DeleteWebhook(webhooks.DeleteWebhookRequest(webhook=one.name), metadata=root)
    schedule: Any = ScheduleServiceStub(channel)
    listed = await schedule.ListSchedules(schedules.ListSchedulesRequest(), metadata=root)
    for one in listed.schedules:
        await schedule.DeleteSchedule(
            schedules.DeleteScheduleRequest(schedule=one.name), metadata=root
        )
    limiter: Any = LimiterServiceStub(channel)
    for one in (
        await limiter.ListLimiters(limiter_service_pb2.ListLimitersRequest(), metadata=root)
    ).limiters:
        await limiter.DeleteLimiter(
            limiter_service_pb2.DeleteLimiterRequest(limiter=one.name), metadata=root
        )


async def serves(channel: Any, root: Headers) -> bool:
    """Whether a job that is pushed can be pulled and acked."""
    stub: Any = JobServiceStub(channel)
    await stub.Push(jobs.PushRequest(queue="after", payloads=[b"x"]), metadata=root)
    pull = make(jobs.PullRequest, queues=[{"queue": "after"}], wait={"seconds": 5})
    (job,) = (await stub.Pull(pull, metadata=root)).jobs
    ack = jobs.AckRequest(ids=[job.id], deliveries=[job.delivery])
    return not (await stub.Ack(ack, metadata=root)).exceptions

"""A queue with a job in every state, and a way to see that none of it changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grpc import aio

from jobline.v1 import job_admin_service_pb2 as admin
from jobline.v1 import job_pb2
from jobline.v1 import job_service_pb2 as jobs
from jobline.v1 import queue_service_pb2 as queues
from jobline.v1.job_admin_service_pb2_grpc import JobAdminServiceStub
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline.v1.queue_service_pb2_grpc import QueueServiceStub

if TYPE_CHECKING:
    from jobline.v1.job_service_pb2_grpc import JobServiceAsyncStub

QUEUE = "known"


def make(message: Any, **fields: Any) -> Any:
    """A message from plain values; the types of its constructor want messages all the way down."""
    return message(**fields)


async def fill(channel: aio.Channel) -> None:
    """Puts one dead, one completed, one active, one ready and one scheduled job there."""
    stub = JobServiceStub(channel)
    dead = await _leased(stub)
    error = {"type": "Boom", "message": "it broke"}
    item = {"id": dead.id, "delivery": dead.delivery, "error": error, "then": jobs.FAIL_ACTION_DEAD}
    await stub.Fail(make(jobs.FailRequest, items=[item]))
    done = await _leased(stub)
    await stub.Ack(jobs.AckRequest(ids=[done.id], deliveries=[done.delivery]))
    await _leased(stub)
    await stub.Push(make(jobs.PushRequest, queue=QUEUE, jobs=[{"text": "one", "job_key": "k1"}]))
    later = {"text": "later", "delay": {"seconds": 3_600}}
    await stub.Push(make(jobs.PushRequest, queue=QUEUE, jobs=[later]))


async def _leased(stub: JobServiceAsyncStub) -> job_pb2.LeasedJob:
    await stub.Push(jobs.PushRequest(queue=QUEUE, payloads=[b"x"]))
    request = make(
        jobs.PullRequest,
        queues=[{"queue": QUEUE}],
        lease={"seconds": 43_200},
        wait={"seconds": 5},
    )
    reply = await stub.Pull(request)
    return reply.jobs[0]


async def picture(channel: aio.Channel) -> tuple[bytes, bytes]:
    """All jobs and queues as they are."""
    listed = await JobAdminServiceStub(channel).ListJobs(
        admin.ListJobsRequest(include_payloads=True, page_size=1_000)
    )
    known = await QueueServiceStub(channel).ListQueues(queues.ListQueuesRequest(page_size=1_000))
    for job in listed.jobs:
        # Shown from two clocks, so its last millisecond may differ between two looks.
        job.ClearField("lease_until")
    return (
        listed.SerializeToString(deterministic=True),
        known.SerializeToString(deterministic=True),
    )

"""The state of what a reader watches, which comes before the events: of its job, of its queues, or
of all queues. It is read by calls that the reader could make, and may make where callers are
authenticated.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import grpc
from google.protobuf.message import Message

from jobline.v1 import job_admin_service_pb2, job_service_pb2, queue_service_pb2
from jobline_server.rpc.errors import StatusError

GET_JOB = "/jobline.v1.JobAdminService/GetJob"
GET_QUEUE = "/jobline.v1.QueueService/GetQueue"
LIST_QUEUES = "/jobline.v1.QueueService/ListQueues"

Ask = Callable[[str, Message], Awaitable[bytes]]
"""Makes a call, by its path; returns the reply's bytes. Raises `StatusError`."""


async def snapshot_parts(
    watched: job_service_pb2.WatchRequest, ask: Ask
) -> AsyncIterator[tuple[str, bytes]]:
    """Yields the replies that are the snapshot, each with the path of its call. A queue that does
    not exist has no part; raises `StatusError` for a job that does not.
    """
    if watched.job_id:
        request = job_admin_service_pb2.GetJobRequest(id=watched.job_id)
        yield GET_JOB, await ask(GET_JOB, request)
    elif watched.queues:
        for queue in dict.fromkeys(watched.queues):
            try:
                yield (
                    GET_QUEUE,
                    await ask(GET_QUEUE, queue_service_pb2.GetQueueRequest(queue=queue)),
                )
            except StatusError as error:
                if error.status.code is not grpc.StatusCode.NOT_FOUND:
                    raise
    else:
        page = queue_service_pb2.ListQueuesRequest()
        while True:
            reply = await ask(LIST_QUEUES, page)
            found = queue_service_pb2.ListQueuesResponse.FromString(reply)
            page.page_token = found.next_page_token
            found.next_page_token = ""
            yield LIST_QUEUES, found.SerializeToString()
            if not page.page_token:
                return

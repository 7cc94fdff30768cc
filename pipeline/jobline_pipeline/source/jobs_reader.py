"""Reads jobs, a queue a partition.

A queue is in one shard, and its jobs are listed by id, page after page: the protocol has no way to
begin a list within a queue. While a page is converted, the next one is on its way.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from jobline import JobFilter
from jobline.errors import InvalidArgument
from jobline.v1.job_admin_service_pb2 import JobFilter as FilterMessage
from jobline.v1.job_admin_service_pb2 import ListJobsRequest, ListJobsResponse
from jobline.v1.job_admin_service_pb2_grpc import JobAdminServiceStub
from jobline_pipeline.problems import PipelineError
from jobline_pipeline.source.clients import connected, read
from jobline_pipeline.source.conversions import WITH_PAYLOADS, jobs_batch
from jobline_pipeline.source.options import JobsWanted, Server
from jobline_pipeline.source.threads import iterate, run


@dataclass
class QueuePartition(InputPartition):
    """The jobs of one queue; "" is a partition without any."""

    queue: str


class JobsReader(DataSourceReader):
    """What `spark.read` needs. Jobs that change while they are read may be seen before or after."""

    def __init__(self, server: Server, wanted: JobsWanted, schema: pa.Schema) -> None:
        self._server = server
        self._wanted = wanted
        self._schema = schema
        self._filter = _filter_of(wanted)

    def partitions(self) -> list[InputPartition]:
        """Returns a partition for each queue. Raises PipelineError for one that there is not."""
        names = run(self._queues())
        return [QueuePartition(name) for name in names or [""]]

    async def _queues(self) -> list[str]:
        async with connected(self._server) as client:
            for queue in self._wanted.queues:
                await client.queues.get(queue)
            return list(self._wanted.queues) or [queue.name async for queue in client.queues.list()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the jobs of a queue, a page at a time."""
        if not isinstance(partition, QueuePartition) or not partition.queue:
            return
        for page in iterate(lambda: self._pages(partition.queue)):
            if page.jobs:
                yield jobs_batch(page.jobs, self._schema)

    async def _pages(self, queue: str) -> AsyncGenerator[ListJobsResponse, None]:
        chosen = FilterMessage.FromString(self._filter)
        chosen.queue = queue
        request = ListJobsRequest(
            filter=chosen,
            page_size=self._wanted.page_size,
            include_payloads=bool(WITH_PAYLOADS & set(self._schema.names)),
        )
        async with connected(self._server, patience=self._server.timeout) as client:
            list_jobs = JobAdminServiceStub(client.channel).ListJobs
            while True:
                page = await read(self._server, list_jobs, request)
                yield page
                if not page.next_page_token:
                    return
                request.page_token = page.next_page_token


def _filter_of(wanted: JobsWanted) -> bytes:
    """Returns the conditions beside the queue, as a message. Raises PipelineError."""
    try:
        given = JobFilter.parse(wanted.words) if wanted.words else JobFilter()
        if given.queue or (given.state and wanted.states):
            raise PipelineError("filter: the options queues and states say these")
        if wanted.states:
            given = replace(given, state=wanted.states)
        return bytes(given.to_message().SerializeToString())
    except InvalidArgument as error:
        raise PipelineError(f"filter: {error.message}") from error

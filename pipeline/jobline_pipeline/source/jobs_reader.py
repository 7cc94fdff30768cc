"""Reads jobs, the queues of a shard a partition.

A queue is in one shard, and its jobs are listed by id, page after page. Jobs that are alike come as
runs, so that a page of ten thousand is a few columns. While a page is converted, the next ones are
on their way.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from jobline import AsyncClient, JobFilter
from jobline.errors import InvalidArgument
from jobline.v1.job_admin_service_pb2 import JobFilter as FilterMessage
from jobline.v1.job_admin_service_pb2 import ListJobsRequest, ListJobsResponse
from jobline.v1.job_admin_service_pb2_grpc import JobAdminServiceStub
from jobline_pipeline.problems import PipelineError
from jobline_pipeline.source.clients import connected, read
from jobline_pipeline.source.conversions import WITH_PAYLOADS
from jobline_pipeline.source.job_rows import page_batches
from jobline_pipeline.source.options import JobsWanted, Server
from jobline_pipeline.source.threads import iterate, run


@dataclass
class ShardPartition(InputPartition):
    """The jobs of some queues of one shard."""

    queues: tuple[str, ...]


class JobsReader(DataSourceReader):
    """What `spark.read` needs. Jobs that change while they are read may be seen before or after."""

    def __init__(self, server: Server, wanted: JobsWanted, schema: pa.Schema) -> None:
        self._server = server
        self._wanted = wanted
        self._schema = schema
        self._filter = _filter_of(wanted)

    def partitions(self) -> list[InputPartition]:
        """Returns a partition for each shard that has some of the queues; one for none. Raises
        PipelineError for a queue that there is not.
        """
        shards: dict[int, list[str]] = {}
        for queue, shard in run(self._queues()):
            shards.setdefault(shard, []).append(queue)
        return [ShardPartition(tuple(queues)) for queues in shards.values()] or [ShardPartition(())]

    async def _queues(self) -> list[tuple[str, int]]:
        async with connected(self._server) as client:
            names = dict.fromkeys(self._wanted.queues)
            queues = [await client.queues.get(queue) for queue in names]
            if not names:
                queues = [queue async for queue in client.queues.list()]
            return [(queue.name, queue.shard) for queue in queues]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the jobs of some queues, a page at a time."""
        if not isinstance(partition, ShardPartition):
            raise TypeError(f"{partition!r} is no partition of this source")
        for page in iterate(lambda: self._pages(partition.queues)):
            yield from page_batches(page, self._schema)

    async def _pages(self, queues: Iterable[str]) -> AsyncGenerator[ListJobsResponse, None]:
        async with connected(self._server, patience=self._server.timeout) as client:
            for queue in queues:
                async for page in self._pages_of(client, queue):
                    yield page

    async def _pages_of(
        self, client: AsyncClient, queue: str
    ) -> AsyncGenerator[ListJobsResponse, None]:
        chosen = FilterMessage.FromString(self._filter)
        chosen.queue = queue
        request = ListJobsRequest(
            filter=chosen,
            page_size=self._wanted.page_size,
            include_payloads=bool(WITH_PAYLOADS & set(self._schema.names)),
            accepts_runs=True,
        )
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

"""DeadLetterService: lists, counts and deletes jobs in state DEAD."""

from __future__ import annotations

from typing import Any

from jobline.v1 import dead_letter_service_pb2 as pb
from jobline_server.rpc.convert import operations, selection
from jobline_server.rpc.convert.jobs import fill_dead_count, fill_page
from jobline_server.rpc.convert.page_tokens import cursor_of, token_of
from jobline_server.rpc.guard import Context
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit

COUNTS_MAX = 1_000


class DeadLetterService:
    """Serves dead jobs from the runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def _audit(self, request: Any, context: Context) -> Audit:
        return operations.audit(request, context, self._runtime.operations.new_id())

    async def ListDeadJobs(
        self, request: pb.ListDeadJobsRequest, _context: Context
    ) -> pb.ListDeadJobsResponse:
        """Lists dead jobs by id."""
        views, token = await self._runtime.jobs.list_jobs(
            selection.dead_filter(request.filter),
            page_size=selection.page_size(request.page_size),
            page_token=cursor_of(request),
            include_payloads=request.include_payloads,
        )
        response = pb.ListDeadJobsResponse()
        await fill_page(response, views, with_payload=request.include_payloads)
        response.next_page_token = token_of(request, token)
        return response

    async def GetDeadLetterStats(
        self, request: pb.GetDeadLetterStatsRequest, _context: Context
    ) -> pb.GetDeadLetterStatsResponse:
        """Counts dead jobs by queue, name, reason and error type, largest counts first."""
        queue = selection.optional_queue(request.queue)
        counts = await self._runtime.statistics.of_dead_letters(queue)
        response = pb.GetDeadLetterStatsResponse(total=sum(count.count for count in counts))
        for count in counts[:COUNTS_MAX]:
            fill_dead_count(response.counts.add(), count)
        return response

    async def PurgeDeadJobs(
        self, request: pb.PurgeDeadJobsRequest, context: Context
    ) -> pb.PurgeDeadJobsResponse:
        """Deletes dead jobs."""
        done = await self._runtime.bulk.delete_jobs(
            selection.dead_selection(request),
            dry_run=request.dry_run,
            audit=self._audit(request, context),
        )
        return pb.PurgeDeadJobsResponse(count=done.count, operation_id=done.operation_id)

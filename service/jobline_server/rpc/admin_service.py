"""AdminService: the server itself."""

from __future__ import annotations

from jobline.v1 import admin_service_pb2 as pb
from jobline_server.rpc import limits
from jobline_server.rpc.convert import operations, selection
from jobline_server.rpc.convert.page_tokens import cursor_of, token_of
from jobline_server.rpc.convert.statistics import fill_handler, fill_worker, statistics_response
from jobline_server.rpc.guard import Context
from jobline_server.rpc.validate import fields
from jobline_server.runtime.runtime import Runtime


class AdminService:
    """Serves counts and workers from the runtime; version and transport are those of the server."""

    def __init__(self, runtime: Runtime, *, version: str, transport: str) -> None:
        self._runtime = runtime
        self._version = version
        self._transport = transport

    async def GetStats(self, request: pb.GetStatsRequest, _context: Context) -> pb.GetStatsResponse:
        """Returns counts and health."""
        view = await self._runtime.statistics.of_server()
        return statistics_response(view, version=self._version, transport=self._transport)

    async def ListWorkers(
        self, request: pb.ListWorkersRequest, _context: Context
    ) -> pb.ListWorkersResponse:
        """Lists connected workers, and lost ones that still hold leases."""
        views, token = self._runtime.statistics.list_workers(
            page_size=selection.page_size(request.page_size),
            page_token=cursor_of(request),
            queue=selection.optional_queue(request.queue),
        )
        response = pb.ListWorkersResponse(next_page_token=token_of(request, token))
        for view in views:
            fill_worker(response.workers.add(), view)
        return response

    async def ListHandlers(
        self, request: pb.ListHandlersRequest, _context: Context
    ) -> pb.ListHandlersResponse:
        """Lists the handlers that connected workers have announced."""
        views, token = await self._runtime.streams.handlers.list_handlers(
            page_size=selection.page_size(request.page_size),
            page_token=cursor_of(request),
            queue=selection.optional_queue(request.queue),
        )
        response = pb.ListHandlersResponse(next_page_token=token_of(request, token))
        for view in views:
            fill_handler(response.handlers.add(), view)
        return response

    async def ListOperations(
        self, request: pb.ListOperationsRequest, _context: Context
    ) -> pb.ListOperationsResponse:
        """Lists what operators did."""
        query = operations.operation_query(
            request, selection.page_size(request.page_size), cursor_of(request)
        )
        views, more = await self._runtime.operations.find(query)
        response = pb.ListOperationsResponse()
        for view in views:
            operations.fill(response.operations.add(), view)
        if more:
            response.next_page_token = token_of(request, str(views[-1].number))
        return response

    async def UndoOperation(
        self, request: pb.UndoOperationRequest, context: Context
    ) -> pb.UndoOperationResponse:
        """Undoes an operation."""
        operation_id = fields.required_line(
            request.operation_id, "operation_id", limits.OPERATION_ID_CHARACTERS_MAX
        )
        audit = operations.audit(request, context, self._runtime.operations.new_id())
        done = await self._runtime.undo.undo(operation_id, dry_run=request.dry_run, audit=audit)
        return pb.UndoOperationResponse(
            count=done.count, operation_id=done.operation_id, skipped=done.skipped
        )

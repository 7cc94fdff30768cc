"""AdminService: the server itself."""

from __future__ import annotations

from jobline.v1 import admin_service_pb2 as pb
from jobline_server.rpc.convert import selection
from jobline_server.rpc.convert.page_tokens import cursor_of, token_of
from jobline_server.rpc.convert.statistics import fill_handler, fill_worker, statistics_response
from jobline_server.rpc.guard import Context
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

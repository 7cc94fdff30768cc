"""LimiterService: limits that jobs of any queues share."""

from __future__ import annotations

from typing import Any

from jobline.v1 import limiter_service_pb2 as pb
from jobline_server.rpc.convert import limiters, operations, queues, selection
from jobline_server.rpc.convert.page_tokens import cursor_of, token_of
from jobline_server.rpc.guard import Context
from jobline_server.rpc.validate import fields
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit


class LimiterService:
    """Serves limiters from the runtime, and changes them through it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def _audit(self, request: Any, context: Context) -> Audit:
        return operations.audit(request, context, self._runtime.operations.new_id())

    async def UpsertLimiter(
        self, request: pb.UpsertLimiterRequest, context: Context
    ) -> pb.UpsertLimiterResponse:
        """Creates a limiter, or changes its limits."""
        name = limiters.limiter_name(request.limiter)
        rate, concurrency = limiters.limits_of(request)
        audit = self._audit(request, context)
        response = pb.UpsertLimiterResponse(operation_id=audit.operation_id)
        view = await self._runtime.limiters.put_limiter(name, rate, concurrency, audit)
        limiters.fill_limiter(response.limiter, view)
        return response

    async def GetLimiter(
        self, request: pb.GetLimiterRequest, _context: Context
    ) -> pb.GetLimiterResponse:
        """Returns one limiter."""
        response = pb.GetLimiterResponse()
        view = self._runtime.limiters.get_limiter(limiters.limiter_name(request.limiter))
        limiters.fill_limiter(response.limiter, view)
        return response

    async def ListLimiters(
        self, request: pb.ListLimitersRequest, _context: Context
    ) -> pb.ListLimitersResponse:
        """Lists limiters by name."""
        views, token = await self._runtime.limiters.list_limiters(
            page_size=selection.page_size(request.page_size),
            page_token=cursor_of(request),
            prefix=queues.name_prefix(request.name_prefix),
        )
        response = pb.ListLimitersResponse(next_page_token=token_of(request, token))
        for view in views:
            limiters.fill_limiter(response.limiters.add(), view)
        return response

    async def DeleteLimiter(
        self, request: pb.DeleteLimiterRequest, context: Context
    ) -> pb.DeleteLimiterResponse:
        """Deletes a limiter."""
        name, audit = limiters.limiter_name(request.limiter), self._audit(request, context)
        await self._runtime.limiters.delete_limiter(name, audit)
        return pb.DeleteLimiterResponse(operation_id=audit.operation_id)

    async def EmptyLimiter(
        self, request: pb.EmptyLimiterRequest, context: Context
    ) -> pb.EmptyLimiterResponse:
        """Has a limiter let nothing out until a time."""
        name, until_ms = limiters.limiter_name(request.limiter), 0
        if request.HasField("until"):
            until_ms = fields.coming_ms(request.until, "until", self._runtime.core.wall_ms())
        audit = self._audit(request, context)
        response = pb.EmptyLimiterResponse(operation_id=audit.operation_id)
        view = await self._runtime.limiters.empty_limiter(name, until_ms, audit)
        limiters.fill_limiter(response.limiter, view)
        return response

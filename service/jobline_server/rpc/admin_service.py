"""AdminService: the server itself."""

from __future__ import annotations

from jobline.v1 import admin_service_pb2 as pb
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.rpc import limits
from jobline_server.rpc.convert import operations, selection
from jobline_server.rpc.convert.backups import fill_backup
from jobline_server.rpc.convert.page_tokens import cursor_of, token_of
from jobline_server.rpc.convert.statistics import fill_handler, fill_worker, statistics_response
from jobline_server.rpc.guard import Context
from jobline_server.rpc.validate import fields
from jobline_server.runtime.backups import Backups
from jobline_server.runtime.pace import Pace
from jobline_server.runtime.runtime import Runtime
from jobline_server.wire.times import fill_time


class AdminService:
    """Serves counts and workers from the runtime; version and transport are those of the server."""

    def __init__(
        self, runtime: Runtime, *, version: str, transport: str, backups: Backups | None = None
    ) -> None:
        self._runtime = runtime
        self._version = version
        self._transport = transport
        self._backups = backups

    async def GetStats(self, request: pb.GetStatsRequest, _context: Context) -> pb.GetStatsResponse:
        """Returns counts and health."""
        view = await self._runtime.statistics.of_server()
        return statistics_response(view, version=self._version, transport=self._transport)

    async def ListWorkers(
        self, request: pb.ListWorkersRequest, _context: Context
    ) -> pb.ListWorkersResponse:
        """Lists connected workers, and lost ones that still hold leases."""
        views, token = await self._runtime.statistics.list_workers(
            page_size=selection.page_size(request.page_size),
            page_token=cursor_of(request),
            queue=selection.optional_queue(request.queue),
        )
        response = pb.ListWorkersResponse(next_page_token=token_of(request, token))
        pace = Pace()
        for view in views:
            fill_worker(response.workers.add(), view)
            await pace.rest()
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

    async def Backup(self, _request: pb.BackupRequest, _context: Context) -> pb.BackupResponse:
        """Begins a backup."""
        if self._backups is None:
            raise Refused(
                RefusalKind.NO_BACKUP_DESTINATION,
                "the server has no destination for backups: it was started without --backup-to",
            )
        response = pb.BackupResponse()
        fill_backup(response.backup, self._backups.begin())
        return response

    async def GetBackup(
        self, _request: pb.GetBackupRequest, _context: Context
    ) -> pb.GetBackupResponse:
        """Returns how far the newest backup is."""
        response = pb.GetBackupResponse()
        if self._backups is not None:
            fill_backup(response.backup, self._backups.view)
            response.destination = self._backups.to
            if self._backups.last_success_ms:
                fill_time(response.last_success_at, self._backups.last_success_ms)
        return response

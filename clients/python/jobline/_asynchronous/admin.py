"""The operators' services, awaited: typed arguments in, dataclasses out.

Lists are read a page at a time as they are consumed; `page_size` is 1 … 1,000. `reason` is kept
with the operation (`client.admin.operations`), and a paused queue shows it. `dry_run` returns the
counts and changes nothing. All raise InvalidArgument and other refusals; reads raise Unavailable,
writes OutcomeUnknown without a definite reply.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Unpack

from jobline import _admin_requests as admin_requests
from jobline._admin_requests import PAGE_SIZE
from jobline._arguments import message_of, moment_given
from jobline._asynchronous.connection import Connection
from jobline._asynchronous.pages import pages_of
from jobline._backup_values import Backup, Backups
from jobline._filters import DeadConditions, DeadFilter, chosen
from jobline._job_values import BulkResult, DeadStats, Job, JobPage
from jobline._keywords import spelled_out
from jobline._operation_values import Operation, Undone
from jobline._reading import read
from jobline._server_values import ConnectedWorker, HandlerSummary, ServerStats
from jobline._times import Moment
from jobline.v1 import (
    admin_service_pb2,
    admin_service_pb2_grpc,
    dead_letter_service_pb2,
    dead_letter_service_pb2_grpc,
)


class DeadLetterApi:
    """`client.dead`: jobs that could not be done. `client.jobs.retry` puts them back.

    They are chosen by the fields of a `DeadFilter` as keywords (`queue="mail", newer="1d"`), by the
    words of `jobline dead` (`"queue:mail reason:stalled"`), or by a `DeadFilter`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def _stub(self) -> dead_letter_service_pb2_grpc.DeadLetterServiceAsyncStub:
        return self._connection.stub(dead_letter_service_pb2_grpc.DeadLetterServiceStub)

    @spelled_out(DeadConditions)
    async def list_page(
        self,
        where: str | DeadFilter | None = None,
        *,
        page_size: int = PAGE_SIZE,
        page_token: str = "",
        include_payloads: bool = False,
        **conditions: Unpack[DeadConditions],
    ) -> JobPage:
        """Returns one page of dead jobs by id, and the token of the next page.

        All pages need the same filter: make a `DeadFilter` first where it has `older` or `newer`.
        """
        request = admin_requests.list_dead_jobs(
            chosen(DeadFilter, where, conditions, "list_page"),
            page_size=page_size,
            page_token=page_token,
            include_payloads=include_payloads,
        )
        return read(JobPage, await self._connection.read(self._stub.ListDeadJobs, request))

    @spelled_out(DeadConditions)
    def list(
        self,
        where: str | DeadFilter | None = None,
        *,
        include_payloads: bool = False,
        page_size: int = PAGE_SIZE,
        **conditions: Unpack[DeadConditions],
    ) -> AsyncIterator[Job]:
        """Yields the chosen dead jobs by id. Payloads are left out unless asked for; the keywords
        are the fields of `DeadFilter`.
        """
        found = chosen(DeadFilter, where, conditions, "list")
        return self._listed(found, include_payloads=include_payloads, page_size=page_size)

    async def _listed(
        self, where: DeadFilter | None, *, include_payloads: bool, page_size: int
    ) -> AsyncIterator[Job]:
        async for page in pages_of(
            lambda token: self.list_page(
                where, page_size=page_size, page_token=token, include_payloads=include_payloads
            )
        ):
            for job in page.jobs:
                yield job

    async def stats(self, queue: str = "") -> DeadStats:
        """Returns counts by queue, name, reason and error type, most first."""
        request = message_of(dead_letter_service_pb2.GetDeadLetterStatsRequest, queue=queue)
        return read(DeadStats, await self._connection.read(self._stub.GetDeadLetterStats, request))

    @spelled_out(DeadConditions)
    async def purge(
        self,
        where: str | DeadFilter | None = None,
        *,
        everything: bool = False,
        dry_run: bool = False,
        reason: str = "",
        **conditions: Unpack[DeadConditions],
    ) -> BulkResult:
        """Deletes dead jobs; without any condition it needs `everything=True`."""
        request = admin_requests.purge_dead_jobs(
            chosen(DeadFilter, where, conditions, "purge"),
            everything=everything,
            dry_run=dry_run,
            reason=reason,
        )
        return BulkResult.from_message(
            await self._connection.write(self._stub.PurgeDeadJobs, request)
        )


class AdminApi:
    """`client.admin`: the server itself."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def _stub(self) -> admin_service_pb2_grpc.AdminServiceAsyncStub:
        return self._connection.stub(admin_service_pb2_grpc.AdminServiceStub)

    async def stats(self) -> ServerStats:
        """Returns counts and health of the server."""
        request = admin_service_pb2.GetStatsRequest()
        return read(ServerStats, await self._connection.read(self._stub.GetStats, request))

    async def backup(self) -> Backup:
        """Begins a backup at the destination of the server's settings, and returns at once: the
        backup goes on by itself, and `backups` says how far it is. Raises BackupRunning if one is
        being made, and NoBackupDestination.
        """
        request = admin_service_pb2.BackupRequest()
        response = await self._connection.write(self._stub.Backup, request)
        return read(Backup, response.backup)

    async def backups(self) -> Backups:
        """Returns how far the newest backup is, and when the newest whole one was taken."""
        request = admin_service_pb2.GetBackupRequest()
        return read(Backups, await self._connection.read(self._stub.GetBackup, request))

    async def workers(
        self, queue: str = "", *, page_size: int = PAGE_SIZE
    ) -> AsyncIterator[ConnectedWorker]:
        """Yields all connected workers by session, or those that take from `queue`."""
        async for page in pages_of(
            lambda token: self._connection.read(
                self._stub.ListWorkers,
                message_of(
                    admin_service_pb2.ListWorkersRequest,
                    page_size=page_size,
                    page_token=token,
                    queue=queue,
                ),
            )
        ):
            for worker in page.workers:
                yield read(ConnectedWorker, worker)

    async def handlers(
        self, queue: str = "", *, page_size: int = PAGE_SIZE
    ) -> AsyncIterator[HandlerSummary]:
        """Yields the handlers of all connected workers by queue and name, or those of a queue."""
        async for page in pages_of(
            lambda token: self._connection.read(
                self._stub.ListHandlers,
                message_of(
                    admin_service_pb2.ListHandlersRequest,
                    page_size=page_size,
                    page_token=token,
                    queue=queue,
                ),
            )
        ):
            for handler in page.handlers:
                yield read(HandlerSummary, handler)

    async def operations(
        self,
        *,
        operation_id: str = "",
        principal: str = "",
        verb: str = "",
        queue: str = "",
        start: Moment | None = None,
        end: Moment | None = None,
        page_size: int = PAGE_SIZE,
    ) -> AsyncIterator[Operation]:
        """Yields what operators did, the newest first: all of it, or what meets every condition
        that is given. `start` is included, `end` is not; both are of the begin. Servers keep the
        last 90 days, 100,000 operations at most.
        """
        async for page in pages_of(
            lambda token: self._connection.read(
                self._stub.ListOperations,
                message_of(
                    admin_service_pb2.ListOperationsRequest,
                    page_size=page_size,
                    page_token=token,
                    operation_id=operation_id,
                    principal=principal,
                    verb=verb,
                    queue=queue,
                    start_time=moment_given("start", start),
                    end_time=moment_given("end", end),
                ),
            )
        ):
            for operation in page.operations:
                yield read(Operation, operation)

    async def undo(self, operation_id: str, *, dry_run: bool = False, reason: str = "") -> Undone:
        """Undoes an operation: a pause or its end, a change of settings or limits, or a cancel of
        jobs that waited. Raises OperationNotFound, NotUndoable, AlreadyUndone, or ChangedSince if
        what it changed was changed again since.
        """
        request = message_of(
            admin_service_pb2.UndoOperationRequest,
            operation_id=operation_id,
            reason=reason,
            dry_run=dry_run,
        )
        return read(Undone, await self._connection.write(self._stub.UndoOperation, request))

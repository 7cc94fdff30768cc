"""The operators' services, blocking: typed arguments in, the protocol's messages out.

Lists are read a page at a time as they are consumed; `page_size` is 1 … 1,000. `reason` says why:
a paused queue shows it, for other calls servers do not keep it yet. `dry_run` answers with the
counts and changes nothing. All raise InvalidArgument and other refusals; reads raise Unavailable,
writes OutcomeUnknown where no definite answer came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobline import operating
from jobline.blocking.connection import Connection
from jobline.blocking.pages import pages_of
from jobline.enums import JobState
from jobline.operating import PAGE_SIZE
from jobline.times import Seconds
from jobline.v1 import (
    admin_service_pb2,
    admin_service_pb2_grpc,
    dead_letter_service_pb2,
    dead_letter_service_pb2_grpc,
    queue_service_pb2,
    queue_service_pb2_grpc,
)
from jobline.v1.dead_letter_service_pb2 import DeadFilter
from jobline.v1.job_pb2 import Job
from jobline.v1.queue_pb2 import Queue, QueueSettings


class QueueApi:
    """`client.queues`: settings and counts of queues, and what operators do with them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def _stub(self) -> queue_service_pb2_grpc.QueueServiceStub:
        return self._connection.stub(queue_service_pb2_grpc.QueueServiceStub)

    def list(self, prefix: str = "", *, page_size: int = PAGE_SIZE) -> Iterator[Queue]:
        """All queues by name, or those whose name starts with `prefix`."""
        for page in pages_of(
            lambda token: self._connection.read(
                self._stub.ListQueues,
                queue_service_pb2.ListQueuesRequest(
                    page_size=page_size, page_token=token, name_prefix=prefix
                ),
            )
        ):
            yield from page.queues

    def get(self, queue: str) -> Queue:
        """One queue with its settings and counts. Raises QueueNotFound."""
        request = queue_service_pb2.GetQueueRequest(queue=queue)
        return self._connection.read(self._stub.GetQueue, request).queue

    def update(
        self,
        queue: str,
        settings: QueueSettings,
        *,
        fields: Iterable[str] | None = None,
        reason: str = "",
    ) -> Queue:
        """Changes these `fields` of the settings (all, if None); creates the queue if need be."""
        request = operating.update_queue(queue, settings, fields=fields, reason=reason)
        return self._connection.write(self._stub.UpdateQueue, request).queue

    def pause(self, queue: str, *, reason: str = "") -> Queue:
        """Stops handing out; pushes go on. Raises QueueNotFound."""
        request = queue_service_pb2.PauseQueueRequest(queue=queue, reason=reason)
        return self._connection.write(self._stub.PauseQueue, request).queue

    def resume(self, queue: str, *, reason: str = "") -> Queue:
        """Hands out again. Raises QueueNotFound."""
        request = queue_service_pb2.ResumeQueueRequest(queue=queue, reason=reason)
        return self._connection.write(self._stub.ResumeQueue, request).queue

    def drain(
        self, queue: str, *, dry_run: bool = False, reason: str = ""
    ) -> queue_service_pb2.DrainQueueResponse:
        """Deletes the jobs that wait; active ones go on. Raises QueueNotFound."""
        request = queue_service_pb2.DrainQueueRequest(queue=queue, dry_run=dry_run, reason=reason)
        return self._connection.write(self._stub.DrainQueue, request)

    def clean(
        self,
        queue: str,
        *,
        states: Iterable[JobState] = (),
        older_than: Seconds | None = None,
        dry_run: bool = False,
        reason: str = "",
    ) -> queue_service_pb2.CleanQueueResponse:
        """Deletes jobs that ended in these states (default: all but DEAD), at least `older_than`
        ago.
        """
        request = operating.clean_queue(
            queue, states=states, older_than=older_than, dry_run=dry_run, reason=reason
        )
        return self._connection.write(self._stub.CleanQueue, request)

    def delete(
        self, queue: str, *, force: bool = False, dry_run: bool = False, reason: str = ""
    ) -> queue_service_pb2.DeleteQueueResponse:
        """Deletes a queue with all its jobs; with active ones only if `force` is set (else
        QueueActive).
        """
        request = operating.delete_queue(queue, force=force, dry_run=dry_run, reason=reason)
        return self._connection.write(self._stub.DeleteQueue, request)


class DeadLetterApi:
    """`client.dead`: jobs that could not be done. `client.jobs.retry` puts them back."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def _stub(self) -> dead_letter_service_pb2_grpc.DeadLetterServiceStub:
        return self._connection.stub(dead_letter_service_pb2_grpc.DeadLetterServiceStub)

    def list_page(
        self,
        where: DeadFilter | None = None,
        *,
        page_size: int = PAGE_SIZE,
        page_token: str = "",
        include_payloads: bool = False,
    ) -> dead_letter_service_pb2.ListDeadJobsResponse:
        """One page of dead jobs by id, and the token of the next one."""
        request = operating.list_dead_jobs(
            where, page_size=page_size, page_token=page_token, include_payloads=include_payloads
        )
        return self._connection.read(self._stub.ListDeadJobs, request)

    def list(
        self,
        where: DeadFilter | None = None,
        *,
        include_payloads: bool = False,
        page_size: int = PAGE_SIZE,
    ) -> Iterator[Job]:
        """All dead jobs by id."""
        for page in pages_of(
            lambda token: self.list_page(
                where, page_size=page_size, page_token=token, include_payloads=include_payloads
            )
        ):
            yield from page.jobs

    def stats(self, queue: str = "") -> dead_letter_service_pb2.GetDeadLetterStatsResponse:
        """Counts by queue, name, reason and error type, most first."""
        request = dead_letter_service_pb2.GetDeadLetterStatsRequest(queue=queue)
        return self._connection.read(self._stub.GetDeadLetterStats, request)

    def purge(
        self,
        where: DeadFilter | None = None,
        *,
        everything: bool = False,
        dry_run: bool = False,
        reason: str = "",
    ) -> dead_letter_service_pb2.PurgeDeadJobsResponse:
        """Deletes dead jobs; a filter without conditions needs `everything=True`."""
        request = operating.purge_dead_jobs(
            where, everything=everything, dry_run=dry_run, reason=reason
        )
        return self._connection.write(self._stub.PurgeDeadJobs, request)


class AdminApi:
    """`client.admin`: the server itself."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def _stub(self) -> admin_service_pb2_grpc.AdminServiceStub:
        return self._connection.stub(admin_service_pb2_grpc.AdminServiceStub)

    def stats(self) -> admin_service_pb2.GetStatsResponse:
        """Counts and health of the server."""
        return self._connection.read(self._stub.GetStats, admin_service_pb2.GetStatsRequest())

    def workers(
        self, queue: str = "", *, page_size: int = PAGE_SIZE
    ) -> Iterator[admin_service_pb2.Worker]:
        """All connected workers by session, or those that take from `queue`."""
        for page in pages_of(
            lambda token: self._connection.read(
                self._stub.ListWorkers,
                admin_service_pb2.ListWorkersRequest(
                    page_size=page_size, page_token=token, queue=queue
                ),
            )
        ):
            yield from page.workers

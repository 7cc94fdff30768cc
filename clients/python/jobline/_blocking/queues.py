# Generated from jobline/_asynchronous/queues.py by `make gen`: change that file instead.
"""`client.queues`: what operators do with queues, blocking; as the services in `admin.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Unpack, overload

from jobline import _admin_requests as admin_requests
from jobline._admin_requests import PAGE_SIZE
from jobline._arguments import message_of, moment_given
from jobline._blocking.connection import Connection
from jobline._blocking.groups import GroupApi
from jobline._blocking.pages import pages_of
from jobline._enums import JobStateName
from jobline._job_values import BulkResult
from jobline._keywords import spelled_out
from jobline._queue_history import HISTORY_PAGE_MINUTES, QueueMinute
from jobline._queue_values import Queue, QueueSettings, SettingsHow
from jobline._reading import read
from jobline._times import Moment, Seconds
from jobline.v1 import queue_service_pb2, queue_service_pb2_grpc


class QueueApi:
    """`client.queues`: settings and counts of queues, and what operators do with them;
    `client.queues.groups`: the groups of a queue.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.groups = GroupApi(connection)

    @property
    def _stub(self) -> queue_service_pb2_grpc.QueueServiceStub:
        return self._connection.stub(queue_service_pb2_grpc.QueueServiceStub)

    def list(
        self, prefix: str = "", *, order_by: str = "name", page_size: int = PAGE_SIZE
    ) -> Iterator[Queue]:
        """Yields all queues, or those whose name starts with `prefix`, by name; the busiest first
        with `order_by="activity desc"`: those with the most jobs pushed and completed in this
        minute and the one before. That order changes while pages are read, so a queue may come
        twice, or not at all.
        """
        for page in pages_of(
            lambda token: self._connection.read(
                self._stub.ListQueues,
                message_of(
                    queue_service_pb2.ListQueuesRequest,
                    page_size=page_size,
                    page_token=token,
                    name_prefix=prefix,
                    order_by=order_by,
                ),
            )
        ):
            for queue in page.queues:
                yield Queue.from_message(queue)

    def get(self, queue: str) -> Queue:
        """Returns one queue with its settings and counts. Raises QueueNotFound."""
        request = message_of(queue_service_pb2.GetQueueRequest, queue=queue)
        response = self._connection.read(self._stub.GetQueue, request)
        return Queue.from_message(response.queue)

    def history(
        self, queue: str = "", start: Moment | None = None, end: Moment | None = None
    ) -> Iterator[QueueMinute]:
        """Yields what happened in a queue minute by minute, from `start` (default: an hour before
        the end) to `end` (default: now), of the last 14 days; "": in all queues together. Minutes
        in which nothing happened are left out.
        """
        request = message_of(
            queue_service_pb2.GetQueueHistoryRequest,
            queue=queue,
            start_time=moment_given("start", start),
            end_time=moment_given("end", end),
        )
        more = True
        while more:
            response = self._connection.read(self._stub.GetQueueHistory, request)
            for minute in response.minutes:
                yield read(QueueMinute, minute)
            more = len(response.minutes) == HISTORY_PAGE_MINUTES
            if more:
                request.start_time.seconds = response.minutes[-1].start_time.seconds + 60
                more = not end or request.start_time.seconds <= request.end_time.seconds

    @overload
    def update(self, queue: str, settings: QueueSettings, *, reason: str = "") -> Queue: ...
    @overload
    def update(self, queue: str, *, reason: str = "", **changes: Unpack[SettingsHow]) -> Queue: ...
    @spelled_out(SettingsHow)
    def update(
        self,
        queue: str,
        settings: QueueSettings | None = None,
        *,
        reason: str = "",
        **changes: Unpack[SettingsHow],
    ) -> Queue:
        """Changes the settings given as keywords, None taking one back to its default:
        `update("mail", max_attempts=5, lease="2m")`; or all of them, to those of a
        `QueueSettings`. Creates the queue if need be.
        """
        request = admin_requests.update_queue(queue, settings, changes, reason=reason)
        response = self._connection.write(self._stub.UpdateQueue, request)
        return Queue.from_message(response.queue)

    def pause(self, queue: str, *, reason: str = "") -> Queue:
        """Stops handing out; pushes go on. Raises QueueNotFound."""
        request = message_of(queue_service_pb2.PauseQueueRequest, queue=queue, reason=reason)
        response = self._connection.write(self._stub.PauseQueue, request)
        return Queue.from_message(response.queue)

    def resume(self, queue: str, *, reason: str = "") -> Queue:
        """Hands out again. Raises QueueNotFound."""
        request = message_of(queue_service_pb2.ResumeQueueRequest, queue=queue, reason=reason)
        response = self._connection.write(self._stub.ResumeQueue, request)
        return Queue.from_message(response.queue)

    def limit(self, queue: str, until: Moment | None, *, reason: str = "") -> Queue:
        """Hands out nothing until a time, such as the end of a 429, and then goes on; None lifts
        the limit. A new time replaces the one before. Raises QueueNotFound.
        """
        request = message_of(
            queue_service_pb2.LimitQueueRequest,
            queue=queue,
            until=moment_given("until", until),
            reason=reason,
        )
        response = self._connection.write(self._stub.LimitQueue, request)
        return Queue.from_message(response.queue)

    def drain(self, queue: str, *, dry_run: bool = False, reason: str = "") -> BulkResult:
        """Deletes the jobs that wait; active ones go on. Raises QueueNotFound."""
        request = message_of(
            queue_service_pb2.DrainQueueRequest, queue=queue, dry_run=dry_run, reason=reason
        )
        return BulkResult.from_message(self._connection.write(self._stub.DrainQueue, request))

    def clean(
        self,
        queue: str,
        *,
        state: JobStateName | Iterable[JobStateName] = (),
        older: Seconds | None = None,
        dry_run: bool = False,
        reason: str = "",
    ) -> BulkResult:
        """Deletes jobs that ended in this state or these (default: all but DEAD), at least `older`
        ago: `clean("mail", state="completed", older="1h")`.
        """
        request = admin_requests.clean_queue(
            queue, state=state, older=older, dry_run=dry_run, reason=reason
        )
        return BulkResult.from_message(self._connection.write(self._stub.CleanQueue, request))

    def delete(
        self, queue: str, *, force: bool = False, dry_run: bool = False, reason: str = ""
    ) -> BulkResult:
        """Deletes a queue with all its jobs; with active ones only if `force` is set (else
        QueueActive).
        """
        request = admin_requests.delete_queue(queue, force=force, dry_run=dry_run, reason=reason)
        return BulkResult.from_message(self._connection.write(self._stub.DeleteQueue, request))

"""Messages for pulling, settling, waiting and watching, and their answers as values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import index
from typing import Any

from jobline import _codec as codec
from jobline._arguments import duration_given, list_given, message_of
from jobline._enums import (
    EventKind,
    FailAction,
    FailActionName,
    JobState,
    SettleOutcome,
    all_named,
    known,
    named,
)
from jobline._event_kinds import EventKindName
from jobline._job_log import LogLevel, LogLevelName
from jobline._leased import LeasedJob
from jobline._server_values import WatchedEvent
from jobline._times import Seconds, from_timestamp
from jobline._values import Failed, JobError, QueueWeight
from jobline._watched import watched_events
from jobline.errors import ErrorFacts, InvalidArgument
from jobline.v1 import event_pb2, job_pb2
from jobline.v1 import job_service_pb2 as pb

# A reply, a frame or a page of the server; requests are bounded by the server.
MESSAGE_BYTES_MAX = 64 << 20

# An answer that no Jobline server gives.
NOT_OURS = ErrorFacts(reason="UNEXPECTED_ANSWER")

Lease = LeasedJob | tuple[int, int]
"""A job in hand, or its (id, delivery)."""


def lease_of(job: Lease) -> tuple[int, int]:
    """Returns the (id, delivery) of a job."""
    if isinstance(job, LeasedJob):
        return job.id, job.delivery
    try:
        id_, delivery = map(index, job)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"a job in hand is what pull() has given, or its (id, delivery), not {job!r}; several "
            "are given one by one: ack(*jobs)"
        ) from None
    return id_, delivery


def pull_request(
    queues: Iterable[str | QueueWeight],
    *,
    max_jobs: int,
    wait: Seconds,
    lease: Seconds | None,
    worker: str,
    names: Iterable[str],
    request_id: str,
) -> pb.PullRequest:
    """Returns the request for jobs; its id lets gRPC repeat the call when a reply is lost."""
    return message_of(
        pb.PullRequest,
        queues=[_weight(queue) for queue in queues],
        max_jobs=max_jobs,
        wait=duration_given("wait", wait),
        lease=duration_given("lease", lease),
        worker=worker,
        names=list_given("names", names),
        request_id=request_id,
        accepts_runs=True,
        max_message_bytes=MESSAGE_BYTES_MAX,
    )


def _weight(queue: str | QueueWeight) -> pb.QueueWeight:
    if isinstance(queue, QueueWeight):
        return message_of(pb.QueueWeight, queue=queue.queue, weight=queue.weight)
    given: object = queue
    if isinstance(given, (list, tuple)):
        raise InvalidArgument(
            f"queue: pull() takes queues one by one, not {given!r}: pull(*queues)"
        )
    return message_of(pb.QueueWeight, queue=queue)


def jobs_of(response: pb.PullResponse) -> list[LeasedJob]:
    """Returns the jobs of a pull."""
    # Runs were leased before the single jobs beside them.
    jobs = [job for run in response.runs for job in LeasedJob.from_run(run)]
    jobs.extend(LeasedJob.from_message(message) for message in response.jobs)
    return jobs


def ack_request(jobs: Sequence[Lease], result: Any) -> pb.AckRequest:
    """Returns the request that settles jobs as done: packed without a result, items with one."""
    leases = [lease_of(job) for job in jobs]
    if result is None:
        return pb.AckRequest(
            ids=[id_ for id_, _ in leases], deliveries=[delivery for _, delivery in leases]
        )
    data, _ = codec.encode(result)
    return pb.AckRequest(
        items=[pb.AckItem(id=id_, delivery=delivery, result=data) for id_, delivery in leases]
    )


def fail_item(
    job: Lease,
    error: BaseException | JobError | str | None,
    *,
    then: FailActionName = FailAction.RETRY,
    retry_after: Seconds | None = None,
) -> pb.FailItem:
    """Returns the item of a failed job, for a call or a stream."""
    id_, delivery = lease_of(job)
    return pb.FailItem(
        id=id_,
        delivery=delivery,
        error=JobError.of(error).to_message(),
        then=pb.FailAction.ValueType(named(FailAction, then)),
        retry_after=duration_given("retry_after", retry_after),
    )


def failed_of(result: pb.FailResult) -> Failed:
    """Returns the outcome of one failed job."""
    return Failed(
        outcome=known(SettleOutcome, result.outcome),
        state=known(JobState, result.state),
        run_at=from_timestamp(result.run_at) if result.HasField("run_at") else None,
    )


def extend_item(  # noqa: PLR0913  # one argument a field of the protocol's message
    job: Lease,
    *,
    lease: Seconds | None = None,
    progress: float | None = None,
    message: str | None = None,
    checkpoint: Any = None,
    log: Iterable[str] = (),
    level: LogLevelName = LogLevel.INFO,
    phase: str = "",
    phase_result: Any = None,
) -> pb.ExtendItem:
    """Returns the item of a lease to extend, with what the worker reports."""
    id_, delivery = lease_of(job)
    return message_of(
        pb.ExtendItem,
        id=id_,
        delivery=delivery,
        lease=duration_given("lease", lease),
        progress=progress,
        message=message,
        checkpoint=None if checkpoint is None else codec.encode(checkpoint)[0],
        logs=_log_lines(list_given("log", log), level),
        phase=phase,
        phase_result=b"" if phase_result is None else codec.encode(phase_result)[0],
    )


def _log_lines(lines: Sequence[str], level: LogLevelName) -> job_pb2.LogLines | None:
    if not lines:
        return None
    number = job_pb2.LogLevel.ValueType(named(LogLevel, level))
    return message_of(job_pb2.LogLines, lines=lines, levels=[number] * len(lines))


def outcomes_of(
    response: pb.AckResponse | pb.ReleaseResponse | pb.ExtendResponse, count: int
) -> list[SettleOutcome]:
    """Returns the outcome of each of `count` settled jobs, in order."""
    outcomes = [SettleOutcome.DONE] * count
    for entry in response.exceptions:
        outcomes[entry.index] = known(SettleOutcome, entry.outcome)
    return outcomes


class Watching:
    """The state of a watch over broken connections: the filter, and where to resume."""

    def __init__(
        self,
        *,
        queues: Iterable[str],
        job_id: int | None,
        kinds: Iterable[EventKindName],
        resume_token: str,
    ) -> None:
        self._request = message_of(
            pb.WatchRequest,
            queues=list_given("queues", queues),
            job_id=job_id or 0,
            kinds=[event_pb2.EventKind.ValueType(kind) for kind in all_named(EventKind, kinds)],
            resume_token=resume_token,
            accepts_runs=True,
        )
        # Of the last piece of a result: those that are kept come again on a new connection.
        self._piece = 0, 0
        self.tries = 0

    def request(self) -> pb.WatchRequest:
        """Returns the next request."""
        self.tries += 1
        return self._request

    def take(self, response: pb.WatchResponse) -> Iterator[WatchedEvent]:
        """Yields the events of a response. The next request resumes after them; the first response
        ends a series of failed tries.
        """
        self.tries = 0
        if response.resume_token:
            self._request.resume_token = response.resume_token
        return filter(self._is_new, watched_events(response))

    def _is_new(self, watched: WatchedEvent) -> bool:
        """Returns whether an event is no piece of a result that came before."""
        event = watched.event
        if event.kind is not EventKind.PARTIAL:
            return True
        before, self._piece = self._piece, (event.delivery, event.partial_number)
        if before[0] == event.delivery and before >= self._piece:
            self._piece = before
            return False
        return True

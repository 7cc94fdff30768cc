"""The tree of errors: what a caller may catch, and what it can read from what it caught.

The message of an error names the request, the reason, and what to do. The classes follow the
reasons of the protocol (`jobline.v1.ErrorReason`). `_status` makes them from what a server sent;
nothing here depends on gRPC. The base classes, and what was not found, are defined in
`_base_errors`, limits that were reached in `_full_errors`, those of jobs that were not done in
`_job_end`.
"""

from __future__ import annotations

from jobline._base_errors import (
    NO_FACTS,
    BatchNotFound,
    CodecError,
    ErrorFacts,
    FailedPrecondition,
    InvalidArgument,
    JoblineError,
    JobNotFound,
    KeyErased,
    LeaseLost,
    LimiterNotFound,
    NotFound,
    OperationNotFound,
    PermissionDenied,
    QueueNotFound,
    ScheduleNotFound,
    SealError,
    WebhookNotFound,
    _Refused,
)
from jobline._full_errors import (
    BatchesFull,
    BufferFull,
    ClientRateExceeded,
    DiskFull,
    GroupFull,
    GroupsFull,
    KeysFull,
    LimitersFull,
    QueueFull,
    ResourceExhausted,
    SchedulesFull,
    ServerFull,
    TooLarge,
    TooManyCalls,
    WebhooksFull,
)
from jobline._job_end import JobCancelled, JobDead, JobExpired, JobNotDone

__all__ = [
    "AlreadyExists",
    "AlreadyUndone",
    "BackupRunning",
    "BatchComplete",
    "BatchNotFound",
    "BatchesFull",
    "BufferFull",
    "ChangedSince",
    "ClientClosed",
    "ClientRateExceeded",
    "CodecError",
    "DataLoss",
    "DeadlineExceeded",
    "DiskFull",
    "ErrorFacts",
    "FailedPrecondition",
    "GroupFull",
    "GroupsFull",
    "IdempotencyMismatch",
    "Internal",
    "InvalidArgument",
    "JobCancelled",
    "JobDead",
    "JobExpired",
    "JobNotDone",
    "JobNotFound",
    "JoblineError",
    "KeyErased",
    "KeysFull",
    "LeaseLost",
    "LimiterNotFound",
    "LimitersFull",
    "NoBackupDestination",
    "NotConnected",
    "NotFound",
    "NotServed",
    "NotUndoable",
    "OffsetGone",
    "OperationNotFound",
    "OutOfRange",
    "OutcomeUnknown",
    "PayloadMisfit",
    "PermissionDenied",
    "ProtocolMistake",
    "QueueActive",
    "QueueFull",
    "QueueNotCreated",
    "QueueNotFound",
    "ResourceExhausted",
    "ScheduleExists",
    "ScheduleNotFound",
    "SchedulesFull",
    "SealError",
    "ServerFull",
    "TooLarge",
    "TooManyCalls",
    "Unauthenticated",
    "Unavailable",
    "UniqueKeyHeld",
    "WaitTimeout",
    "WebhookExists",
    "WebhookNotFound",
    "WebhooksFull",
    "WrongState",
]


# ------------------------------------------------------------------ refused: nothing has changed


class PayloadMisfit(InvalidArgument):
    """The payload fits no schema that the handlers of its name announce, and its queue checks that
    (`check_payloads`). The message names the place in the schema.
    """


class AlreadyExists(_Refused):
    """There is such a thing already."""


class WebhookExists(AlreadyExists):
    """There is a webhook of this name, or of this incoming queue."""


class ScheduleExists(AlreadyExists):
    """There is a schedule of this name, or it has another queue, which cannot change."""


class IdempotencyMismatch(AlreadyExists):
    """The `job_key` is known with another payload, or the `request_id` with another request."""


class UniqueKeyHeld(AlreadyExists):
    """Another job holds the `unique_key`, and the push asked for "reject"."""


class BatchComplete(FailedPrecondition):
    """The batch is complete or cancelled, and takes no new members."""


class WrongState(FailedPrecondition):
    """The job's state does not allow it: it was cancelled, or is in memory alone. Calls on many
    jobs count such jobs in their answers.
    """


class QueueActive(FailedPrecondition):
    """The queue has active jobs and `force` is not set."""


class NotUndoable(FailedPrecondition):
    """What the operation did cannot be undone, or not now; the message says why."""


class AlreadyUndone(FailedPrecondition):
    """The operation was undone before."""


class ChangedSince(FailedPrecondition):
    """What the operation changed was changed again since."""


class BackupRunning(FailedPrecondition):
    """A backup is being made; the message names it."""


class NoBackupDestination(FailedPrecondition):
    """The server was started without a destination for backups."""


class QueueNotCreated(FailedPrecondition):
    """The queue does not exist, and a push does not create it. No server of this version raises it:
    every push creates its queue.
    """


class ProtocolMistake(FailedPrecondition):
    """A worker stream broke the protocol; the message names the place."""


class ClientClosed(FailedPrecondition):
    """The client or worker was closed."""


class OutOfRange(_Refused):
    """A position is outside what is kept."""


class OffsetGone(OutOfRange):
    """The events after this resume token are gone: list what there is, then watch from now."""


class NotServed(_Refused):
    """Part of the protocol that this server does not serve yet; `field` names it."""


class Unauthenticated(_Refused):
    """The caller is not known."""


# ------------------------------------------------------------------ no definite answer


class Unavailable(JoblineError):
    """No server answered, or it is draining. Reads may simply be repeated."""

    retryable = True


class NotConnected(Unavailable):
    """No server could be reached since the client was made: nothing was sent."""

    definite = True


class DeadlineExceeded(JoblineError):
    """The answer did not come in time."""

    retryable = True


class OutcomeUnknown(JoblineError):
    """A write was sent and no definite answer came: it may have happened or not.

    Repeat a push with the same `job_key`, or with this error's `request_id` (`push_many`,
    `push_payloads`; within 10 minutes, from any process), and nothing is stored twice. A `push`
    whose call carried those of other callers too has no `request_id`: give it a `job_key`.
    """

    retryable = True

    def __init__(
        self, message: str, facts: ErrorFacts = NO_FACTS, *, request_id: str | None = None
    ) -> None:
        super().__init__(message, facts)
        self.request_id = request_id


class DataLoss(JoblineError):
    """The stored record is damaged."""


class Internal(JoblineError):
    """A bug in the server, or an answer that is not of this protocol.

    Without a `reason` it does not come from the server, but from something between (a proxy, a
    reset connection), and another try may succeed.
    """

    def __init__(self, message: str, facts: ErrorFacts = NO_FACTS) -> None:
        super().__init__(message, facts)
        self.retryable = not facts.reason


# ------------------------------------------------------------------ how a job ended


class WaitTimeout(JoblineError):
    """The job, or batch, has not ended in time. It goes on; `id` is what to wait for again."""

    retryable = True

    def __init__(self, message: str, job_id: int) -> None:
        super().__init__(message, ErrorFacts(metadata={"id": str(job_id)}))

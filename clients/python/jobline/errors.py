"""The tree of errors: what a caller may catch, and what it can read from what it caught.

Every error says what was asked, why not, and what to do. The names follow the reasons of the
protocol (`jobline.v1.ErrorReason`). This file knows nothing of gRPC; `_status.py` makes these of
what a server sent.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

if TYPE_CHECKING:
    from jobline._values import JobEnd

E = TypeVar("E", bound=BaseException)


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """What a server says beside the message of an error; all of it is optional."""

    reason: str = ""
    code: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    retry_after: float | None = None
    metadata: dict[str, str] = field(default_factory=dict)


_NO_FACTS = ErrorFacts()


class JoblineError(Exception):
    """Base of all errors of this package.

    `definite` means that nothing was stored or changed; `retryable` that the same call may succeed
    later (at once or after `retry_after` seconds, where the server named a time).
    """

    definite: ClassVar[bool] = False
    retryable: bool = False

    def __init__(self, message: str, facts: ErrorFacts = _NO_FACTS) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts

    @property
    def reason(self) -> str:
        """The `reason` the server gave, such as `QUEUE_FULL`; "" if it gave none."""
        return self.facts.reason

    @property
    def code(self) -> str:
        """Name of the gRPC status, such as `RESOURCE_EXHAUSTED`; "" if no server was involved."""
        return self.facts.code

    @property
    def field(self) -> str | None:
        """Path of the first field at fault, such as `jobs[3].options.lease`."""
        return next(iter(self.facts.fields), None)

    @property
    def id(self) -> int | None:
        """The job the error is about, if it is about one."""
        text = self.facts.metadata.get("id", "")
        return int(text) if text.isdecimal() else None

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the server expects another try to make sense, if it said so."""
        return self.facts.retry_after

    def twin(self) -> Self:
        """An equal error for one more caller: raised in two places, one would mix their traces."""
        twin: Self = copy(self)
        twin.__cause__ = self.__cause__
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled as it is, whatever arguments its class is made with."""
        return remade, (type(self), self.args, self.__dict__)


def remade(kind: type[E], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> E:
    """An exception as it was when it was copied or pickled."""
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(attributes)
    return error


class _Refused(JoblineError):
    definite = True


# ------------------------------------------------------------------ refused: nothing has changed


class InvalidArgument(_Refused):
    """A field is missing, malformed or out of range; `field` names it."""


class CodecError(InvalidArgument):
    """A payload or result cannot be turned into bytes, or bytes into the declared type."""


class NotFound(_Refused):
    """There is no such thing."""


class JobNotFound(NotFound):
    """There is no such job: it never was, or its retention has passed."""


class QueueNotFound(NotFound):
    """There is no such queue."""


class AlreadyExists(_Refused):
    """There is such a thing already."""


class IdempotencyMismatch(AlreadyExists):
    """The `job_key` is known with another payload, or the `request_id` with another request."""


class FailedPrecondition(_Refused):
    """The state of the server, a queue or a job does not allow it."""


class WrongState(FailedPrecondition):
    """The job's state does not allow it. No call of this version raises it: those on many jobs
    count such jobs in their answers.
    """


class QueueActive(FailedPrecondition):
    """The queue has active jobs and `force` is not set."""


class QueueNotCreated(FailedPrecondition):
    """The queue does not exist, and a push does not create it. No server of this version raises it:
    every push creates its queue.
    """


class ProtocolMistake(FailedPrecondition):
    """A worker stream broke the protocol; the message says where."""


class ClientClosed(FailedPrecondition):
    """The client or worker was closed."""


class OutOfRange(_Refused):
    """A position is outside what is kept."""


class OffsetGone(OutOfRange):
    """The events after this resume token are gone: list what there is, then watch from now."""


class NotServed(_Refused):
    """Part of the protocol that this server does not serve yet; `field` names it."""


class PermissionDenied(_Refused):
    """The caller may not do this."""


class Unauthenticated(_Refused):
    """The caller is not known."""


class ResourceExhausted(_Refused):
    """A limit is reached; nothing was stored. Try again after `retry_after`."""

    retryable = True


class QueueFull(ResourceExhausted):
    """The queue has as many waiting jobs as it may."""


class ServerFull(ResourceExhausted):
    """The server has as many waiting jobs or bytes as it may."""


class KeysFull(ResourceExhausted):
    """The server keeps as many job keys, request ids or calls of producers as it may."""


class DiskFull(ResourceExhausted):
    """The server's disk is full; acks go on."""


class TooManyCalls(ResourceExhausted):
    """As many watchers, streams or waiters as the server serves."""


class BufferFull(ResourceExhausted):
    """This client's own buffer of pushes is full: the server is slower than the callers."""


class TooLarge(ResourceExhausted):
    """The message or the batch is larger than the limit; the same call never succeeds."""

    retryable = False


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
        self, message: str, facts: ErrorFacts = _NO_FACTS, *, request_id: str | None = None
    ) -> None:
        super().__init__(message, facts)
        self.request_id = request_id


class DataLoss(JoblineError):
    """The stored record is damaged."""


class Internal(JoblineError):
    """A bug in the server, or an answer that is not of this protocol.

    Without a `reason` it was not the server that spoke, but something between (a proxy, a reset
    connection), and another try may succeed.
    """

    def __init__(self, message: str, facts: ErrorFacts = _NO_FACTS) -> None:
        super().__init__(message, facts)
        self.retryable = not facts.reason


# ------------------------------------------------------------------ how a job ended


class WaitTimeout(JoblineError):
    """The job has not ended in time. It goes on; `id` is the job to wait for again."""

    retryable = True

    def __init__(self, message: str, job_id: int) -> None:
        super().__init__(message, ErrorFacts(metadata={"id": str(job_id)}))


class JobNotDone(JoblineError):
    """A job that somebody waited for ended other than well; `end` has reason and error."""

    def __init__(self, message: str, end: JobEnd) -> None:
        super().__init__(message, ErrorFacts(reason=end.reason.name, metadata={"id": str(end.id)}))
        self.end = end


class JobDead(JobNotDone):
    """The job is in the dead letters."""


class JobCancelled(JobNotDone):
    """The job was cancelled."""


class JobExpired(JobNotDone):
    """The job's time to live passed before it ran."""

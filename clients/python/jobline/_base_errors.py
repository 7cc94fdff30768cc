"""The base of the tree of errors, and those that the client's own values raise.

They are public as `jobline.errors`, which has the rest of the tree. They have a module of their own
because values (`_enums`, `_times`, `_codec`) raise them, and `errors` needs values.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar

from jobline._printable import printable

E = TypeVar("E", bound=BaseException)


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """What a server sends beside the message of an error; all of it is optional."""

    reason: str = ""
    code: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    retry_after: float | None = None
    metadata: dict[str, str] = field(default_factory=dict)


NO_FACTS = ErrorFacts()


class JoblineError(Exception):
    """Base of all errors of this package.

    `definite` means that nothing was stored or changed; `retryable` that the same call may succeed
    later (at once or after `retry_after` seconds, where the server named a time).
    """

    definite: ClassVar[bool] = False
    retryable: bool = False

    def __init__(self, message: str, facts: ErrorFacts = NO_FACTS) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts

    def __str__(self) -> str:
        return printable(super().__str__())

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
        """Seconds after which the server suggests another try, if it sent them."""
        return self.facts.retry_after

    def twin(self) -> Self:
        """Returns an equal error for one more caller: raised in two places, one would mix their
        traces.
        """
        twin: Self = copy(self)
        twin.__cause__ = self.__cause__
        return twin

    def about(self, field: str) -> Self:
        """Returns the same refusal of another field: the one that the caller has set."""
        before = self.field
        if before is None:
            return self
        why = self.facts.fields[before]
        message = self.message.replace(f"{before}: ", f"{field}: ", 1)
        renamed = self.twin()
        renamed.args = (message, *self.args[1:])
        renamed.message, renamed.facts = message, replace(self.facts, fields={field: why})
        return renamed

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled as it is, whatever arguments its class is made with."""
        return remade, (type(self), self.args, self.__dict__)


def remade(kind: type[E], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> E:
    """Returns an exception as it was when it was copied or pickled."""
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(attributes)
    return error


class _Refused(JoblineError):
    definite = True


class InvalidArgument(_Refused):
    """A field is missing, malformed or out of range; `field` names it."""


class CodecError(InvalidArgument):
    """A payload or result cannot be turned into bytes, or bytes into the declared type."""


class SealError(CodecError):
    """A sealed frame cannot be opened: it was changed, cut off, or is no frame of this version. A
    job whose payload it is goes to the dead letters. It never has bytes of the payload.
    """


class KeyErased(SealError):
    """The key of a sealed frame is not in the key ring: it was erased, and with it what it sealed.
    A job whose payload it is goes to the dead letters.
    """


class NotFound(_Refused):
    """There is no such thing."""


class JobNotFound(NotFound):
    """There is no such job: it never was, or its retention has passed."""


class QueueNotFound(NotFound):
    """There is no such queue."""


class ScheduleNotFound(NotFound):
    """There is no such schedule."""


class WebhookNotFound(NotFound):
    """There is no such webhook."""


class LimiterNotFound(NotFound):
    """There is no such limiter."""


class BatchNotFound(NotFound):
    """There is no such batch; complete ones are kept for a time."""


class OperationNotFound(NotFound):
    """There is no such operation, or it is kept no longer."""


class PermissionDenied(_Refused):
    """The caller may not do this."""


class FailedPrecondition(_Refused):
    """The state of the server, a queue or a job does not allow it."""


class LeaseLost(FailedPrecondition):
    """The job is not leased under this delivery any more: another worker may have it."""


# Where they are public: so tracebacks, pickles and `help` name them.
for _public in (
    ErrorFacts,
    JoblineError,
    _Refused,
    InvalidArgument,
    CodecError,
    SealError,
    KeyErased,
    NotFound,
    JobNotFound,
    QueueNotFound,
    ScheduleNotFound,
    LimiterNotFound,
    WebhookNotFound,
    BatchNotFound,
    OperationNotFound,
    PermissionDenied,
    FailedPrecondition,
    LeaseLost,
):
    _public.__module__ = "jobline.errors"

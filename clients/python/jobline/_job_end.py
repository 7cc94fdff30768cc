"""How a job ended: `JobEnd`, and the errors that carry one.

They refer to each other, so they share a module; the errors are public as `jobline.errors`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from jobline import _codec as codec
from jobline import _typed_json as typed_json
from jobline._base_errors import (
    CodecError,
    ErrorFacts,
    JoblineError,
    JobNotFound,
    PermissionDenied,
)
from jobline._enums import EndReason, JobState, known
from jobline._sealed_frames import is_frame, refuse_sealed
from jobline._times import from_timestamp
from jobline._values import JobError
from jobline.v1 import job_service_pb2


class JobNotDone(JoblineError):
    """A job that was waited for ended other than well; `end` has reason and error."""

    def __init__(self, message: str, end: JobEnd) -> None:
        super().__init__(message, ErrorFacts(reason=end.reason.name, metadata={"id": str(end.id)}))
        self.end = end


class JobDead(JobNotDone):
    """The job is in the dead letters."""


class JobCancelled(JobNotDone):
    """The job was cancelled."""


class JobExpired(JobNotDone):
    """The job's time to live passed before it ran."""


def hidden_result(job_id: int) -> PermissionDenied:
    """Returns the error of a result that the server has left out."""
    facts = ErrorFacts(reason="RESULT_HIDDEN", metadata={"id": str(job_id)})
    return PermissionDenied(
        f"the result of job {job_id} needs the verb read_payload for its queue", facts
    )


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How one job ended. `state` is COMPLETED, DEAD, CANCELLED or EXPIRED; UNSPECIFIED if
    `not_found`, with a `reason` if it was deleted during the wait. `result_hidden`: there is a
    result, which the caller may not see.
    """

    id: int
    state: JobState
    result: bytes = b""
    reason: EndReason = EndReason.UNSPECIFIED
    error: JobError | None = None
    ended_at: datetime | None = None
    not_found: bool = False
    result_hidden: bool = False

    @classmethod
    def from_message(cls, message: job_service_pb2.WaitResponse) -> Self:
        """Returns the value of the protocol's message."""
        return cls(
            id=message.id,
            state=known(JobState, message.state),
            result=message.result,
            reason=known(EndReason, message.reason),
            error=JobError.from_message(message.error) if message.HasField("error") else None,
            ended_at=from_timestamp(message.ended_at) if message.HasField("ended_at") else None,
            not_found=message.not_found,
            result_hidden=message.result_hidden,
        )

    @property
    def ok(self) -> bool:
        """Whether it completed."""
        return self.state is JobState.COMPLETED

    def value(self, kind: Any = Any) -> Any:
        """Returns the result: as the given type, or as JSON if it is JSON, else bytes; None if
        there is none.

        Raises JobDead, JobCancelled, JobExpired or JobNotFound if the job did not complete,
        CodecError if its result is not of that type, and PermissionDenied if the caller may not see
        it.
        """
        if not self.ok:
            raise self.exception()
        if self.result_hidden:
            raise hidden_result(self.id)
        if kind is not Any:
            return typed_json.decode_as(kind, self.result, codec.JSON) if self.result else None
        # A result travels without a content type; what the worker's client wrote is JSON or bytes.
        if not self.result:
            return None
        if is_frame(self.result):
            refuse_sealed(self.result)
        try:
            return codec.decode_json(self.result)
        except CodecError:
            return self.result

    def exception(self) -> JobNotDone | JobNotFound:
        """Returns the error of a job that did not complete."""
        if self.not_found:
            if self.reason is EndReason.DELETED:
                return JobNotFound(f"job {self.id} was deleted before it ended")
            if self.reason is EndReason.QUEUE_DELETED:
                return JobNotFound(f"job {self.id} was deleted with its queue before it ended")
            return JobNotFound(f"there is no job {self.id}, or its retention has passed")
        kind = _ENDS.get(self.state, JobNotDone)
        why = f": {self.error.type}: {self.error.message}" if self.error is not None else ""
        message = f"job {self.id} is {self.state.name} ({self.reason.name.lower()}){why}"
        return kind(message, self)


_ENDS: dict[JobState, type[JobNotDone]] = {
    JobState.DEAD: JobDead,
    JobState.CANCELLED: JobCancelled,
    JobState.EXPIRED: JobExpired,
}

# Where they are public: so tracebacks, pickles and `help` name them.
for _public in (JobNotDone, JobDead, JobCancelled, JobExpired):
    _public.__module__ = "jobline.errors"

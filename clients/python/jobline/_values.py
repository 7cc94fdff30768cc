"""What the client returns: pushed jobs, failed jobs, errors of jobs."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import NamedTuple, Self

from jobline._enums import AckLevel, JobState, PushOutcome, SettleOutcome
from jobline.v1 import job_pb2

# The server cuts at these sizes anyway; what is cut here need not travel.
TEXT_BYTES_MAX = 4 << 10
_TYPE_CHARACTERS_MAX = 256
_STACK_BYTES_MAX = 16 << 10
_DETAILS_BYTES_MAX = 16 << 10

# Where a handler is called from. Who reads its stack wants to know what it did itself.
_RUNNERS = frozenset(
    f"jobline._worker.{name}"
    for name in ("isolated", "loop_runners", "middleware", "thread_runners")
)


class Pushed(NamedTuple):
    """The outcome of one pushed job. `id` is the job's, or that of the job it is a duplicate of.
    `reason`: why it is REFUSED, such as "UNIQUE_KEY_HELD"; "" if it is not.
    """

    id: int
    outcome: PushOutcome
    ack_level: AckLevel
    reason: str = ""

    @property
    def created(self) -> bool:
        """Whether this push stored it."""
        return self.outcome is PushOutcome.CREATED

    @property
    def duplicate(self) -> bool:
        """Whether its key was known, or a first try of this very push had already stored it."""
        return self.outcome is PushOutcome.DUPLICATE


@dataclass(frozen=True, slots=True)
class PushedLot:
    """The outcome of `push_payloads`: `count` new jobs with the ids first_id … first_id + count
    − 1. `outcomes`: what became of each payload, if they had unique keys.
    """

    first_id: int
    count: int
    ack_level: AckLevel
    outcomes: Sequence[Pushed] = ()

    @property
    def ids(self) -> Sequence[int]:
        """The ids, in the order of the payloads."""
        if self.outcomes:
            return [each.id for each in self.outcomes]
        return range(self.first_id, self.first_id + self.count)


@dataclass(frozen=True, slots=True)
class QueueWeight:
    """A queue to take from, and its share beside the others, 1 … 1,000."""

    queue: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class JobError:
    """Why a job failed: class of the error (≤ 256 characters), one sentence (4 KiB), stack trace
    (16 KiB, its end), anything a program wants to read (16 KiB). What is longer is cut.
    """

    type: str = ""
    message: str = ""
    stack: str = ""
    details: bytes = b""

    @classmethod
    def of(cls, error: BaseException | JobError | str | None) -> JobError:
        """Returns the error of an exception (with its stack), of a text, or an empty one."""
        if isinstance(error, JobError):
            return error
        if isinstance(error, BaseException):
            frames = below_runners(error.__traceback__)
            stack = "".join(traceback.format_exception(type(error), error, frames))
            return cls(type(error).__qualname__, message_of(error), stack)
        return cls(message=error or "")

    @classmethod
    def from_message(cls, message: job_pb2.JobError) -> Self:
        """Returns the value of the protocol's message."""
        return cls(message.type, message.message, message.stack, message.details)

    def to_message(self) -> job_pb2.JobError:
        """Returns the message of the protocol: cut, and without what no message may hold, so that a
        job can always fail.
        """
        stack = clean(self.stack).encode()[-_STACK_BYTES_MAX:]  # the end is the place of the error
        return job_pb2.JobError(
            type=clean("".join(filter(str.isprintable, self.type)))[:_TYPE_CHARACTERS_MAX],
            message=short(self.message),
            stack=stack.decode("utf-8", "ignore"),
            details=self.details[:_DETAILS_BYTES_MAX],
        )


def below_runners(trace: TracebackType | None) -> TracebackType | None:
    """Returns a traceback without the frames at its top that run handlers."""
    left = trace
    while left is not None and left.tb_frame.f_globals.get("__name__") in _RUNNERS:
        left = left.tb_next
    return left or trace


def message_of(error: BaseException) -> str:
    """Returns the text of an exception, even if its class raises when asked."""
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001  # a user's __str__ may raise anything
        return f"(its text cannot be read: {type(broken).__name__})"


def short(text: str) -> str:
    """Returns a sentence as a message may hold it: at most 4 KiB of UTF-8."""
    return clean(text).encode()[:TEXT_BYTES_MAX].decode("utf-8", "ignore")


def clean(text: str) -> str:
    """Returns text without lone surrogates, which file names may bring and which are no text."""
    return text.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class Failed:
    """The outcome of one failed job: its state now, and when its next attempt may start."""

    outcome: SettleOutcome
    state: JobState
    run_at: datetime | None

"""Commands and their outcomes: what callers ask the engine, and what it answers.

A command that cannot be carried out is answered with `Refused`; nothing has changed then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from jobline_server.engine import limits
from jobline_server.engine.payloads import NO_PAYLOADS, Payloads
from jobline_server.engine.producers import Call
from jobline_server.engine.values import (
    AckLevel,
    EndReason,
    FailAction,
    JobError,
    JobOptions,
    JobState,
    LeaseReason,
    PushOutcome,
    ReleaseReason,
    SettleOutcome,
)


class RefusalKind(Enum):
    """Why a command was refused; each has one status on the wire."""

    INVALID_FIELD = "INVALID_FIELD"
    INVALID_PAGE_TOKEN = "INVALID_PAGE_TOKEN"
    NOT_SERVED = "NOT_SERVED"
    JOB_NOT_FOUND = "JOB_NOT_FOUND"
    QUEUE_NOT_FOUND = "QUEUE_NOT_FOUND"
    QUEUE_NOT_CREATED = "QUEUE_NOT_CREATED"
    IDEMPOTENCY_MISMATCH = "IDEMPOTENCY_MISMATCH"
    WRONG_STATE = "WRONG_STATE"
    QUEUE_ACTIVE = "QUEUE_ACTIVE"
    QUEUE_FULL = "QUEUE_FULL"
    SERVER_FULL = "SERVER_FULL"
    KEYS_FULL = "KEYS_FULL"
    REQUEST_IDS_FULL = "REQUEST_IDS_FULL"
    PRODUCERS_FULL = "PRODUCERS_FULL"
    CALL_OVER = "CALL_OVER"
    DISK_FULL = "DISK_FULL"
    TOO_LARGE = "TOO_LARGE"
    TOO_MANY_CALLS = "TOO_MANY_CALLS"
    DRAINING = "DRAINING"
    OFFSET_GONE = "OFFSET_GONE"
    PROTOCOL_MISTAKE = "PROTOCOL_MISTAKE"
    SESSION_TAKEN = "SESSION_TAKEN"
    DATA_LOSS = "DATA_LOSS"
    STORAGE_FAILED = "STORAGE_FAILED"
    SHARD_UNAVAILABLE = "SHARD_UNAVAILABLE"


class Refused(Exception):
    """A command that was not carried out, and changed nothing.

    `field` is the protocol's path of the field at fault, if one is; `retry_after_ms` says when
    another try makes sense, if it does.
    """

    def __init__(
        self, kind: RefusalKind, message: str, *, field: str = "", retry_after_ms: int | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.field = field
        self.retry_after_ms = retry_after_ms


@dataclass(slots=True, eq=False)
class JobColumns:
    """Jobs to push that have something of their own, as columns: an object for each would be the
    second one that a job costs. `job_keys` and `run_at_ms` are empty if no job has any; a key of ""
    is none, and a time of 0 means at once.
    """

    payloads: list[bytes]
    options: list[JobOptions]
    job_keys: list[str] = field(default_factory=list)
    run_at_ms: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.payloads)

    def picked(self, indexes: Sequence[int]) -> JobColumns:
        """Some of them."""
        return JobColumns(
            [self.payloads[index] for index in indexes],
            [self.options[index] for index in indexes],
            [self.job_keys[index] for index in indexes] if self.job_keys else [],
            [self.run_at_ms[index] for index in indexes] if self.run_at_ms else [],
        )


NO_ROWS = JobColumns([], [])


@dataclass(slots=True)
class Push:
    """Jobs for one queue: `rows` first, then plain `payloads`, which share `options` and
    `run_at_ms`.
    """

    queue: str
    options: JobOptions
    rows: JobColumns = NO_ROWS
    payloads: Payloads = NO_PAYLOADS
    run_at_ms: int = 0
    level: AckLevel | None = None
    atomic: bool = True
    request_id: bytes = b""
    request_digest: int = 0
    """Digest of the whole call; compared when the same `request_id` comes again."""
    calls: tuple[Call, ...] = ()
    """The calls of producers that this is: one, or several of plain payloads, of which `call_jobs`
    says how many jobs each has.
    """
    call_jobs: tuple[int, ...] = ()
    has_room: bool = False
    """Whether its jobs need no room found for them, because what they follow from was let in."""


@dataclass(slots=True)
class Pushed:
    """Created jobs have the ids `first_id … first_id + count − 1`; `exceptions` holds
    `(index, outcome, id)` of the others."""

    first_id: int
    count: int
    level: AckLevel
    exceptions: list[tuple[int, PushOutcome, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Pull:
    """A call for jobs of `queues`, which are (name, weight), that waits up to `wait_ms` for the
    first one. `lease_ms` None leaves each job its own; no `names` means any.
    """

    queues: tuple[tuple[str, int], ...]
    max_jobs: int = 1
    wait_ms: int = 0
    lease_ms: int | None = None
    worker: str = ""
    request_id: bytes = b""
    accepts_runs: bool = False
    names: frozenset[str] = frozenset()
    message_bytes_max: int = limits.MESSAGE_BYTES_DEFAULT


@dataclass(slots=True)
class LeasedJob:
    """One job handed out, with what its worker needs. `ready_ms` is since when it could be."""

    id: int
    delivery: int
    queue: str
    options: JobOptions
    payload: bytes
    attempt: int
    reason: LeaseReason
    lease_ms: int
    worker_checkpoint: bytes
    pushed_ms: int
    job_key: str
    ready_ms: int = 0


@dataclass(slots=True)
class LeasedRun:
    """Neighbours of one lot handed out together; all are on their first attempt."""

    first_id: int
    delivery: int
    queue: str
    options: JobOptions
    payloads: Payloads
    lease_ms: int
    pushed_ms: int
    ready_ms: int = 0


@dataclass(slots=True)
class Leased:
    """What one consumer was handed: the runs, then the jobs. Where that is not the order in which
    they were handed out, `in_order` holds both as they were. A consumer that takes no runs is told
    of them `one_by_one`.
    """

    jobs: list[LeasedJob] = field(default_factory=list)
    runs: list[LeasedRun] = field(default_factory=list)
    in_order: list[LeasedJob | LeasedRun] = field(default_factory=list)
    one_by_one: bool = False

    def items(self) -> Sequence[LeasedJob | LeasedRun]:
        """Jobs and runs in the order in which they were handed out."""
        return self.in_order or [*self.runs, *self.jobs]

    def count(self) -> int:
        """Number of jobs."""
        return len(self.jobs) + sum(len(run.payloads) for run in self.runs)

    def payload_bytes(self) -> int:
        """Bytes of the payloads of all jobs."""
        of_runs = sum(run.payloads.bytes_of(0, len(run.payloads)) for run in self.runs)
        return sum(len(job.payload) for job in self.jobs) + of_runs


@dataclass(slots=True)
class FailItem:
    """One failed job; `retry_after_ms` overrides the backoff."""

    id: int
    delivery: int
    error: JobError
    then: FailAction = FailAction.RETRY
    retry_after_ms: int | None = None


@dataclass(slots=True)
class FailResult:
    """What became of it, and where the job stands now; `run_at_ms` 0 unless it waits."""

    outcome: SettleOutcome
    state: JobState | None = None
    run_at_ms: int = 0


@dataclass(slots=True)
class ReleaseItem:
    """One job given back; `delay_ms` 0 puts it back in its lane at once, where it stood."""

    id: int
    delivery: int
    delay_ms: int = 0
    why: ReleaseReason = ReleaseReason.INTERRUPTED


@dataclass(slots=True)
class ExtendItem:
    """One lease kept alive; `None` leaves things as they are."""

    id: int
    delivery: int
    lease_ms: int | None = None
    progress: float | None = None
    message: str | None = None
    worker_checkpoint: bytes | None = None


@dataclass(slots=True)
class Ended:
    """How a job ended, told to those who wait for it. `state` None: it was deleted before."""

    id: int
    state: JobState | None
    ended_ms: int
    reason: EndReason = EndReason.NONE
    result: bytes = b""
    error: JobError | None = None


NotDone = list[tuple[int, SettleOutcome]]
"""Outcomes that are not DONE, by index."""

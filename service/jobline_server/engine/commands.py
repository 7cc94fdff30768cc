"""Commands and outcomes. One that cannot be carried out raises `Refused` and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from jobline_server.engine import limits
from jobline_server.engine.job_columns import NO_ROWS, JobColumns
from jobline_server.engine.job_log import NewLine
from jobline_server.engine.payloads import NO_PAYLOADS, Payloads
from jobline_server.engine.phases import FinishedPhase
from jobline_server.engine.producers import Call
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import (
    AckLevel,
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
    """The reason why a command was refused; each has one status on the wire."""

    INVALID_FIELD = "INVALID_FIELD"
    INVALID_PAGE_TOKEN = "INVALID_PAGE_TOKEN"
    NOT_SERVED = "NOT_SERVED"
    JOB_NOT_FOUND = "JOB_NOT_FOUND"
    QUEUE_NOT_FOUND = "QUEUE_NOT_FOUND"
    QUEUE_NOT_CREATED = "QUEUE_NOT_CREATED"
    IDEMPOTENCY_MISMATCH = "IDEMPOTENCY_MISMATCH"
    WRONG_STATE = "WRONG_STATE"
    LEASE_LOST = "LEASE_LOST"
    UNIQUE_KEY_HELD = "UNIQUE_KEY_HELD"
    QUEUE_ACTIVE = "QUEUE_ACTIVE"
    QUEUE_FULL = "QUEUE_FULL"
    GROUP_FULL = "GROUP_FULL"
    GROUPS_FULL = "GROUPS_FULL"
    SERVER_FULL = "SERVER_FULL"
    KEYS_FULL = "KEYS_FULL"
    REQUEST_IDS_FULL = "REQUEST_IDS_FULL"
    PRODUCERS_FULL = "PRODUCERS_FULL"
    DEPENDENCIES_FULL = "DEPENDENCIES_FULL"
    JOB_AWAITED = "JOB_AWAITED"
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
    PAYLOAD_MISFIT = "PAYLOAD_MISFIT"
    LIMITER_NOT_FOUND = "LIMITER_NOT_FOUND"
    LIMITERS_FULL = "LIMITERS_FULL"
    CLIENT_RATE = "CLIENT_RATE"
    SCHEDULE_NOT_FOUND = "SCHEDULE_NOT_FOUND"
    SCHEDULE_EXISTS = "SCHEDULE_EXISTS"
    SCHEDULES_FULL = "SCHEDULES_FULL"
    WEBHOOK_NOT_FOUND = "WEBHOOK_NOT_FOUND"
    WEBHOOK_EXISTS = "WEBHOOK_EXISTS"
    WEBHOOKS_FULL = "WEBHOOKS_FULL"
    BAD_SIGNATURE = "BAD_SIGNATURE"
    BATCH_NOT_FOUND = "BATCH_NOT_FOUND"
    BATCH_COMPLETE = "BATCH_COMPLETE"
    BATCHES_FULL = "BATCHES_FULL"
    OPERATION_NOT_FOUND = "OPERATION_NOT_FOUND"
    NOT_UNDOABLE = "NOT_UNDOABLE"
    ALREADY_UNDONE = "ALREADY_UNDONE"
    CHANGED_SINCE = "CHANGED_SINCE"
    BACKUP_RUNNING = "BACKUP_RUNNING"
    NO_BACKUP_DESTINATION = "NO_BACKUP_DESTINATION"


class Refused(Exception):
    """Raised for a command that was not carried out; it changed nothing. `field` is the protocol's
    path of the invalid field; `retry_after_ms`: a retry makes sense.
    """

    def __init__(
        self, kind: RefusalKind, message: str, *, field: str = "", retry_after_ms: int | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.field = field
        self.retry_after_ms = retry_after_ms


@dataclass(slots=True)
class Push:
    """Pushes jobs to one queue: `rows`, then `payloads`, which share `options` and `run_at_ms`."""

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
    """The producers' calls that it carries out: one, or several without `rows`; see `call_jobs`."""
    call_jobs: tuple[int, ...] = ()
    """The number of jobs of each call."""
    listed: int | None = None
    """How many jobs were sent in `jobs`; None: all rows. For `push_fields`, as are the next two."""
    shared_options: JobOptions | None = None
    """Options that the push shares, where `options` has those of its only jobs as well."""
    shared_ties: Ties = NO_TIES
    """Ties that the push shares; those of each row include them."""
    has_room: bool = False
    """Whether to skip the checks for room, as the command that caused this push was admitted."""
    is_checked: bool = False
    """Whether `FlowChecks` let it in, besides: nothing refuses it now."""


@dataclass(slots=True)
class Pushed:
    """The outcome of a push: new jobs have the ids `first_id … first_id + count − 1`; `exceptions`
    holds `(index, outcome, id)` of the others: why, and 0, for one that was refused alone.
    """

    first_id: int
    count: int
    level: AckLevel
    exceptions: list[tuple[int, PushOutcome | RefusalKind, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Pull:
    """Pulls jobs of `queues`, which are (name, weight); waits up to `wait_ms` for the first one.
    `lease_ms` None: each job has its effective lease time; empty `names`: all.
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
    """One leased job, as the worker gets it. `ready_ms` is when it became READY."""

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
    group: str = ""
    phases: tuple[FinishedPhase, ...] = ()
    is_once: bool = False
    continues_group: bool = False

    def count(self) -> int:
        """Returns the number of jobs, which is 1."""
        return 1


@dataclass(slots=True)
class LeasedRun:
    """A leased run of one lot; all its jobs are on their first attempt."""

    first_id: int
    delivery: int
    queue: str
    options: JobOptions
    payloads: Payloads
    lease_ms: int
    pushed_ms: int
    ready_ms: int = 0
    is_once: bool = False

    def count(self) -> int:
        """Returns the number of jobs."""
        return len(self.payloads)


@dataclass(slots=True)
class Leased:
    """The jobs and runs leased to one consumer. They were leased in the order runs, then jobs,
    unless `in_order` holds another. `one_by_one` expands runs for a consumer that accepts none.
    `has_once`: some may be handed out only once; see `decide.once`.
    """

    jobs: list[LeasedJob] = field(default_factory=list)
    runs: list[LeasedRun] = field(default_factory=list)
    in_order: list[LeasedJob | LeasedRun] = field(default_factory=list)
    one_by_one: bool = False
    has_once: bool = False

    @classmethod
    def of(cls, items: Sequence[LeasedJob | LeasedRun]) -> Leased:
        """Returns jobs and runs that were leased in this order."""
        runs = [item for item in items if isinstance(item, LeasedRun)]
        jobs = [item for item in items if isinstance(item, LeasedJob)]
        is_runs_first = all(isinstance(item, LeasedRun) for item in items[: len(runs)])
        return cls(jobs, runs, [] if is_runs_first else list(items))

    def items(self) -> Sequence[LeasedJob | LeasedRun]:
        """Returns jobs and runs in the order in which they were leased."""
        return self.in_order or [*self.runs, *self.jobs]

    def mark_once(self, is_once: Callable[[JobOptions], bool]) -> None:
        """Marks the jobs and runs that may be handed out only once."""
        for item in self.items():
            item.is_once = is_once(item.options)
            self.has_once |= item.is_once

    def count(self) -> int:
        """Returns the number of jobs."""
        return len(self.jobs) + sum(len(run.payloads) for run in self.runs)

    def payload_bytes(self) -> int:
        """Returns the payload bytes of all jobs."""
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
    """The outcome of a fail, and the state of the job after it; `run_at_ms` is 0 unless that is
    SCHEDULED.
    """

    outcome: SettleOutcome
    state: JobState | None = None
    run_at_ms: int = 0


@dataclass(slots=True)
class ReleaseItem:
    """One released job; `delay_ms` 0 returns it to its old place in its lane at once. `until_ms`:
    until when `limiter` lets nothing out, or the job's queue if that is "".
    """

    id: int
    delivery: int
    delay_ms: int = 0
    why: ReleaseReason = ReleaseReason.INTERRUPTED
    until_ms: int = 0
    limiter: str = ""


@dataclass(slots=True)
class ExtendItem:
    """One lease to extend; a field of `None` changes nothing."""

    id: int
    delivery: int
    lease_ms: int | None = None
    progress: float | None = None
    message: str | None = None
    worker_checkpoint: bytes | None = None
    lines: Sequence[NewLine] = ()
    phase: str = ""
    phase_result: bytes = b""
    partial: bytes = b""
    """Not decided about: those who wait for the job get it."""


NotDone = list[tuple[int, SettleOutcome]]
"""Outcomes that are not DONE, by index."""

"""Entries: all facts that change a shard.

A fact is named in the past tense. Only `apply` changes the state by it; storage writes it, recovery
applies it again, watchers get an event. Most facts cover a batch: `starts=[7], counts=[3]` names
jobs 7, 8, 9. On disk it is `proto/jobline/v1/entry.proto`; fields below a line of dashes are not
written. Facts of queues, limiters and the like are in files of their own; `Fact` lists all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from jobline_server.engine import limits
from jobline_server.engine.batch_entries import BatchFact
from jobline_server.engine.blocked_entries import BlockedFact
from jobline_server.engine.group_entries import GroupFact
from jobline_server.engine.holder import Holder
from jobline_server.engine.limiter_entries import LimiterFact
from jobline_server.engine.message_entries import MessageFact
from jobline_server.engine.operation_entries import OperationRecorded
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.producers import Call
from jobline_server.engine.queue_entries import QueueFact
from jobline_server.engine.records import JobRecord
from jobline_server.engine.report_entries import JobLogged, JobReported, PhaseCompleted
from jobline_server.engine.schedule_entries import ScheduleFact
from jobline_server.engine.server_entries import ServerNoted
from jobline_server.engine.ties import Ties
from jobline_server.engine.unique_entries import UniqueKeyFact
from jobline_server.engine.update_entries import JobUpdated, KeyForgotten
from jobline_server.engine.values import (
    EndReason,
    JobError,
    JobOptions,
    JobState,
    ReleaseReason,
)
from jobline_server.engine.webhook_entries import WebhookFact


@dataclass(slots=True)
class LotPushed:
    """Jobs `first_id … first_id + len(payloads) − 1`, which share options, were stored: the first
    `call_jobs[0]` by `calls[0]`, and so on. `digests` are those of the column of job keys.
    """

    at_ms: int
    queue: str
    first_id: int
    options: JobOptions
    payloads: Payloads
    run_at_ms: int = 0
    digests: tuple[int, ...] = ()
    request_hash: bytes = b""
    request_digest: int = 0
    aged_ms: int = 0
    calls: tuple[Call, ...] = ()
    call_jobs: tuple[int, ...] = ()
    stored_rows: bytes = b""
    # ----
    volatile: bool = False


@dataclass(slots=True)
class JobsPushed:
    """Jobs with their own options were stored, in columns; one is empty if no job has a value.
    `blocked` are the indexes of those that are BLOCKED, in order; two more columns are theirs.
    `stored_rows` is as in `KeyRecord`.
    """

    at_ms: int
    queue: str
    first_id: int
    options: list[JobOptions]
    payloads: list[bytes]
    run_at_ms: list[int] = field(default_factory=list)
    job_keys: list[str] = field(default_factory=list)
    digests: list[int] = field(default_factory=list)
    request_hash: bytes = b""
    request_digest: int = 0
    aged_ms: int = 0
    calls: tuple[Call, ...] = ()
    call_jobs: tuple[int, ...] = ()
    stored_rows: bytes = b""
    ties: list[Ties] = field(default_factory=list)
    blocked: list[int] = field(default_factory=list)
    parents_left: list[tuple[int, ...]] = field(default_factory=list)
    blocked_until_ms: list[int] = field(default_factory=list)
    # ----
    volatile: bool = False


@dataclass(slots=True)
class JobsReady:
    """SCHEDULED jobs of one queue became READY: whole lots by first id, then jobs by id."""

    at_ms: int
    queue: str
    ids: list[int]
    lots: list[int]
    promoted: bool = False
    # ----
    runs: list[tuple[int, int]] = field(default_factory=list)  # of the lots; `apply` sets it


@dataclass(slots=True)
class JobsLeased:
    """Jobs of one queue were leased, in this order, as runs with a delivery each; a single job is a
    run of one. With `lease_ms` 0 each job has its effective lease time.
    """

    at_ms: int
    queue: str
    worker: str
    session: str
    lease_ms: int
    starts: list[int]
    counts: list[int]
    deliveries: list[int]
    version: str = ""
    # ----
    holder: Holder | None = None


@dataclass(slots=True)
class JobsCompleted:
    """Jobs completed. Each of the `result_ids` is a run of one among the runs."""

    at_ms: int
    starts: list[int]
    counts: list[int]
    result_ids: list[int] = field(default_factory=list)
    results: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class JobFailed:
    """An attempt failed; the job is retried at `run_at_ms`, 0 for at once."""

    at_ms: int
    id: int
    run_at_ms: int
    error: JobError
    queue: str
    name: str
    delivery: int
    attempt: int
    worker: str
    timed_out: bool = False


@dataclass(slots=True)
class JobDied:
    """A job became DEAD; `error` is its last error."""

    at_ms: int
    id: int
    reason: EndReason
    error: JobError | None
    timed_out: bool = False


@dataclass(slots=True)
class JobsExpired:
    """The TTL of waiting jobs ended, as runs: they are EXPIRED, or DEAD if `to_dead`."""

    at_ms: int
    starts: list[int]
    counts: list[int]
    to_dead: bool = False


@dataclass(slots=True)
class JobsStalled:
    """Leases expired; job i waits until `run_at_ms[i]`, or is READY at once if that is 0 or
    absent.
    """

    at_ms: int
    queue: str
    ids: list[int]
    run_at_ms: list[int]
    reason: EndReason
    worker: str


@dataclass(slots=True)
class JobsReleased:
    """Jobs were released; job i waits until `run_at_ms[i]`, or is READY at its old place at once if
    that is 0 or absent.
    """

    at_ms: int
    queue: str
    ids: list[int]
    run_at_ms: list[int]
    why: ReleaseReason
    worker: str


@dataclass(slots=True)
class JobsCancelled:
    """Waiting or active jobs were cancelled. `result_ids` are among the runs; with `error`, which a
    worker reported, the fact covers only that active job.
    """

    at_ms: int
    starts: list[int]
    counts: list[int]
    result_ids: list[int] = field(default_factory=list)
    results: list[bytes] = field(default_factory=list)
    error: JobError | None = None


@dataclass(slots=True)
class CancelRequested:
    """A cancel of active jobs was requested; their workers are asked to stop."""

    at_ms: int
    queue: str
    ids: list[int]


@dataclass(slots=True)
class JobsRetried:
    """Ended jobs were put back: by an operator, or `automatic`, because their queue retries dead
    jobs. `states[i]` is the former state of job i; `outcomes`, empty if it is the same for
    all, are the states in which they ended, for batches to know how STALE ones were counted.
    """

    at_ms: int
    jobs: list[JobRecord]
    states: list[JobState]
    automatic: bool = False
    outcomes: list[JobState] = field(default_factory=list)


@dataclass(slots=True)
class JobsAgedOut:
    """Ended jobs of one queue became STALE after their retention; `state` is their former state.
    They are deleted `delete_after_ms` later, unless they have a time of their own.
    """

    at_ms: int
    queue: str
    state: JobState
    starts: list[int]
    counts: list[int]
    delete_after_ms: int = limits.DELETE_AFTER_MS_DEFAULT


@dataclass(slots=True)
class JobsDeleted:
    """Jobs of one queue in `state` were deleted; ACTIVE ones only with their queue."""

    at_ms: int
    queue: str
    state: JobState
    starts: list[int]
    counts: list[int]
    evicted: bool = False  # because the queue keeps no more of them


Fact = (
    LotPushed
    | JobsPushed
    | JobsReady
    | BlockedFact
    | JobUpdated
    | KeyForgotten
    | JobsLeased
    | JobsCompleted
    | JobFailed
    | JobDied
    | JobsExpired
    | JobsStalled
    | JobsReleased
    | JobReported
    | JobLogged
    | PhaseCompleted
    | JobsCancelled
    | CancelRequested
    | JobsRetried
    | JobsAgedOut
    | JobsDeleted
    | UniqueKeyFact
    | QueueFact
    | GroupFact
    | LimiterFact
    | ScheduleFact
    | MessageFact
    | BatchFact
    | OperationRecorded
    | WebhookFact
    | ServerNoted
)

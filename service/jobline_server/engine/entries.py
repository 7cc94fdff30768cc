"""Entries: every fact that can happen to a shard. Who knows this list knows the system.

A fact says what happened, in the past tense, and `apply` is the only code that gives it effect;
storage writes facts down, recovery applies them again, watchers are told of them. Plain work is
one fact a batch: `starts[i]`, `counts[i]` name the ids `starts[i] … starts[i] + counts[i] − 1`.
On disk it is `proto/jobline/v1/entry.proto`. Fields below a line of dashes are not written.
Facts of queues are in `queue_entries`, those of messages between shards in `message_entries`;
`Fact` at the end lists all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from jobline_server.engine.holder import Holder
from jobline_server.engine.message_entries import (
    MessagesAcknowledged,
    MessagesReceived,
    MessagesSent,
)
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.producers import Call
from jobline_server.engine.queue_entries import (
    QueueChanged,
    QueueDeleted,
    QueuePaused,
    QueueResumed,
)
from jobline_server.engine.records import JobRecord
from jobline_server.engine.values import (
    EndReason,
    JobError,
    JobOptions,
    JobState,
    ReleaseReason,
)


@dataclass(slots=True)
class LotPushed:
    """Plain jobs `first_id … first_id + len(payloads) − 1` were stored: the first
    `call_jobs[0]` by `calls[0]`, and so on. `digests` stand beside the column of job keys.
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
    # ----
    volatile: bool = False


@dataclass(slots=True)
class JobsPushed:
    """Jobs with something of their own were stored, in columns; an empty one: none has any."""

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
    # ----
    volatile: bool = False


@dataclass(slots=True)
class JobsReady:
    """Delayed jobs of one queue became READY: `lots` whole, by first id, and single jobs."""

    at_ms: int
    queue: str
    ids: list[int]
    lots: list[int]
    promoted: bool = False
    # ----
    runs: list[tuple[int, int]] = field(default_factory=list)  # of the lots: set when applied


@dataclass(slots=True)
class JobsLeased:
    """Jobs of one queue were handed out, in this order, single ones too as runs, each with the
    counter of its leases. `lease_ms` 0: each its own."""

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
    """Jobs completed. `result_ids` are among the runs, each a run of its own."""

    at_ms: int
    starts: list[int]
    counts: list[int]
    result_ids: list[int] = field(default_factory=list)
    results: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class JobFailed:
    """An attempt failed and another follows at `run_at_ms`; 0: at once."""

    at_ms: int
    id: int
    run_at_ms: int
    error: JobError
    queue: str
    name: str
    delivery: int
    attempt: int
    worker: str


@dataclass(slots=True)
class JobDied:
    """A job went to the dead letters; `error` is its last one."""

    at_ms: int
    id: int
    reason: EndReason
    error: JobError | None


@dataclass(slots=True)
class JobsStalled:
    """Leases were lost; each job goes on at `run_at_ms[i]`, 0 or no column: at once."""

    at_ms: int
    queue: str
    ids: list[int]
    run_at_ms: list[int]
    reason: EndReason
    worker: str


@dataclass(slots=True)
class JobsReleased:
    """Jobs were given back; each goes on at `run_at_ms[i]`, 0 or no column: now, where it stood."""

    at_ms: int
    queue: str
    ids: list[int]
    run_at_ms: list[int]
    why: ReleaseReason
    worker: str


@dataclass(slots=True)
class JobReported:
    """A worker reported on a job; `None` leaves things as they are."""

    at_ms: int
    queue: str
    id: int
    progress: float | None
    message: str | None
    worker_checkpoint: bytes | None


@dataclass(slots=True)
class JobsCancelled:
    """Jobs were cancelled, waiting or active ones. `result_ids` are among the runs; `error` is what
    its worker said of an active job, which stands alone then.
    """

    at_ms: int
    starts: list[int]
    counts: list[int]
    result_ids: list[int] = field(default_factory=list)
    results: list[bytes] = field(default_factory=list)
    error: JobError | None = None


@dataclass(slots=True)
class CancelRequested:
    """Somebody asked to cancel active jobs; their workers are told."""

    at_ms: int
    queue: str
    ids: list[int]


@dataclass(slots=True)
class JobsRetried:
    """Ended jobs were put back by hand; `states[i]` is where job i came from."""

    at_ms: int
    jobs: list[JobRecord]
    states: list[JobState]


@dataclass(slots=True)
class JobsAgedOut:
    """Ended jobs of one queue are past their first retention; `state` is where they were."""

    at_ms: int
    queue: str
    state: JobState
    starts: list[int]
    counts: list[int]


@dataclass(slots=True)
class JobsDeleted:
    """Jobs of one queue were deleted; `state` is where they were: ACTIVE only with the queue."""

    at_ms: int
    queue: str
    state: JobState
    starts: list[int]
    counts: list[int]
    evicted: bool = False  # its queue keeps no more of them


Fact = (
    LotPushed
    | JobsPushed
    | JobsReady
    | JobsLeased
    | JobsCompleted
    | JobFailed
    | JobDied
    | JobsStalled
    | JobsReleased
    | JobReported
    | JobsCancelled
    | CancelRequested
    | JobsRetried
    | JobsAgedOut
    | JobsDeleted
    | QueueChanged
    | QueuePaused
    | QueueResumed
    | QueueDeleted
    | MessagesSent
    | MessagesReceived
    | MessagesAcknowledged
)

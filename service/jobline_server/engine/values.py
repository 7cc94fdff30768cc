"""Values: what jobs are made of. Frozen, compared by content, shared between jobs.

The numbers of the enums are those of `proto/jobline/v1`, so that no table stands between the two;
a test compares them. Nothing here knows how a value is written down.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from jobline_server.engine import limits


class JobState(IntEnum):
    """Where a job stands."""

    # An enum hashes its name, in Python; a state is looked up for every job, and equals its number.
    __hash__ = int.__hash__

    SCHEDULED = 1
    BLOCKED = 2
    READY = 3
    ACTIVE = 4
    COMPLETED = 5
    DEAD = 6
    CANCELLED = 7
    EXPIRED = 8
    STALE = 9


WAITING_STATES = frozenset({JobState.SCHEDULED, JobState.BLOCKED, JobState.READY})
ENDED_STATES = frozenset({JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED, JobState.EXPIRED})
# What the ended store holds.
KEPT_STATES = ENDED_STATES | {JobState.STALE}


class AckLevel(IntEnum):
    """When a push is answered; a higher level promises more."""

    MEMORY = 1
    BUFFERED = 2
    FSYNCED = 3


class BackoffKind(IntEnum):
    """How the pause before the next attempt grows."""

    FIXED = 1
    EXPONENTIAL = 2


class AttemptOutcome(IntEnum):
    """How one attempt went."""

    FAILED = 1
    STALLED = 2
    RELEASED = 3
    COMPLETED = 4
    CANCELLED = 5


class EndReason(IntEnum):
    """Why a job ended other than well."""

    NONE = 0
    EXPLICIT_FAIL = 1
    MAX_ATTEMPTS_EXCEEDED = 2
    RETRY_UNTIL_PASSED = 3
    TIMEOUT = 4
    STALLED = 5
    WORKER_LOST = 6
    INTERRUPTED = 7
    DEPENDENCY_FAILED = 8
    EXPIRED = 9
    CANCELLED = 10
    DELETED = 11
    QUEUE_DELETED = 12


class LeaseReason(IntEnum):
    """Why a job is handed out."""

    FIRST = 1
    RETRY = 2
    STALLED = 3
    RELEASED = 4
    RESUMED = 5


class PushOutcome(IntEnum):
    """What became of one pushed job."""

    CREATED = 1
    DUPLICATE = 2
    REFUSED = 8


class SettleOutcome(IntEnum):
    """What became of an ack, fail, release or extend."""

    DONE = 1
    ALREADY_DONE = 2
    CANCELLED = 3
    LEASE_LOST = 4
    NOT_FOUND = 5


class FailAction(IntEnum):
    """What a worker wants to happen to a job that failed."""

    RETRY = 1
    DEAD = 2
    CANCEL = 3


class ReleaseReason(IntEnum):
    """Why a worker gives a job back."""

    SNOOZE = 1
    INTERRUPTED = 2
    UNHANDLED = 3
    LIMITED = 4
    UNDELIVERED = 5
    """Nobody took it; the server itself gives it back, as often as it takes."""


class RevokeReason(IntEnum):
    """Why a worker should stop working on a job."""

    CANCELLED = 1
    TIMEOUT = 2
    LEASE_LOST = 3
    QUEUE_DELETED = 4


class Now(NamedTuple):
    """The two clocks, in milliseconds: wall time since 1970 for `run_at` and retention, monotonic
    time for leases. A jump of the first ends no lease.
    """

    wall_ms: int
    mono_ms: int


@dataclass(frozen=True, slots=True)
class Backoff:
    """The pause before the next attempt; `None` takes the default of `limits`."""

    kind: BackoffKind | None = None
    base_ms: int | None = None
    max_delay_ms: int | None = None
    jitter: float | None = None


@dataclass(frozen=True, slots=True)
class Retention:
    """How long an ended job is kept; `None` takes the default of `limits`."""

    remove_on_complete: bool | None = None
    remove_on_fail: bool | None = None
    age_ms: int | None = None
    count: int | None = None


NO_BACKOFF = Backoff()
NO_RETENTION = Retention()


@dataclass(frozen=True, slots=True)
class JobOptions:
    """What a job of some kind wants; `None` takes the queue's setting, then the default of
    `limits`.

    Jobs pushed with the same options hold the same object: whoever makes options interns them.
    """

    name: str = ""
    content_type: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    priority: int = 0
    lease_ms: int | None = None
    max_attempts: int | None = None
    backoff: Backoff = NO_BACKOFF
    max_stalls: int | None = None
    retention: Retention = NO_RETENTION


DEFAULT_OPTIONS = JobOptions()


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What a queue's jobs take where their own options say nothing; `max_attempts` 0 means
    unlimited.
    """

    lease_ms: int | None = None
    max_attempts: int | None = None
    backoff: Backoff = NO_BACKOFF
    max_stalls: int | None = None
    retention: Retention = NO_RETENTION
    min_ack_level: AckLevel | None = None
    max_waiting: int | None = None
    non_retryable_error_types: tuple[str, ...] = ()


DEFAULT_SETTINGS = QueueSettings()


@dataclass(frozen=True, slots=True)
class JobError:
    """What went wrong in an attempt."""

    type: str = ""
    message: str = ""
    stack: str = ""
    details: bytes = b""


class Attempt(NamedTuple):
    """One hand-out that did not simply complete."""

    attempt: int
    delivery: int
    worker: str
    leased_ms: int
    ended_ms: int
    outcome: AttemptOutcome
    error: JobError | None = None
    version: str = ""


def sequence_of(job_id: int) -> int:
    """The part of an id that counts within its shard."""
    return job_id & ((1 << limits.SEQUENCE_BITS) - 1)


def shard_of(job_id: int) -> int:
    """The shard that owns an id."""
    return job_id >> limits.SEQUENCE_BITS

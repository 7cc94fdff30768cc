"""Values: enums, options and settings. Frozen, compared by content, shared between jobs.

The enums have the numbers of `proto/jobline/v1`, so no table maps one to the other; a test compares
them. Nothing here knows how values are encoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from jobline_server.engine import limits
from jobline_server.engine.ageing import Ageing
from jobline_server.engine.dead_letters import NO_DEAD_LETTERS, DeadLetters
from jobline_server.engine.group_settings import NO_GROUP_SETTINGS, GroupSettings
from jobline_server.engine.objective import Objective
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.rules import NO_RULES, DeliveryMode, DependencyPolicy, JobRules
from jobline_server.engine.unique_rule import UniqueMode


class JobState(IntEnum):
    """The state of a job."""

    # Enum members hash their names in Python code, which is slow; a state equals its number.
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
# The states of the jobs in the ended store.
KEPT_STATES = ENDED_STATES | {JobState.STALE}


class AckLevel(IntEnum):
    """When a push gets its reply; a higher level promises more."""

    MEMORY = 1
    BUFFERED = 2
    FSYNCED = 3


class BackoffKind(IntEnum):
    """How the pause before the next attempt grows."""

    FIXED = 1
    EXPONENTIAL = 2


class AttemptOutcome(IntEnum):
    """The outcome of one attempt."""

    FAILED = 1
    STALLED = 2
    RELEASED = 3
    COMPLETED = 4
    CANCELLED = 5


class EndReason(IntEnum):
    """Why a job ended without completing."""

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
    REPLACED = 13


class LeaseReason(IntEnum):
    """Why a job is leased."""

    FIRST = 1
    RETRY = 2
    STALLED = 3
    RELEASED = 4
    RESUMED = 5
    CHILDREN_ENDED = 6


class PushOutcome(IntEnum):
    """The outcome of one pushed job that was not refused. On the wire 8 is one that was."""

    CREATED = 1
    DUPLICATE = 2
    REPLACED = 3
    EXTENDED = 4
    THROTTLED = 5
    DEBOUNCED = 6
    PARKED = 7


# The outcomes of jobs that were stored.
STORED_OUTCOMES = frozenset(
    {PushOutcome.CREATED, PushOutcome.REPLACED, PushOutcome.DEBOUNCED, PushOutcome.PARKED}
)


class SettleOutcome(IntEnum):
    """The outcome of an ack, fail, release or extend."""

    DONE = 1
    ALREADY_DONE = 2
    CANCELLED = 3
    LEASE_LOST = 4
    NOT_FOUND = 5


class FailAction(IntEnum):
    """What to do with a job that failed."""

    RETRY = 1
    DEAD = 2
    CANCEL = 3


class ReleaseReason(IntEnum):
    """Why a job is released."""

    SNOOZE = 1
    INTERRUPTED = 2
    UNHANDLED = 3
    LIMITED = 4
    UNDELIVERED = 5
    """It reached no worker; the server itself releases it, without a limit."""
    CRASHED = 6
    """What ran it has crashed: it has stalled, as if its lease were lost."""


class LogLevel(IntEnum):
    """How much a line of a job's log matters."""

    DEBUG = 1
    INFO = 2
    WARNING = 3
    ERROR = 4


class RevokeReason(IntEnum):
    """Why a worker should stop working on a job."""

    CANCELLED = 1
    TIMEOUT = 2
    LEASE_LOST = 3
    QUEUE_DELETED = 4


class Now(NamedTuple):
    """The two clocks, in milliseconds: wall time since 1970 for `run_at` and retention, monotonic
    time for leases, so that setting the wall clock ends no lease.
    """

    wall_ms: int
    mono_ms: int


@dataclass(frozen=True, slots=True)
class Backoff:
    """The pause before the next attempt; `None` means the default of `limits`. With `delays_ms`,
    the pauses one by one, `kind`, `base_ms` and `max_delay_ms` are None.
    """

    kind: BackoffKind | None = None
    base_ms: int | None = None
    max_delay_ms: int | None = None
    jitter: float | None = None
    delays_ms: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Retention:
    """How long an ended job is kept; `None` means the default of `limits`."""

    remove_on_complete: bool | None = None
    remove_on_fail: bool | None = None
    age_ms: int | None = None
    count: int | None = None
    delete_after_ms: int | None = None


NO_BACKOFF = Backoff()
NO_RETENTION = Retention()


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The options of jobs; `None` means the queue's setting, then the default of `limits`.

    Jobs pushed with the same options share one object: the code that creates options interns them.
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
    rules: JobRules = NO_RULES


DEFAULT_OPTIONS = JobOptions()


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The defaults of a queue's jobs, and its limits; `max_attempts` 0 means unlimited."""

    lease_ms: int | None = None
    max_attempts: int | None = None
    backoff: Backoff = NO_BACKOFF
    max_stalls: int | None = None
    retention: Retention = NO_RETENTION
    min_ack_level: AckLevel | None = None
    max_waiting: int | None = None
    non_retryable_error_types: tuple[str, ...] = ()
    rate: RateLimit | None = None
    concurrency: int | None = None
    max_waiting_bytes: int | None = None
    delivery_mode: DeliveryMode | None = None
    dead_letters: DeadLetters = NO_DEAD_LETTERS
    check_payloads: bool = False
    disconnect_grace_ms: int | None = None
    ttl_ms: int | None = None
    expired_to_dead: bool = False
    timeout_ms: int | None = None
    ageing: Ageing | None = None
    group: GroupSettings = NO_GROUP_SETTINGS
    unique_mode: UniqueMode | None = None
    unique_ttl_ms: int | None = None
    unique_max_wait_ms: int | None = None
    on_dependency_failure: DependencyPolicy | None = None
    block_timeout_ms: int | None = None
    fair: bool = False
    objective: Objective | None = None


DEFAULT_SETTINGS = QueueSettings()


@dataclass(frozen=True, slots=True)
class JobError:
    """The error of a failed attempt."""

    type: str = ""
    message: str = ""
    stack: str = ""
    details: bytes = b""


class Attempt(NamedTuple):
    """One delivery that did not complete its job, as the job's history keeps it."""

    attempt: int
    delivery: int
    worker: str
    leased_ms: int
    ended_ms: int
    outcome: AttemptOutcome
    error: JobError | None = None
    version: str = ""


def sequence_of(job_id: int) -> int:
    """Returns the part of an id that counts within its shard."""
    return job_id & ((1 << limits.SEQUENCE_BITS) - 1)


def shard_of(job_id: int) -> int:
    """Returns the number of the shard that owns an id."""
    return job_id >> limits.SEQUENCE_BITS


def ids_of_shard(number: int) -> range:
    """Returns all ids that a shard owns."""
    return range(number << limits.SEQUENCE_BITS, (number + 1) << limits.SEQUENCE_BITS)

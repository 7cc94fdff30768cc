"""The protocol's enums as Python's, with the numbers of the wire (`jobline.v1`)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Literal, TypeVar

from jobline._base_errors import InvalidArgument

E = TypeVar("E", bound=IntEnum)


class AckLevel(IntEnum):
    """When a push is answered. The reply has the level that was reached, never less than asked."""

    UNSPECIFIED = 0
    MEMORY = 1
    BUFFERED = 2
    FSYNCED = 3


AckLevelName = AckLevel | Literal["memory", "buffered", "fsynced"]
"""An ack level, or its name."""


class PushOutcome(IntEnum):
    """The outcome of one pushed job. `UNSPECIFIED` is one that this client does not know."""

    UNSPECIFIED = 0
    CREATED = 1
    DUPLICATE = 2
    REPLACED = 3
    EXTENDED = 4
    THROTTLED = 5
    DEBOUNCED = 6
    PARKED = 7
    REFUSED = 8


class SettleOutcome(IntEnum):
    """The outcome of an ack, fail, release or extend."""

    UNSPECIFIED = 0
    DONE = 1
    ALREADY_DONE = 2
    CANCELLED = 3
    LEASE_LOST = 4
    NOT_FOUND = 5


class FailAction(IntEnum):
    """What happens to a job that failed."""

    RETRY = 1
    DEAD = 2
    CANCEL = 3


FailActionName = FailAction | Literal["retry", "dead", "cancel"]
"""What happens to a job that failed, or its name."""


class ReleaseReason(IntEnum):
    """Why a job is released. CRASHED: what ran it has crashed, and its worker lives; it uses a
    stall, as if its lease were lost.
    """

    SNOOZE = 1
    INTERRUPTED = 2
    UNHANDLED = 3
    LIMITED = 4
    CRASHED = 6


ReleaseReasonName = (
    ReleaseReason | Literal["snooze", "interrupted", "unhandled", "limited", "crashed"]
)
"""Why a job is released, or its name."""


class JobState(IntEnum):
    """The state of a job."""

    UNSPECIFIED = 0
    SCHEDULED = 1
    BLOCKED = 2
    READY = 3
    ACTIVE = 4
    COMPLETED = 5
    DEAD = 6
    CANCELLED = 7
    EXPIRED = 8
    STALE = 9


JobStateName = (
    JobState
    | Literal[
        "scheduled",
        "blocked",
        "ready",
        "active",
        "completed",
        "dead",
        "cancelled",
        "expired",
        "stale",
    ]
)
"""A state of a job, or its name."""


class ObstacleKind(IntEnum):
    """What keeps a job from running."""

    UNSPECIFIED = 0
    NOT_DUE = 1
    QUEUE_PAUSED = 2
    NO_WORKER = 3
    UNHANDLED_NAME = 4
    JOBS_AHEAD = 5
    RUNNING = 6
    ENDED = 7
    NOT_DURABLE = 8
    WORKERS_BUSY = 9
    TOO_LARGE = 10
    WORKER_VERSION = 20
    SLOTS = 21
    GROUP_PAUSED = 29
    GROUP_HELD = 30
    GROUP_BUSY = 31
    STICKY = 37
    RATE_LIMITED = 33
    CONCURRENCY_LIMITED = 34
    LIMITED_FOR_A_TIME = 35
    LIMITER = 36
    KEY_HELD = 23
    DEPENDENCIES = 26
    OTHER_TENANTS = 38


class LeaseReason(IntEnum):
    """Why a job is leased."""

    UNSPECIFIED = 0
    FIRST = 1
    RETRY = 2
    STALLED = 3
    RELEASED = 4
    RESUMED = 5
    CHILDREN_ENDED = 6


class EndReason(IntEnum):
    """Why a job ended other than well; `UNSPECIFIED`: it ended well."""

    UNSPECIFIED = 0
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


EndReasonName = (
    EndReason
    | Literal[
        "explicit_fail",
        "max_attempts_exceeded",
        "retry_until_passed",
        "timeout",
        "stalled",
        "worker_lost",
        "interrupted",
        "dependency_failed",
        "expired",
        "cancelled",
        "replaced",
    ]
)
"""Why a job ended, or its name."""


class RevokeReason(IntEnum):
    """Why a lease is taken away from a worker."""

    UNSPECIFIED = 0
    CANCELLED = 1
    TIMEOUT = 2
    LEASE_LOST = 3
    QUEUE_DELETED = 4


class EventKind(IntEnum):
    """The kind of an event, for watchers. `UNSPECIFIED` is one that this client does not know."""

    UNSPECIFIED = 0
    PUSHED = 1
    READY = 2
    LEASED = 3
    RELEASED = 4
    PROGRESS = 5
    COMPLETED = 6
    RETRYING = 7
    STALLED = 8
    DEAD = 9
    CANCELLED = 10
    CANCEL_REQUESTED = 11
    PROMOTED = 12
    RETRIED = 13
    STALE = 14
    DELETED = 15
    QUEUE_CREATED = 16
    QUEUE_CHANGED = 17
    QUEUE_PAUSED = 18
    QUEUE_RESUMED = 19
    QUEUE_DELETED = 20
    DEAD_EVICTED = 21
    EXPIRED = 25
    UPDATED = 29
    DUPLICATE = 32
    BLOCKED = 35
    UNBLOCKED = 36
    GROUP_PAUSED = 39
    GROUP_RESUMED = 40
    QUEUE_DRAINED = 42
    QUEUE_LIMITED = 43
    GROUP_LIMITED = 44
    PHASE_COMPLETED = 46
    DEAD_RETRIED = 49
    DEAD_EXPIRED = 50
    PARTIAL = 55
    SCHEDULE_FIRED = 65
    SCHEDULE_SKIPPED = 66
    SCHEDULE_MISSED = 67
    BATCH_COMPLETED = 60
    BATCH_FAILED = 61
    FLOW_COMPLETED = 63
    FLOW_FAILED = 64
    WEBHOOK_DELIVERED = 68
    WEBHOOK_FAILED = 69
    WORKER_CONNECTED = 70
    WORKER_LOST = 71
    STORAGE_LOW = 72


def known(kind: type[E], number: int) -> E:
    """Returns the enum's member, or its `UNSPECIFIED` for a number that a newer server added."""
    return kind(number) if number in kind._value2member_map_ else kind(0)


def named(kind: type[E], value: E | int | str) -> E:
    """Returns the member that a value is or names, in any case; InvalidArgument names them all."""
    if isinstance(value, kind):
        return value
    names = {member.name.lower(): member for member in kind if member.value}
    try:
        if isinstance(value, str):
            return names[value.strip().lower().replace("-", "_")]
        return kind(value)
    except (KeyError, ValueError):
        raise InvalidArgument(f"{value!r} is not one of {', '.join(names)}") from None


def all_named(kind: type[E], values: Iterable[E | int | str] | E | int | str) -> tuple[E, ...]:
    """Returns the members that one value or several are or name. Raises InvalidArgument."""
    several = [values] if isinstance(values, str | int) else values
    return tuple(named(kind, value) for value in several)

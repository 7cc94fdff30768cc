"""Facts of queues. `entries` has the list of all facts."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.values import QueueSettings


@dataclass(slots=True)
class QueueChanged:
    """A queue got these settings. `created_number` is its number if it was created, else 0."""

    at_ms: int
    queue: str
    settings: QueueSettings
    created_number: int = 0


@dataclass(slots=True)
class QueuePaused:
    """A queue was paused: its jobs are not leased."""

    at_ms: int
    queue: str
    principal: str
    reason: str


@dataclass(slots=True)
class QueueResumed:
    """A queue was resumed."""

    at_ms: int
    queue: str


@dataclass(slots=True)
class QueueLimited:
    """A queue lets nothing out until a time; 0: the limit was lifted."""

    at_ms: int
    queue: str
    until_ms: int
    principal: str
    reason: str


@dataclass(slots=True)
class QueueDeleted:
    """A queue was deleted with all its jobs, live and ended."""

    at_ms: int
    queue: str


QueueFact = QueueChanged | QueuePaused | QueueResumed | QueueLimited | QueueDeleted

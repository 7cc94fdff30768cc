"""Why a handler should stop."""

from __future__ import annotations

from enum import Enum


class CancelReason(Enum):
    """Why a handler should stop."""

    CANCELLED = "cancelled"
    """Somebody cancelled the job."""
    TIMEOUT = "timeout"
    """The attempt took too long."""
    LEASE_LOST = "lease lost"
    """Another worker may have the job: what this handler returns is ignored."""
    QUEUE_DELETED = "queue deleted"
    """The queue was deleted."""
    STOPPING = "stopping"
    """The worker stops, and its soft stop time has passed: the job is released."""

"""The kinds of events by name, as calls take them."""

from __future__ import annotations

from typing import Literal

from jobline._enums import EventKind

EventKindName = (
    EventKind
    | Literal[
        "pushed",
        "ready",
        "leased",
        "released",
        "progress",
        "completed",
        "retrying",
        "stalled",
        "dead",
        "cancelled",
        "cancel_requested",
        "promoted",
        "retried",
        "stale",
        "deleted",
        "queue_created",
        "queue_changed",
        "queue_paused",
        "queue_resumed",
        "queue_drained",
        "queue_deleted",
        "dead_evicted",
        "expired",
        "updated",
        "duplicate",
        "blocked",
        "unblocked",
        "group_paused",
        "group_resumed",
        "queue_limited",
        "group_limited",
        "phase_completed",
        "dead_retried",
        "dead_expired",
        "partial",
        "schedule_fired",
        "schedule_skipped",
        "schedule_missed",
        "batch_completed",
        "batch_failed",
        "flow_completed",
        "flow_failed",
        "webhook_delivered",
        "webhook_failed",
        "worker_connected",
        "worker_lost",
        "storage_low",
    ]
)
"""A kind of event, or its name."""

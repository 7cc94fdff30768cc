"""Converts queues and their settings."""

from __future__ import annotations

from jobline.v1 import queue_pb2, queue_service_pb2
from jobline_server.engine import limits
from jobline_server.engine.values import KEPT_STATES, JobState, QueueSettings
from jobline_server.rpc import limits as rpc_limits
from jobline_server.rpc.convert.jobs import fill_moment
from jobline_server.rpc.convert.masks import check_settings, masked, paths_of
from jobline_server.rpc.convert.selection import members
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.options import check_queue_settings
from jobline_server.runtime.queries.queue_order import QueueOrder
from jobline_server.runtime.views import QueueView, WorkersNeeded
from jobline_server.wire.settings import fill_settings, settings_from_message
from jobline_server.wire.times import fill_time

# Fields of the message that the value names differently.
RENAMED = {
    "lease": "lease_ms",
    "delivery": "delivery_mode",
    "disconnect_grace": "disconnect_grace_ms",
    "ttl": "ttl_ms",
    "timeout": "timeout_ms",
    "unique_ttl": "unique_ttl_ms",
    "unique_max_wait": "unique_max_wait_ms",
    "block_timeout": "block_timeout_ms",
}
PATHS = paths_of(queue_pb2.QueueSettings.DESCRIPTOR) | RENAMED


def settings_change(
    request: queue_service_pb2.UpdateQueueRequest,
) -> tuple[QueueSettings, frozenset[str] | None]:
    """Returns the new settings, and the names of those that change; None: all."""
    check_settings(request, check_queue_settings)
    return settings_from_message(request.settings), masked(request.update_mask, PATHS)


def limited_until_ms(
    request: queue_service_pb2.LimitQueueRequest | queue_service_pb2.LimitGroupRequest, now_ms: int
) -> int:
    """Returns until when a queue or group is limited; 0 if no time is set."""
    return fields.coming_ms(request.until, "until", now_ms) if request.HasField("until") else 0


def cleaned_states(request: queue_service_pb2.CleanQueueRequest) -> frozenset[JobState]:
    """Returns the ended states to clean; empty: the runtime's default."""
    states = members(request.states, "states", JobState)
    if not states <= KEPT_STATES:
        raise fields.invalid("states", "only states of ended jobs")
    return states


def older_than_ms(request: queue_service_pb2.CleanQueueRequest) -> int:
    """Returns how long ago a job to clean must have ended."""
    if not request.HasField("older_than"):
        return 0
    return fields.duration_ms(request.older_than, "older_than", 0, rpc_limits.RETENTION_AGE_MS_MAX)


def confirmed_queue(request: queue_service_pb2.DeleteQueueRequest) -> str:
    """Returns the queue to delete, which is named twice against accidents."""
    queue = fields.queue_name(request.queue)
    if request.confirm_queue != queue:
        raise fields.invalid("confirm_queue", "must repeat the queue's name")
    return queue


def name_prefix(value: str) -> str:
    """Returns the prefix of queue names to list."""
    return fields.single_line(value, "name_prefix", limits.NAME_CHARACTERS_MAX)


def order_of(value: str) -> QueueOrder:
    """Returns the order of a list; spaces around its words mean nothing (AIP-132)."""
    words = " ".join(value.split())
    known = {order.value: order for order in QueueOrder}
    order = known.get(words) if words else QueueOrder.NAME
    if order is None:
        raise fields.invalid("order_by", f"must be {' or '.join(known)}")
    return order


def fill_queue(message: queue_pb2.Queue, view: QueueView) -> None:
    """Fills a Queue message."""
    message.name = view.name
    message.shard = view.shard
    fill_settings(message.settings, view.settings)
    _fill_counts(message.counts, view)
    message.paused = view.paused
    message.paused_by = view.paused_by
    message.pause_reason = view.pause_reason
    if view.oldest_ready_ms:
        fill_moment(message.oldest_ready_at, view.oldest_ready_ms)
    fill_moment(message.created_at, view.created_ms)
    message.pushed_total = view.pushed_total
    message.completed_total = view.completed_total
    message.failed_total = view.failed_total
    if view.tokens is not None:
        message.tokens = view.tokens
    if view.worker_time_ms is not None:
        fill_time(message.worker_time, view.worker_time_ms)
    if view.workers_needed is not None:
        _fill_needed(message.workers_needed, view.workers_needed)
    if view.limited is not None:
        fill_moment(message.limited_until, view.limited.until_ms)
        message.limited_by = view.limited.by
        message.limited_reason = view.limited.reason


def _fill_needed(message: queue_pb2.WorkersNeeded, needed: WorkersNeeded) -> None:
    message.SetInParent()
    message.workers = needed.workers
    message.slots_per_worker = needed.slots_per_worker
    message.backlog = needed.backlog
    message.arrivals_per_second = needed.arrivals
    if needed.run_seconds:
        fill_time(message.mean_run, round(needed.run_seconds * limits.SECOND_MS))


def _fill_counts(message: queue_pb2.QueueCounts, view: QueueView) -> None:
    message.SetInParent()
    counts = view.counts
    message.scheduled = counts[JobState.SCHEDULED]
    message.blocked = counts[JobState.BLOCKED]
    message.ready = counts[JobState.READY]
    message.active = counts[JobState.ACTIVE]
    message.unhandled = view.unhandled
    message.completed = counts[JobState.COMPLETED]
    message.dead = counts[JobState.DEAD]
    message.cancelled = counts[JobState.CANCELLED]
    message.expired = counts[JobState.EXPIRED]
    message.stale = counts[JobState.STALE]
    for priority, ready in view.priorities:
        row = message.priorities.add()
        row.priority = priority
        row.ready = ready

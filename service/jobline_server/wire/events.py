"""Event runs to messages, for watchers and for the store, which keeps them over a restart."""

from __future__ import annotations

from jobline.v1 import event_pb2, job_pb2
from jobline_server.wire.event_runs import EventRun, EventView
from jobline_server.wire.times import fill_time


def run_message(run: EventRun) -> event_pb2.EventRun:
    """Returns the message of a run of events, in columns."""
    message = event_pb2.EventRun()
    fill_event(message.shared, run.shared)
    message.starts.extend(run.starts)
    if run.total != len(run.starts):
        message.counts.extend(run.counts)
    columns = run.columns
    message.names.extend(columns.names)
    message.deliveries.extend(columns.deliveries)
    message.attempts.extend(columns.attempts)
    message.workers.extend(columns.workers)
    message.run_at_ms.extend(columns.run_at_ms)
    return message


def fill_event(message: event_pb2.Event, event: EventView) -> None:
    """Fills an Event message, except for its job id."""
    message.shard = event.shard
    message.offset = event.offset
    fill_time(message.at, event.at_ms)
    message.kind = event_pb2.EventKind.ValueType(event.kind)
    message.queue = event.queue
    message.name = event.name
    if event.state is not None:
        message.state = job_pb2.JobState.ValueType(event.state)
    if event.before is not None:
        message.state_before = job_pb2.JobState.ValueType(event.before)
    message.delivery = event.delivery
    message.attempt = event.attempt
    message.worker = event.worker
    if event.error is not None:
        message.error_type = event.error.type
        message.error_message = event.error.message
    message.reason = job_pb2.EndReason.ValueType(event.reason)
    if event.run_at_ms:
        fill_time(message.run_at, event.run_at_ms)
    message.progress = event.progress
    message.message = event.message
    message.batch_id = event.batch_id
    message.group = event.group
    message.principal = event.principal

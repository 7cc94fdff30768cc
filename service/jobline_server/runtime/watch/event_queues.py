"""Makes the events of queues and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine import group_entries, operation_entries, queue_entries
from jobline_server.engine.operations import OperationState
from jobline_server.runtime.watch.event_origin import EventOrigin
from jobline_server.wire.event_runs import EventRun


def _queue_changed(origin: EventOrigin, fact: queue_entries.QueueChanged) -> Iterator[EventRun]:
    created = EventKind.EVENT_KIND_QUEUE_CREATED
    kind = created if fact.created_number else EventKind.EVENT_KIND_QUEUE_CHANGED
    yield EventRun(origin.view(fact.at_ms, kind, fact.queue))


def _queue_paused(origin: EventOrigin, fact: queue_entries.QueuePaused) -> Iterator[EventRun]:
    kind, who = EventKind.EVENT_KIND_QUEUE_PAUSED, fact.principal
    yield EventRun(origin.view(fact.at_ms, kind, fact.queue, message=fact.reason, principal=who))


def _queue_limited(origin: EventOrigin, fact: queue_entries.QueueLimited) -> Iterator[EventRun]:
    kind, who = EventKind.EVENT_KIND_QUEUE_LIMITED, fact.principal
    yield EventRun(origin.view(fact.at_ms, kind, fact.queue, message=fact.reason, principal=who))


def _queue_resumed(origin: EventOrigin, fact: queue_entries.QueueResumed) -> Iterator[EventRun]:
    yield EventRun(origin.view(fact.at_ms, EventKind.EVENT_KIND_QUEUE_RESUMED, fact.queue))


def _queue_deleted(origin: EventOrigin, fact: queue_entries.QueueDeleted) -> Iterator[EventRun]:
    yield EventRun(origin.view(fact.at_ms, EventKind.EVENT_KIND_QUEUE_DELETED, fact.queue))


# The operation whose end is an event of its own; what others do, the events of their facts tell.
DRAIN_VERB = "DrainQueue"


def _operation(
    origin: EventOrigin, fact: operation_entries.OperationRecorded
) -> Iterator[EventRun]:
    """Yields the event of a queue that was drained, wholly or until the caller left."""
    operation = fact.operation
    if operation.verb == DRAIN_VERB and operation.state is not OperationState.STARTED:
        kind, count = EventKind.EVENT_KIND_QUEUE_DRAINED, f"{operation.count} jobs"
        who = operation.principal
        yield EventRun(origin.view(fact.at_ms, kind, operation.queue, message=count, principal=who))


GROUP_KINDS = {
    group_entries.GroupPaused: EventKind.EVENT_KIND_GROUP_PAUSED,
    group_entries.GroupResumed: EventKind.EVENT_KIND_GROUP_RESUMED,
    group_entries.GroupLimited: EventKind.EVENT_KIND_GROUP_LIMITED,
}


def _of_group(origin: EventOrigin, fact: group_entries.GroupFact) -> Iterator[EventRun]:
    kind, reason = GROUP_KINDS[type(fact)], getattr(fact, "reason", "")
    if not getattr(fact, "is_used_up", False):
        view = origin.view(fact.at_ms, kind, fact.queue, name=fact.group, message=reason)
        view.group, view.principal = fact.group, getattr(fact, "principal", "")
        yield EventRun(view)


QUEUES: dict[type, Callable[[EventOrigin, Any], Iterator[EventRun]] | None] = {
    queue_entries.QueueChanged: _queue_changed,
    queue_entries.QueuePaused: _queue_paused,
    queue_entries.QueueLimited: _queue_limited,
    queue_entries.QueueResumed: _queue_resumed,
    queue_entries.QueueDeleted: _queue_deleted,
    group_entries.GroupChanged: None,
    group_entries.GroupPaused: _of_group,
    group_entries.GroupResumed: _of_group,
    group_entries.GroupLimited: _of_group,
    operation_entries.OperationRecorded: _operation,
}

"""Events: what watchers see of a turn. Facts tell what goes on, endings tell how jobs end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine import entries
from jobline_server.engine.endings import EndedJobs, EndedRuns
from jobline_server.engine.values import EndReason, JobState
from jobline_server.runtime.commits import Turn
from jobline_server.runtime.views import EventView, WatchFilter

_ENDED_KINDS = {
    JobState.COMPLETED: EventKind.EVENT_KIND_COMPLETED,
    JobState.DEAD: EventKind.EVENT_KIND_DEAD,
    JobState.CANCELLED: EventKind.EVENT_KIND_CANCELLED,
}

Row = dict[str, Any]


def events_of(turn: Turn, queues: frozenset[str] = frozenset()) -> Iterator[EventView]:
    """The events of a turn in order; facts before endings. Those of other queues may be left out if
    there are `queues` that are asked for.
    """
    base: Row = {"shard": turn.shard.number, "offset": turn.offset}
    for fact in turn.facts:
        tell = _FACTS.get(type(fact))
        queue = getattr(fact, "queue", "")
        # Spares a lot of ten thousand jobs its events when nobody asked for its queue.
        if tell is not None and (not queue or not queues or queue in queues):
            for row in tell(fact):
                yield EventView(**base, at_ms=fact.at_ms, **row)
    for ending in turn.endings:
        if isinstance(ending, EndedRuns) and queues and ending.lot.queue.name not in queues:
            continue
        if isinstance(ending, EndedRuns | EndedJobs):
            for row in _ended(ending):
                yield EventView(**base, at_ms=ending.ended_ms, **row)


def is_wanted(event: EventView, wanted: WatchFilter) -> bool:
    """Whether a watcher asked for this event."""
    return (
        (not wanted.queues or event.queue in wanted.queues)
        and (not wanted.job_id or event.job_id == wanted.job_id)
        and (not wanted.kinds or event.kind in wanted.kinds)
    )


def _lot_pushed(fact: entries.LotPushed) -> Iterator[Row]:
    state = JobState.SCHEDULED if fact.run_at_ms else JobState.READY
    for index in range(len(fact.payloads)):
        yield {
            "kind": EventKind.EVENT_KIND_PUSHED,
            "queue": fact.queue,
            "job_id": fact.first_id + index,
            "name": fact.options.name,
            "state": state,
            "run_at_ms": fact.run_at_ms,
        }


def _jobs_pushed(fact: entries.JobsPushed) -> Iterator[Row]:
    for index in range(len(fact.payloads)):
        run_at_ms = fact.run_at_ms[index] if fact.run_at_ms else 0
        options = fact.options[index if len(fact.options) > 1 else 0]
        yield {
            "kind": EventKind.EVENT_KIND_PUSHED,
            "queue": fact.queue,
            "job_id": fact.first_id + index,
            "name": options.name,
            "state": JobState.SCHEDULED if run_at_ms else JobState.READY,
            "run_at_ms": run_at_ms,
        }


def _ready(fact: entries.JobsReady) -> Iterator[Row]:
    kind = EventKind.EVENT_KIND_PROMOTED if fact.promoted else EventKind.EVENT_KIND_READY
    members = chain.from_iterable(
        range(first_id, first_id + count) for first_id, count in fact.runs
    )
    for job_id in chain(members, fact.ids):
        yield {"kind": kind, "queue": fact.queue, "job_id": job_id, "state": JobState.READY}


def _leased(fact: entries.JobsLeased) -> Iterator[Row]:
    for start, count, delivery in zip(fact.starts, fact.counts, fact.deliveries, strict=True):
        for job_id in range(start, start + count):
            yield {
                "kind": EventKind.EVENT_KIND_LEASED,
                "queue": fact.queue,
                "job_id": job_id,
                "state": JobState.ACTIVE,
                "delivery": delivery,
                "worker": fact.worker,
            }


def _failed(fact: entries.JobFailed) -> Iterator[Row]:
    yield {
        "kind": EventKind.EVENT_KIND_RETRYING,
        "queue": fact.queue,
        "job_id": fact.id,
        "name": fact.name,
        "state": JobState.SCHEDULED if fact.run_at_ms else JobState.READY,
        "delivery": fact.delivery,
        "attempt": fact.attempt,
        "worker": fact.worker,
        "error": fact.error,
        "run_at_ms": fact.run_at_ms,
    }


def _came_back(fact: entries.JobsStalled | entries.JobsReleased) -> Iterator[Row]:
    stalled = isinstance(fact, entries.JobsStalled)
    for index, job_id in enumerate(fact.ids):
        run_at_ms = fact.run_at_ms[index] if fact.run_at_ms else 0
        yield {
            "kind": EventKind.EVENT_KIND_STALLED if stalled else EventKind.EVENT_KIND_RELEASED,
            "queue": fact.queue,
            "job_id": job_id,
            "state": JobState.SCHEDULED if run_at_ms else JobState.READY,
            "worker": fact.worker,
            "run_at_ms": run_at_ms,
        }


def _reported(fact: entries.JobReported) -> Iterator[Row]:
    yield {
        "kind": EventKind.EVENT_KIND_PROGRESS,
        "queue": fact.queue,
        "job_id": fact.id,
        "state": JobState.ACTIVE,
        "progress": fact.progress or 0.0,
        "message": fact.message or "",
    }


def _cancel_requested(fact: entries.CancelRequested) -> Iterator[Row]:
    for job_id in fact.ids:
        kind = EventKind.EVENT_KIND_CANCEL_REQUESTED
        yield {"kind": kind, "queue": fact.queue, "job_id": job_id, "state": JobState.ACTIVE}


def _retried(fact: entries.JobsRetried) -> Iterator[Row]:
    for record in fact.jobs:
        yield {
            "kind": EventKind.EVENT_KIND_RETRIED,
            "queue": record.queue,
            "job_id": record.id,
            "name": record.options.name,
            "state": JobState.READY,
        }


def _aged(fact: entries.JobsStaled | entries.JobsDeleted) -> Iterator[Row]:
    stale = isinstance(fact, entries.JobsStaled)
    for start, count in zip(fact.starts, fact.counts, strict=True):
        for job_id in range(start, start + count):
            yield {
                "kind": EventKind.EVENT_KIND_STALE if stale else EventKind.EVENT_KIND_DELETED,
                "queue": fact.queue,
                "job_id": job_id,
                "state": JobState.STALE if stale else None,
            }


def _queue_changed(fact: entries.QueueChanged) -> Iterator[Row]:
    created = EventKind.EVENT_KIND_QUEUE_CREATED
    kind = created if fact.created_number else EventKind.EVENT_KIND_QUEUE_CHANGED
    yield {"kind": kind, "queue": fact.queue}


def _queue_paused(fact: entries.QueuePaused) -> Iterator[Row]:
    kind = EventKind.EVENT_KIND_QUEUE_PAUSED
    yield {"kind": kind, "queue": fact.queue, "message": fact.reason}


def _queue_resumed(fact: entries.QueueResumed) -> Iterator[Row]:
    yield {"kind": EventKind.EVENT_KIND_QUEUE_RESUMED, "queue": fact.queue}


def _queue_deleted(fact: entries.QueueDeleted) -> Iterator[Row]:
    yield {"kind": EventKind.EVENT_KIND_QUEUE_DELETED, "queue": fact.queue}


def _ended(ending: EndedRuns | EndedJobs) -> Iterator[Row]:
    return _runs_ended(ending) if isinstance(ending, EndedRuns) else _jobs_ended(ending)


def _jobs_ended(ending: EndedJobs) -> Iterator[Row]:
    for job in ending.jobs:
        yield {
            "kind": _ENDED_KINDS[ending.state],
            "queue": job.queue.name,
            "job_id": job.id,
            "name": job.options.name,
            "state": ending.state,
            "delivery": job.delivery,
            "attempt": job.attempts + (ending.state is JobState.COMPLETED),
            "worker": job.holder.worker if job.holder else "",
            "error": ending.error,
            "reason": ending.reason,
        }


def _runs_ended(ending: EndedRuns) -> Iterator[Row]:
    cancelled = ending.state is JobState.CANCELLED
    for job_id in ending.ids():
        yield {
            "kind": _ENDED_KINDS[ending.state],
            "queue": ending.lot.queue.name,
            "job_id": job_id,
            "name": ending.lot.options.name,
            "state": ending.state,
            "delivery": ending.delivery,
            "attempt": 0 if cancelled else 1,
            "worker": ending.worker,
            "reason": EndReason.CANCELLED if cancelled else EndReason.NONE,
        }


_FACTS: dict[type, Callable[[Any], Iterator[Row]]] = {
    entries.LotPushed: _lot_pushed,
    entries.JobsPushed: _jobs_pushed,
    entries.JobsReady: _ready,
    entries.JobsLeased: _leased,
    entries.JobFailed: _failed,
    entries.JobsStalled: _came_back,
    entries.JobsReleased: _came_back,
    entries.JobReported: _reported,
    entries.CancelRequested: _cancel_requested,
    entries.JobsRetried: _retried,
    entries.JobsStaled: _aged,
    entries.JobsDeleted: _aged,
    entries.QueueChanged: _queue_changed,
    entries.QueuePaused: _queue_paused,
    entries.QueueResumed: _queue_resumed,
    entries.QueueDeleted: _queue_deleted,
}

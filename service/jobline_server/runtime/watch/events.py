"""Makes the events of a batch, as runs: from its facts, and from the endings that they cause, in
order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine import (
    entries,
    limiter_entries,
    message_entries,
    notices,
    report_entries,
    unique_entries,
    update_entries,
)
from jobline_server.engine.effects import Applied, KeyHandedOver, endings_of
from jobline_server.engine.values import JobState
from jobline_server.runtime.watch.event_batches import BATCHES
from jobline_server.runtime.watch.event_blocked import BLOCKED, pushed_some_blocked, unblocked
from jobline_server.runtime.watch.event_duplicates import duplicates
from jobline_server.runtime.watch.event_endings import ended_runs
from jobline_server.runtime.watch.event_origin import EventOrigin, by_moment, cut, singles
from jobline_server.runtime.watch.event_queues import QUEUES
from jobline_server.runtime.watch.event_schedules import SCHEDULES
from jobline_server.runtime.watch.event_server import SERVER
from jobline_server.runtime.watch.event_updated import updated
from jobline_server.runtime.watch.event_webhooks import WEBHOOKS
from jobline_server.wire.event_runs import Columns, EventRun


def event_runs(shard: int, offset: int, applied: Iterable[Applied]) -> list[EventRun]:
    """Returns the events of applied facts of a shard, in order."""
    origin = EventOrigin(shard, offset)
    runs: list[EventRun] = []
    for common, alike in groupby(applied, _in_common):
        if common is not None:
            runs += _lots_pushed(origin, [lot.fact for lot in alike])
            continue
        for fact, _, effects in alike:
            for ending in endings_of(effects):
                runs += ended_runs(origin, ending)
            for handed_over in [effect for effect in effects if type(effect) is KeyHandedOver]:
                runs += unblocked(origin, handed_over.unblocked)
            make_events = EVENTS[type(fact)]
            if make_events is not None:
                runs += make_events(origin, fact)
    return runs


def _in_common(applied: Applied) -> tuple[object, ...] | None:
    """Returns the fields of a pushed lot that its events share, mostly with other small pushes."""
    fact = applied.fact
    if not isinstance(fact, entries.LotPushed):
        return None
    return fact.at_ms, fact.queue, fact.run_at_ms, fact.options.name


def _lots_pushed(origin: EventOrigin, lots: Sequence[Any]) -> Iterator[EventRun]:
    """Yields events of lots with the same fields; each lot is a run of ids."""
    fact = lots[0]
    view = origin.view(
        fact.at_ms,
        EventKind.EVENT_KIND_PUSHED,
        fact.queue,
        name=fact.options.name,
        state=JobState.SCHEDULED if fact.run_at_ms else JobState.READY,
        run_at_ms=fact.run_at_ms,
    )
    yield from cut(view, [lot.first_id for lot in lots], [len(lot.payloads) for lot in lots])


def _jobs_pushed(origin: EventOrigin, fact: entries.JobsPushed) -> Iterator[EventRun]:
    if fact.blocked:
        yield from pushed_some_blocked(origin, fact)
        return
    first_id, count = fact.first_id, len(fact.payloads)
    pushed = EventKind.EVENT_KIND_PUSHED
    names = [options.name for options in fact.options]
    group = fact.ties[0].group if count == 1 and fact.ties else ""
    if fact.run_at_ms:
        names = names * count if len(names) == 1 else names
        view = origin.view(fact.at_ms, pushed, fact.queue, state=JobState.READY, group=group)
        yield from by_moment(view, range(first_id, first_id + count), fact.run_at_ms, names)
        return
    if len(set(names)) == 1:
        view = origin.view(
            fact.at_ms, pushed, fact.queue, name=names[0], state=JobState.READY, group=group
        )
        yield EventRun(view, (first_id,), (count,), total=count)
        return
    view = origin.view(fact.at_ms, pushed, fact.queue, state=JobState.READY)
    yield from singles(view, range(first_id, first_id + count), Columns(names))


def _ready(origin: EventOrigin, fact: entries.JobsReady) -> Iterator[EventRun]:
    kind = EventKind.EVENT_KIND_PROMOTED if fact.promoted else EventKind.EVENT_KIND_READY
    ready, before = JobState.READY, JobState.SCHEDULED
    view = origin.view(fact.at_ms, kind, fact.queue, state=ready, before=before)
    yield from cut(view, [start for start, _ in fact.runs], [count for _, count in fact.runs])
    yield from singles(view, fact.ids)


def _leased(origin: EventOrigin, fact: entries.JobsLeased) -> Iterator[EventRun]:
    view = origin.view(
        fact.at_ms,
        EventKind.EVENT_KIND_LEASED,
        fact.queue,
        state=JobState.ACTIVE,
        before=JobState.READY,
        worker=fact.worker,
    )
    yield from cut(view, fact.starts, fact.counts, Columns(deliveries=fact.deliveries))


def _failed(origin: EventOrigin, fact: entries.JobFailed) -> Iterator[EventRun]:
    view = origin.view(
        fact.at_ms,
        EventKind.EVENT_KIND_RETRYING,
        fact.queue,
        name=fact.name,
        state=JobState.SCHEDULED if fact.run_at_ms else JobState.READY,
        before=JobState.ACTIVE,
        delivery=fact.delivery,
        attempt=fact.attempt,
        worker=fact.worker,
        error=fact.error,
        run_at_ms=fact.run_at_ms,
    )
    yield EventRun(view, (fact.id,), (1,))


def _came_back(
    origin: EventOrigin, fact: entries.JobsStalled | entries.JobsReleased
) -> Iterator[EventRun]:
    stalled = isinstance(fact, entries.JobsStalled)
    view = origin.view(
        fact.at_ms,
        EventKind.EVENT_KIND_STALLED if stalled else EventKind.EVENT_KIND_RELEASED,
        fact.queue,
        state=JobState.READY,
        before=JobState.ACTIVE,
        worker=fact.worker,
    )
    yield from by_moment(view, fact.ids, fact.run_at_ms)


def _reported(origin: EventOrigin, fact: report_entries.JobReported) -> Iterator[EventRun]:
    view = origin.view(
        fact.at_ms,
        EventKind.EVENT_KIND_PROGRESS,
        fact.queue,
        state=JobState.ACTIVE,
        before=JobState.ACTIVE,
        progress=fact.progress or 0.0,
        message=fact.message or "",
    )
    yield EventRun(view, (fact.id,), (1,))


def _phase_completed(
    origin: EventOrigin, fact: report_entries.PhaseCompleted
) -> Iterator[EventRun]:
    view = origin.view(
        fact.at_ms,
        EventKind.EVENT_KIND_PHASE_COMPLETED,
        fact.queue,
        state=JobState.ACTIVE,
        before=JobState.ACTIVE,
        progress=fact.progress,
        message=fact.phase,
    )
    yield EventRun(view, (fact.id,), (1,))


def _cancel_requested(origin: EventOrigin, fact: entries.CancelRequested) -> Iterator[EventRun]:
    active = JobState.ACTIVE
    kind = EventKind.EVENT_KIND_CANCEL_REQUESTED
    view = origin.view(fact.at_ms, kind, fact.queue, state=active, before=active)
    yield from singles(view, fact.ids)


def _retried(origin: EventOrigin, fact: entries.JobsRetried) -> Iterator[EventRun]:
    kind = EventKind.EVENT_KIND_RETRIED
    if fact.automatic:
        kind = EventKind.EVENT_KIND_DEAD_RETRIED
    jobs = zip(fact.jobs, fact.states, strict=True)
    for (queue, state), part in groupby(jobs, lambda job: (job[0].queue, job[1])):
        records = [record for record, _ in part]
        view = origin.view(
            fact.at_ms,
            kind,
            queue,
            state=JobState.READY,
            before=state,
        )
        if len(records) == 1:
            view.group = records[0].ties.group
        ids = [record.id for record in records]
        names = [record.options.name for record in records]
        yield from singles(view, ids, Columns(names))


def _aged(
    origin: EventOrigin, fact: entries.JobsAgedOut | entries.JobsDeleted
) -> Iterator[EventRun]:
    stale = isinstance(fact, entries.JobsAgedOut)
    kind = EventKind.EVENT_KIND_STALE if stale else EventKind.EVENT_KIND_DELETED
    if isinstance(fact, entries.JobsDeleted) and fact.evicted and fact.state is JobState.DEAD:
        kind = EventKind.EVENT_KIND_DEAD_EVICTED
    if stale and fact.state is JobState.DEAD:
        kind = EventKind.EVENT_KIND_DEAD_EXPIRED
    view = origin.view(
        fact.at_ms,
        kind,
        fact.queue,
        state=JobState.STALE if stale else None,
        before=fact.state,
    )
    yield from cut(view, fact.starts, fact.counts)


# A row for each fact and each notice; None: another function makes its events. Each function takes
# the very fact that it is registered for, which no type of a table can say.
EVENTS: dict[type, Callable[[EventOrigin, Any], Iterator[EventRun]] | None] = {
    entries.LotPushed: None,  # many at a time: `_lots_pushed`
    entries.JobsPushed: _jobs_pushed,
    entries.JobsReady: _ready,
    **BLOCKED,
    update_entries.JobUpdated: updated,
    update_entries.KeyForgotten: None,  # nothing became of any job
    entries.JobsLeased: _leased,
    entries.JobFailed: _failed,
    entries.JobsStalled: _came_back,
    entries.JobsReleased: _came_back,
    report_entries.JobReported: _reported,
    report_entries.JobLogged: None,  # lines are read by `GetJobLogs`
    report_entries.PhaseCompleted: _phase_completed,
    entries.CancelRequested: _cancel_requested,
    entries.JobsCompleted: None,  # as all that ends: `event_endings`
    entries.JobDied: None,
    entries.JobsExpired: None,
    entries.JobsCancelled: None,
    entries.JobsRetried: _retried,
    entries.JobsAgedOut: _aged,
    entries.JobsDeleted: _aged,
    unique_entries.JobsReplaced: None,  # they end
    unique_entries.UniqueKeysExtended: None,  # nothing happens to a job
    unique_entries.UniqueKeyForgotten: None,
    notices.DuplicatesFound: duplicates,
    **QUEUES,
    limiter_entries.LimiterChanged: None,  # no job and no queue is concerned
    limiter_entries.LimiterDeleted: None,
    **SCHEDULES,
    message_entries.MessagesSent: None,  # what a message causes has events of its own
    message_entries.MessagesReceived: None,
    message_entries.MessagesAcknowledged: None,
    **BATCHES,
    **WEBHOOKS,
    **SERVER,
}

"""Makes the events of jobs that are pushed as BLOCKED, of those that wait for children which they
add, and of those that are unblocked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.blocked_entries import (
    ChildrenAdded,
    DependenciesFailed,
    DependentsTold,
    JobsAwaited,
    JobSetAside,
    JobsNotAwaited,
    JobsUnblocked,
    ParentsDropped,
    ParentsEnded,
    ParentsMet,
)
from jobline_server.engine.entries import JobsPushed
from jobline_server.engine.values import JobState
from jobline_server.runtime.watch.event_origin import EventOrigin, by_moment, singles
from jobline_server.wire.event_runs import Columns, EventRun


def pushed_some_blocked(origin: EventOrigin, fact: JobsPushed) -> Iterator[EventRun]:
    """Yields the events of a push of which some jobs are BLOCKED: first PUSHED of all jobs, in
    order, then BLOCKED of those.
    """
    count = len(fact.payloads)
    ids = range(fact.first_id, fact.first_id + count)
    names = [options.name for options in fact.options]
    names = names * count if len(names) == 1 else names
    run_at_ms = fact.run_at_ms or [0] * count
    blocked = set(fact.blocked)
    view = origin.view(fact.at_ms, EventKind.EVENT_KIND_PUSHED, fact.queue, state=JobState.READY)
    if count == 1 and fact.ties:
        view.group = fact.ties[0].group
    waits = replace(view, state=JobState.BLOCKED)
    for is_blocked, group in groupby(range(count), blocked.__contains__):
        indexes = list(group)
        part = slice(indexes[0], indexes[-1] + 1)
        if is_blocked:
            yield from singles(waits, ids[part], Columns(names[part]))
        else:
            yield from by_moment(view, ids[part], run_at_ms[part], names[part])
    view = origin.view(fact.at_ms, EventKind.EVENT_KIND_BLOCKED, fact.queue, state=JobState.BLOCKED)
    columns = Columns([names[index] for index in fact.blocked])
    yield from singles(view, [ids[index] for index in fact.blocked], columns)


def unblocked(origin: EventOrigin, fact: JobsUnblocked) -> Iterator[EventRun]:
    """Yields the events of jobs that are unblocked."""
    view = origin.view(
        fact.at_ms,
        EventKind.EVENT_KIND_UNBLOCKED,
        fact.queue,
        state=JobState.READY,
        before=JobState.BLOCKED,
    )
    yield from by_moment(view, fact.ids, fact.run_at_ms)


def _set_aside(origin: EventOrigin, fact: JobSetAside) -> Iterator[EventRun]:
    view = origin.view(
        fact.at_ms,
        EventKind.EVENT_KIND_BLOCKED,
        fact.queue,
        state=JobState.BLOCKED,
        before=JobState.ACTIVE,
        worker=fact.worker,
    )
    yield from singles(view, [fact.id])


BLOCKED: dict[type, Callable[[EventOrigin, Any], Iterator[EventRun]] | None] = {
    JobsUnblocked: unblocked,
    JobSetAside: _set_aside,
    ChildrenAdded: None,  # it was set aside for them
    ParentsDropped: None,  # as the next one
    ParentsMet: None,  # those that wait for no other are unblocked by another fact
    ParentsEnded: None,
    DependenciesFailed: None,  # as all that ends
    DependentsTold: None,
    JobsAwaited: None,
    JobsNotAwaited: None,
}

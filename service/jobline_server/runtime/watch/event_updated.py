"""Makes the event of a job that an operator changed."""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.update_entries import JobUpdated
from jobline_server.runtime.watch.event_origin import EventOrigin
from jobline_server.wire.event_runs import EventRun


def updated(origin: EventOrigin, fact: JobUpdated) -> Iterator[EventRun]:
    """Yields the event of the fact."""
    view = origin.view(
        fact.at_ms,
        EventKind.EVENT_KIND_UPDATED,
        fact.queue,
        state=fact.after,
        before=fact.before,
        run_at_ms=fact.run_at_ms or 0,
    )
    yield EventRun(view, (fact.id,), (1,))

"""Makes the events of pushes that returned jobs which were there already."""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.notices import DuplicatesFound
from jobline_server.engine.values import JobState, PushOutcome
from jobline_server.runtime.watch.event_origin import EventOrigin, singles
from jobline_server.wire.event_runs import Columns, EventRun


def duplicates(origin: EventOrigin, notice: DuplicatesFound) -> Iterator[EventRun]:
    """Yields the events: those with the same outcome and state together."""
    alike: dict[tuple[PushOutcome, JobState | None], list[tuple[int, str]]] = {}
    columns = notice.outcomes, notice.states, notice.ids, notice.names
    for outcome, state, job_id, name in zip(*columns, strict=True):
        alike.setdefault((outcome, state), []).append((job_id, name))
    for (outcome, state), jobs in alike.items():
        view = origin.view(
            notice.at_ms,
            EventKind.EVENT_KIND_DUPLICATE,
            notice.queue,
            state=state,
            before=state,
            message=outcome.name,
        )
        names = Columns([name for _, name in jobs])
        yield from singles(view, [job_id for job_id, _ in jobs], names)

"""Makes the events of schedules: what their runs pushed, and what they did not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine import schedule_entries
from jobline_server.runtime.watch.event_origin import EventOrigin
from jobline_server.wire.event_runs import EventRun, EventView


def _ticked(origin: EventOrigin, fact: schedule_entries.ScheduleTicked) -> Iterator[EventRun]:
    """Yields an event for each run that pushed a job or was skipped, and one for all missed."""

    def view(kind: int, run_ms: int, message: str = "") -> EventView:
        return origin.view(
            fact.at_ms, kind, fact.queue, name=fact.name, run_at_ms=run_ms, message=message
        )

    if fact.missed:
        kind = EventKind.EVENT_KIND_SCHEDULE_MISSED
        yield EventRun(view(kind, fact.missed_ms, f"{fact.missed} missed"))
    kind = EventKind.EVENT_KIND_SCHEDULE_FIRED
    for run_ms, job_id in zip(fact.fired_ms, fact.job_ids, strict=True):
        yield EventRun(view(kind, run_ms), (job_id,), (1,))
    kind = EventKind.EVENT_KIND_SCHEDULE_SKIPPED
    last = len(fact.skipped_ms) - 1
    for at, (run_ms, reason) in enumerate(zip(fact.skipped_ms, fact.skip_reasons, strict=True)):
        more = f": {fact.skip_message}" if at == last and fact.skip_message else ""
        yield EventRun(view(kind, run_ms, f"{reason.name}{more}"))


SCHEDULES: dict[type, Callable[[EventOrigin, Any], Iterator[EventRun]] | None] = {
    schedule_entries.ScheduleTicked: _ticked,
    schedule_entries.ScheduleChanged: None,  # no job and no run is concerned
    schedule_entries.ScheduleDeleted: None,
    schedule_entries.SchedulePaused: None,
    schedule_entries.ScheduleResumed: None,
}

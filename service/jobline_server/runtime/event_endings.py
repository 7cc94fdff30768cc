"""Events of jobs that ended, from the endings of a turn."""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.endings import EndedJobs, EndedRuns, Ending
from jobline_server.engine.values import EndReason, JobState
from jobline_server.runtime.event_place import Place, cut, singles
from jobline_server.wire.event_runs import Columns, EventRun

_ENDED_KINDS = {
    JobState.COMPLETED: int(EventKind.EVENT_KIND_COMPLETED),
    JobState.DEAD: int(EventKind.EVENT_KIND_DEAD),
    JobState.CANCELLED: int(EventKind.EVENT_KIND_CANCELLED),
}


def ended_runs(place: Place, ending: Ending) -> Iterator[EventRun]:
    """The events of an ending; none where only kept jobs change, which a fact tells of."""
    if isinstance(ending, EndedRuns):
        yield from _runs_ended(place, ending)
    elif isinstance(ending, EndedJobs):
        yield from _jobs_ended(place, ending)


def _jobs_ended(place: Place, ending: EndedJobs) -> Iterator[EventRun]:
    jobs, completed = ending.jobs, ending.state is JobState.COMPLETED
    workers = [job.holder.worker if job.holder else "" for job in jobs]
    one_worker = len(set(workers)) == 1
    view = place.view(
        ending.ended_ms,
        _ENDED_KINDS[ending.state],
        jobs[0].queue.name,
        state=ending.state,
        before=ending.before,
        worker=workers[0] if one_worker else "",
        error=ending.error,
        reason=ending.reason,
    )
    columns = Columns(
        [job.options.name for job in jobs],
        [job.delivery for job in jobs],
        [job.attempts + completed for job in jobs],
        () if one_worker else workers,
    )
    yield from singles(view, [job.id for job in jobs], columns)


def _runs_ended(place: Place, ending: EndedRuns) -> Iterator[EventRun]:
    cancelled = ending.state is JobState.CANCELLED
    view = place.view(
        ending.ended_ms,
        _ENDED_KINDS[ending.state],
        ending.lot.queue.name,
        name=ending.lot.options.name,
        state=ending.state,
        before=ending.before,
        delivery=ending.delivery,
        attempt=0 if cancelled else 1,
        worker=ending.worker,
        reason=EndReason.CANCELLED if cancelled else EndReason.NONE,
    )
    yield from cut(view, ending.starts, ending.counts)

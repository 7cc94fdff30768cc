"""Makes the events of jobs that ended, and of flows whose roots did, from endings of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.endings import Ending, JobsEnded, RunsEnded
from jobline_server.engine.job import Job
from jobline_server.engine.rules import NO_RULES, JobRules
from jobline_server.engine.values import JobState
from jobline_server.runtime.watch.event_origin import EventOrigin, cut, singles
from jobline_server.wire.event_runs import Columns, EventRun

_ENDED_KINDS = {
    JobState.COMPLETED: int(EventKind.EVENT_KIND_COMPLETED),
    JobState.DEAD: int(EventKind.EVENT_KIND_DEAD),
    JobState.CANCELLED: int(EventKind.EVENT_KIND_CANCELLED),
    JobState.EXPIRED: int(EventKind.EVENT_KIND_EXPIRED),
}
_FLOW_COMPLETED = int(EventKind.EVENT_KIND_FLOW_COMPLETED)
_FLOW_FAILED = int(EventKind.EVENT_KIND_FLOW_FAILED)


def ended_runs(origin: EventOrigin, ending: Ending) -> Iterator[EventRun]:
    """Yields the events of an ending. Changes of kept jobs have none here; their facts do."""
    if isinstance(ending, RunsEnded):
        yield from _runs_ended(origin, ending)
    elif isinstance(ending, JobsEnded):
        yield from _jobs_ended(origin, ending)


def _jobs_ended(origin: EventOrigin, ending: JobsEnded) -> Iterator[EventRun]:
    yield from _of_jobs(origin, ending, ending.jobs, _ENDED_KINDS[ending.state])
    roots = [job for job in ending.jobs if job.ties.is_flow_root]
    if roots:
        completed = ending.state is JobState.COMPLETED
        yield from _of_jobs(origin, ending, roots, _FLOW_COMPLETED if completed else _FLOW_FAILED)


def _of_jobs(
    origin: EventOrigin, ending: JobsEnded, jobs: Sequence[Job], kind: int
) -> Iterator[EventRun]:
    """Yields the events of one kind of some jobs of an ending."""
    completed = ending.state is JobState.COMPLETED
    workers = [job.holder.worker if job.holder else "" for job in jobs]
    one_worker = len(set(workers)) == 1
    rules = [job.options.rules for job in jobs]
    view = origin.view(
        ending.ended_ms,
        kind,
        jobs[0].queue.name,
        state=ending.state,
        before=ending.before,
        worker=workers[0] if one_worker else "",
        error=ending.error,
        reason=ending.reason,
        group=jobs[0].ties.group if len(jobs) == 1 else "",
    )
    columns = Columns(
        [job.options.name for job in jobs],
        [job.delivery for job in jobs],
        [job.attempts + completed for job in jobs],
        () if one_worker else workers,
        rules=rules if any(map(_is_kept, rules)) else (),
    )
    yield from singles(view, [job.id for job in jobs], columns)


def _runs_ended(origin: EventOrigin, ending: RunsEnded) -> Iterator[EventRun]:
    rules = ending.lot.options.rules
    view = origin.view(
        ending.ended_ms,
        _ENDED_KINDS[ending.state],
        ending.lot.queue.name,
        name=ending.lot.options.name,
        state=ending.state,
        before=ending.before,
        delivery=ending.delivery,
        attempt=int(ending.state is JobState.COMPLETED),
        worker=ending.worker,
        reason=ending.reason,
        rules=rules if _is_kept(rules) else NO_RULES,
    )
    yield from cut(view, ending.starts, ending.counts)


def _is_kept(rules: JobRules) -> bool:
    """Returns whether the events of a job need its rules: for webhooks, by its tags or its URL."""
    return rules is not NO_RULES and bool(rules.webhook or rules.tags)

"""Makes rows of facts and their effects. Volatile facts, which are in no journal, make none.

Rows of one fact: first those of the jobs that it ended, then those of the jobs that go on. What
retention deletes makes no rows: these jobs have ended, and nothing about that changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jobline_server.engine import (
    blocked_entries,
    entries,
    operation_entries,
    queue_entries,
    report_entries,
    update_entries,
)
from jobline_server.engine.effects import Applied, Effect, KeyHandedOver
from jobline_server.engine.endings import JobsEnded, RunsEnded
from jobline_server.engine.snapshots import JobsNoted, RunsNoted
from jobline_server.engine.values import JobState, ReleaseReason
from jobline_server.history.endings import jobs_ended, runs_ended
from jobline_server.history.pushes import jobs_pushed, jobs_retried, lot_pushed
from jobline_server.history.rows import Rows
from jobline_server.history.snapshots import (
    of_hand_outs,
    of_jobs,
    of_runs,
    or_else,
    plus,
    run_hand_outs,
)

Noted = JobsNoted | RunsNoted
_READY = JobState.READY


def rows_of(applied: Iterable[Applied]) -> list[Rows]:
    """Returns the rows of the facts of one entry of the journal, in order."""
    found: list[Rows] = []
    for fact, offset, effects in applied:
        if offset:
            found += _rows_of_one(fact, effects)
    return found


def _rows_of_one(fact: Any, effects: Iterable[Effect]) -> list[Rows]:
    found: list[Rows] = []
    noted: list[Noted] = []
    for effect in effects:
        kind = type(effect)
        if kind is RunsEnded:
            if not effect.lot.volatile:  # type: ignore[union-attr]  # its kind is known
                found.append(runs_ended(effect))  # type: ignore[arg-type]  # as above
        elif kind is JobsEnded:
            ended = jobs_ended(effect)  # type: ignore[arg-type]  # as above
            found += () if ended is None else (ended,)
        elif kind is JobsNoted or kind is RunsNoted:
            noted.append(effect)  # type: ignore[arg-type]  # as above
        elif kind is KeyHandedOver and noted:
            found += _unblocked(fact, noted.pop())
    make = MAKERS.get(type(fact))
    if make is not None:
        found += make(fact, noted)
    return found


def _jobs(noted: Iterable[Noted]) -> Iterator[JobsNoted]:
    for each in noted:
        if isinstance(each, JobsNoted):
            yield each


def _leased(fact: entries.JobsLeased, noted: list[Noted]) -> Iterator[Rows]:
    at = fact.at_ms
    for each in noted:
        if isinstance(each, RunsNoted):
            until = None if each.lease is None else at + each.lease.lease_ms
            yield run_hand_outs(each, at, "leased", lease_until=until)
        else:
            yield of_hand_outs(each, at, "leased", lease_until=plus(each.lease_ms, at))


def _failed(fact: entries.JobFailed, noted: list[Noted]) -> Iterator[Rows]:
    for each in _jobs(noted):
        yield of_hand_outs(
            each,
            fact.at_ms,
            "retrying",
            attempts=plus(each.attempts, 1),
            final=False,
            next_run_at=fact.run_at_ms or fact.at_ms,
            reason="TIMEOUT" if fact.timed_out else None,
            error_type=fact.error.type or None,
            error=fact.error.message or None,
        )


def _came_back(
    fact: entries.JobsStalled | entries.JobsReleased, noted: list[Noted]
) -> Iterator[Rows]:
    if isinstance(fact, entries.JobsStalled):
        event, reason, stalls, releases = "stalled", fact.reason.name, 1, 0
    else:
        event, reason, stalls = "released", fact.why.name, 0
        releases = int(fact.why is not ReleaseReason.UNDELIVERED)
    times = iter(fact.run_at_ms)
    for each in _jobs(noted):
        yield of_hand_outs(
            each,
            fact.at_ms,
            event,
            stalls=plus(each.stalls, stalls),
            releases=plus(each.releases, releases),
            final=False,
            next_run_at=or_else([next(times, 0) for _ in each.ids], fact.at_ms),
            reason=reason,
        )


def _set_aside(fact: blocked_entries.JobSetAside, noted: list[Noted]) -> Iterator[Rows]:
    """Yields that the hand-out ended, as the job waits for children that it added."""
    for each in _jobs(noted):
        yield of_hand_outs(each, fact.at_ms, "released", final=False, reason="BLOCKED")


def _of_active(event: str) -> Callable[[Any, list[Noted]], Iterator[Rows]]:
    """Returns a maker of events of jobs that are leased before and after."""

    def make(fact: Any, noted: list[Noted]) -> Iterator[Rows]:
        reason = getattr(fact, "message", None) or getattr(fact, "phase", None)
        for each in _jobs(noted):
            yield of_hand_outs(each, fact.at_ms, event, reason=reason)

    return make


def _ready(fact: entries.JobsReady, noted: list[Noted]) -> Iterator[Rows]:
    event = "promoted" if fact.promoted else "ready"
    for each in noted:
        if isinstance(each, JobsNoted):
            yield of_jobs(each, fact.at_ms, event, ready_at=fact.at_ms)
        elif each.starts:
            yield of_runs(each, fact.at_ms, event, ready_at=fact.at_ms)


def _unblocked(fact: Any, noted: Noted) -> Iterator[Rows]:
    for each in _jobs([noted]):
        ready_at = fact.at_ms if each.state is _READY else None
        run_at = or_else(each.run_at_ms, None)
        yield of_jobs(each, fact.at_ms, "unblocked", ready_at=ready_at, run_at=run_at)


def _all_unblocked(fact: blocked_entries.JobsUnblocked, noted: list[Noted]) -> Iterator[Rows]:
    for each in noted:
        yield from _unblocked(fact, each)


def _updated(fact: update_entries.JobUpdated, noted: list[Noted]) -> Iterator[Rows]:
    for each in _jobs(noted):
        yield of_jobs(each, fact.at_ms, "updated", run_at=or_else(each.run_at_ms, None))


def _deleted(
    fact: entries.JobsDeleted | queue_entries.QueueDeleted, noted: list[Noted]
) -> Iterator[Rows]:
    """Yields the ends of live jobs that were deleted, and with a queue that of the queue."""
    reason = "DELETED"
    if isinstance(fact, queue_entries.QueueDeleted):
        reason = "QUEUE_DELETED"
    for each in noted:
        if isinstance(each, JobsNoted):
            yield of_hand_outs(each, fact.at_ms, "deleted", final=True, reason=reason)
        elif each.starts:
            yield run_hand_outs(each, fact.at_ms, "deleted", final=True, reason=reason)
    if isinstance(fact, queue_entries.QueueDeleted):
        yield Rows(fact.at_ms, {"event": "queue_deleted", "queue": fact.queue})


def _operation(fact: operation_entries.OperationRecorded, _noted: list[Noted]) -> Iterator[Rows]:
    """Yields what an operator did, when it is done; the jobs that it touched have rows of their
    own.
    """
    operation = fact.operation
    yield Rows(
        fact.at_ms,
        {
            "event": "operation",
            "queue": operation.queue or None,
            "name": operation.verb,
            "group": operation.group or None,
            "principal": operation.principal or None,
            "operation_id": operation_number(operation.id),
            "reason": operation.state.name,
            "batch_id": operation.batch_id or None,
        },
    )


def operation_number(operation_id: str) -> int | None:
    """Returns the id of an operation as a signed number of 64 bits; None if it is none."""
    try:
        number = int(operation_id, 16)
    except ValueError:
        return None
    return number - (1 << 64) if (number & ((1 << 64) - 1)) >> 63 else number & ((1 << 63) - 1)


# A row for each fact that makes rows; each function takes the very fact that it stands beside.
MAKERS: dict[type, Callable[[Any, list[Noted]], Iterable[Rows]]] = {
    entries.LotPushed: lot_pushed,
    entries.JobsPushed: jobs_pushed,
    entries.JobsReady: _ready,
    entries.JobsLeased: _leased,
    entries.JobFailed: _failed,
    entries.JobsStalled: _came_back,
    entries.JobsReleased: _came_back,
    entries.CancelRequested: _of_active("cancel_requested"),
    entries.JobsRetried: jobs_retried,
    entries.JobsDeleted: _deleted,
    report_entries.JobReported: _of_active("progress"),
    report_entries.PhaseCompleted: _of_active("phase_completed"),
    blocked_entries.JobSetAside: _set_aside,
    blocked_entries.JobsUnblocked: _all_unblocked,
    update_entries.JobUpdated: _updated,
    operation_entries.OperationRecorded: _operation,
    queue_entries.QueueDeleted: _deleted,
}

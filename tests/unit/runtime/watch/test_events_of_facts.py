"""What watchers see of each fact: its kind, its jobs, and the states before and after."""

from __future__ import annotations

from typing import Any

import pytest

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine import entries
from jobline_server.engine.blocked_entries import JobsUnblocked
from jobline_server.engine.effects import Applied
from jobline_server.engine.entries import Fact
from jobline_server.engine.group_entries import GroupLimited
from jobline_server.engine.queue_entries import (
    QueueChanged,
    QueueDeleted,
    QueueLimited,
    QueuePaused,
    QueueResumed,
)
from jobline_server.engine.records import JobRecord
from jobline_server.engine.report_entries import JobReported
from jobline_server.engine.update_entries import JobUpdated
from jobline_server.engine.values import (
    DEFAULT_SETTINGS,
    EndReason,
    JobError,
    JobOptions,
    JobState,
    ReleaseReason,
)
from jobline_server.runtime.watch.events import event_runs
from jobline_server.wire.event_runs import EventRun

AT, LATER = 1_000, 9_000
READY, SCHEDULED, ACTIVE = JobState.READY, JobState.SCHEDULED, JobState.ACTIVE
BLOCKED = JobState.BLOCKED
DEAD, STALE, COMPLETED = JobState.DEAD, JobState.STALE, JobState.COMPLETED
A, B = JobOptions(name="a"), JobOptions(name="b")
Row = tuple[str, list[int], JobState | None, JobState | None]


def made(fact: Fact) -> list[EventRun]:
    runs = event_runs(0, 7, [Applied(fact, 7, [])])
    assert {(run.shared.at_ms, run.shared.offset) for run in runs} <= {(AT, 7)}
    return runs


def row(run: EventRun) -> Row:
    """Kind, ids, the state before and the state after."""
    kind = EventKind.Name(EventKind.ValueType(run.shared.kind)).removeprefix("EVENT_KIND_")
    pairs = zip(run.starts, run.counts, strict=True)
    ids = [job_id for start, count in pairs for job_id in range(start, start + count)]
    return kind, ids, run.shared.before, run.shared.state


def pushed(options: list[JobOptions], run_at_ms: list[int] | None = None) -> Fact:
    payloads = [b"x"] * max(len(options), len(run_at_ms or []))
    return entries.JobsPushed(AT, "mail", 5, options, payloads, run_at_ms or [])


RELEASED = (AT, "mail", [5, 8], [0, LATER], ReleaseReason.SNOOZE, "w")
ENDED = (AT, "mail", DEAD, [5, 20], [2, 1])
FACTS: dict[str, tuple[Fact, list[Row]]] = {
    "pushed": (pushed([A, A]), [("PUSHED", [5, 6], None, READY)]),
    "pushed, some for later": (
        pushed([A, A, A], [0, LATER, LATER]),
        [("PUSHED", [5], None, READY), ("PUSHED", [6, 7], None, SCHEDULED)],
    ),
    "due": (
        entries.JobsReady(AT, "mail", [5], [20], runs=[(20, 2)]),
        [("READY", [20, 21], SCHEDULED, READY), ("READY", [5], SCHEDULED, READY)],
    ),
    "promoted": (
        entries.JobsReady(AT, "mail", [5], [], promoted=True),
        [("PROMOTED", [5], SCHEDULED, READY)],
    ),
    "leased": (
        entries.JobsLeased(AT, "mail", "w", "s", 0, [5, 20], [2, 1], [9, 8]),
        [("LEASED", [5, 6, 20], READY, ACTIVE)],
    ),
    "stalled": (
        entries.JobsStalled(AT, "mail", [5, 8], [], EndReason.WORKER_LOST, "w"),
        [("STALLED", [5, 8], ACTIVE, READY)],
    ),
    "released": (
        entries.JobsReleased(*RELEASED),
        [("RELEASED", [5], ACTIVE, READY), ("RELEASED", [8], ACTIVE, SCHEDULED)],
    ),
    "asked to stop": (
        entries.CancelRequested(AT, "mail", [5, 8]),
        [("CANCEL_REQUESTED", [5, 8], ACTIVE, ACTIVE)],
    ),
    "dead retried": (
        entries.JobsRetried(AT, [JobRecord(5, "mail", A, b"", 0)], [DEAD], automatic=True),
        [("DEAD_RETRIED", [5], DEAD, READY)],
    ),
    "retried": (
        entries.JobsRetried(
            AT,
            [JobRecord(n, queue, A, b"", 0) for n, queue in ((5, "mail"), (6, "mail"), (7, "sms"))],
            [DEAD, COMPLETED, COMPLETED],
        ),
        [
            ("RETRIED", [5], DEAD, READY),
            ("RETRIED", [6], COMPLETED, READY),
            ("RETRIED", [7], COMPLETED, READY),
        ],
    ),
    "unblocked": (
        JobsUnblocked(AT, "mail", [5, 8], run_at_ms=[0, LATER]),
        [("UNBLOCKED", [5], BLOCKED, READY), ("UNBLOCKED", [8], BLOCKED, SCHEDULED)],
    ),
    "updated": (
        JobUpdated(AT, "mail", 5, b"x", run_at_ms=LATER, before=READY, after=SCHEDULED),
        [("UPDATED", [5], READY, SCHEDULED)],
    ),
    "pushed, some blocked": (
        entries.JobsPushed(AT, "mail", 5, [A], [b"", b"", b""], [0, 0, LATER], blocked=[1]),
        [
            ("PUSHED", [5], None, READY),
            ("PUSHED", [6], None, BLOCKED),
            ("PUSHED", [7], None, SCHEDULED),
            ("BLOCKED", [6], None, BLOCKED),
        ],
    ),
    "aged out": (
        entries.JobsAgedOut(AT, "mail", COMPLETED, [5, 20], [2, 1]),
        [("STALE", [5, 6, 20], COMPLETED, STALE)],
    ),
    "dead expired": (entries.JobsAgedOut(*ENDED), [("DEAD_EXPIRED", [5, 6, 20], DEAD, STALE)]),
    "deleted": (entries.JobsDeleted(*ENDED), [("DELETED", [5, 6, 20], DEAD, None)]),
    "evicted": (
        entries.JobsDeleted(*ENDED, evicted=True),
        [("DEAD_EVICTED", [5, 6, 20], DEAD, None)],
    ),
    "evicted, not dead": (
        entries.JobsDeleted(AT, "mail", COMPLETED, [5], [1], evicted=True),
        [("DELETED", [5], COMPLETED, None)],
    ),
    "created": (
        QueueChanged(AT, "mail", DEFAULT_SETTINGS, created_number=3),
        [("QUEUE_CREATED", [], None, None)],
    ),
    "changed": (
        QueueChanged(AT, "mail", DEFAULT_SETTINGS),
        [("QUEUE_CHANGED", [], None, None)],
    ),
    "limited": (QueueLimited(AT, "mail", 9, "root", "429"), [("QUEUE_LIMITED", [], None, None)]),
    "group limited": (
        GroupLimited(AT, "mail", "g", 9, "ann", "429", 7),
        [("GROUP_LIMITED", [], None, None)],
    ),
    "group goes on": (GroupLimited(AT, "mail", "g", 0), [("GROUP_LIMITED", [], None, None)]),
    "group without tokens": (GroupLimited(AT, "mail", "g", 9, is_used_up=True), []),
    "paused": (QueuePaused(AT, "mail", "root", "hot"), [("QUEUE_PAUSED", [], None, None)]),
    "resumed": (QueueResumed(AT, "mail"), [("QUEUE_RESUMED", [], None, None)]),
    "queue deleted": (QueueDeleted(AT, "mail"), [("QUEUE_DELETED", [], None, None)]),
}


@pytest.mark.parametrize("name", FACTS)
def test_each_fact_is_seen_as_what_happened(name: str) -> None:
    """In the order in which it happened to the jobs."""
    fact, expected = FACTS[name]
    assert [row(run) for run in made(fact)] == expected


@pytest.mark.parametrize("run_at_ms", [0, LATER])
def test_a_failed_attempt_is_seen_with_its_error_and_when_it_goes_on(run_at_ms: int) -> None:
    error = JobError("E", "no such host")
    fact = entries.JobFailed(AT, 5, run_at_ms, error, "mail", "send", 9, 2, "w")
    (run,) = made(fact)
    assert row(run) == ("RETRYING", [5], ACTIVE, SCHEDULED if run_at_ms else READY)
    view = run.shared
    assert (view.name, view.delivery, view.attempt, view.worker) == ("send", 9, 2, "w")
    assert (view.error, view.run_at_ms) == (error, run_at_ms)


@pytest.mark.parametrize(
    ("told", "shown"), [((0.5, "half"), (0.5, "half")), ((None, None), (0, ""))]
)
def test_a_report_is_seen_with_what_it_says(told: Any, shown: Any) -> None:
    """It may say one thing, or only keep a checkpoint."""
    progress, message = told
    (run,) = made(JobReported(AT, "mail", 5, progress, message, b"at 7"))
    assert row(run) == ("PROGRESS", [5], ACTIVE, ACTIVE)
    assert (run.shared.progress, run.shared.message) == shown


def test_a_pause_is_seen_with_its_reason() -> None:
    (run,) = made(QueuePaused(AT, "mail", "root", "too hot"))
    assert (run.shared.queue, run.shared.message) == ("mail", "too hot")


@pytest.mark.parametrize(
    ("fact", "names", "moments"),
    [
        (pushed([A, B]), ["a", "b"], []),
        (pushed([A], [LATER, LATER]), ["a", "a"], [LATER, LATER]),
        (pushed([A, B], [LATER, LATER]), ["a", "b"], [LATER, LATER]),
    ],
    ids=["names differ", "one name, for later", "both"],
)
def test_jobs_with_options_of_their_own_have_columns(
    fact: Fact, names: list[str], moments: list[int]
) -> None:
    """A name that all share stands once where nothing else differs."""
    (run,) = made(fact)
    assert (list(run.columns.names), list(run.columns.run_at_ms)) == (names, moments)
    (shared,) = made(pushed([A, A]))
    assert (shared.shared.name, list(shared.columns.names), shared.total) == ("a", [], 2)

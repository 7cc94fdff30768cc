"""The group and the principal of events, where they are at hand."""

from __future__ import annotations

import pytest

from jobline_server.engine import entries
from jobline_server.engine.effects import Applied
from jobline_server.engine.entries import Fact
from jobline_server.engine.group_entries import GroupLimited, GroupPaused, GroupResumed
from jobline_server.engine.operation_entries import OperationRecorded
from jobline_server.engine.operations import Operation
from jobline_server.engine.queue_entries import QueueLimited, QueuePaused, QueueResumed
from jobline_server.engine.records import JobRecord
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, JobState
from jobline_server.runtime.watch.event_queues import DRAIN_VERB
from jobline_server.runtime.watch.events import event_runs
from jobline_server.wire.events import run_message

AT, LATER = 1_000, 9_000
WHO = "anonymous@10.0.0.7"


def pushed(jobs: int, ties: list[Ties], run_at_ms: int = 0) -> Fact:
    payloads, later = [b"x"] * jobs, [run_at_ms] * jobs if run_at_ms else []
    return entries.JobsPushed(AT, "mail", 5, [DEFAULT_OPTIONS] * jobs, payloads, later, ties=ties)


def details(fact: Fact) -> list[tuple[str, str]]:
    """Group and principal of each run, as watchers get them."""
    runs = [run_message(run) for run in event_runs(0, 5, [Applied(fact, 5, [])])]
    return [(run.shared.group, run.shared.principal) for run in runs]


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (QueuePaused(AT, "mail", WHO, "hot"), ("", WHO)),
        (QueueLimited(AT, "mail", LATER, WHO, ""), ("", WHO)),
        (QueueResumed(AT, "mail"), ("", "")),
        (GroupPaused(AT, "mail", "g", WHO, "", 7), ("g", WHO)),
        (GroupLimited(AT, "mail", "g", LATER, WHO), ("g", WHO)),
        (GroupResumed(AT, "mail", "g"), ("g", "")),
        (OperationRecorded(AT, Operation("o", DRAIN_VERB, WHO, AT, queue="mail")), ("", WHO)),
        (pushed(1, [Ties("g")]), ("g", "")),
        (pushed(1, [Ties("g")], LATER), ("g", "")),
        (pushed(1, []), ("", "")),
        (pushed(2, [Ties("g"), Ties("g")]), ("", "")),
    ],
)
def test_an_event_says_which_group_and_who(fact: Fact, expected: tuple[str, str]) -> None:
    assert details(fact) == [expected]


def test_a_job_that_is_pushed_alone_and_waits_for_others_says_its_group() -> None:
    """In PUSHED, as each job that is pushed alone, and not in BLOCKED."""
    ties = [Ties("g", parents=(3,))]
    alone = entries.JobsPushed(AT, "mail", 5, [DEFAULT_OPTIONS], [b"x"], ties=ties, blocked=[0])
    assert details(alone) == [("g", ""), ("", "")]


def test_a_job_that_is_retried_alone_says_its_group() -> None:
    """Several at once do not: a column for it would cost every watcher."""

    def retried(*groups: str) -> Fact:
        jobs = [JobRecord(7 + n, "mail", DEFAULT_OPTIONS, b"", AT) for n in range(len(groups))]
        for job, group in zip(jobs, groups, strict=True):
            job.ties = Ties(group)
        return entries.JobsRetried(AT, jobs, [JobState.DEAD] * len(jobs))

    assert details(retried("g")) == [("g", "")]
    assert details(retried("g", "g")) == [("", "")]

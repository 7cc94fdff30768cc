"""Commands and their outcomes."""

from __future__ import annotations

from jobline_server.engine.commands import Leased, LeasedJob, LeasedRun, Push, RefusalKind, Refused
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions, LeaseReason
from tests.pushed_rows import NewJob, jobs_of

RUN = LeasedRun(10, 1, "q", DEFAULT_OPTIONS, Payloads.of([b"1", b"2"]), 30_000, 0)
JOB = LeasedJob(5, 1, "q", DEFAULT_OPTIONS, b"x", 1, LeaseReason.FIRST, 30_000, b"", 0, "")


def test_leased_counts_every_job_of_a_run():
    assert Leased([JOB], [RUN]).count() == 3


def test_leased_items_are_runs_then_jobs_unless_an_order_is_given():
    """The order of the hand-out costs nothing in the usual case."""
    assert list(Leased([JOB], [RUN]).items()) == [RUN, JOB]
    assert list(Leased([JOB], [RUN], [JOB, RUN]).items()) == [JOB, RUN]


def test_refusal_says_what_where_and_when_to_come_back():
    refused = Refused(RefusalKind.QUEUE_FULL, "full", field="queue", retry_after_ms=1_000)
    assert (refused.kind, refused.field, refused.retry_after_ms) == (
        RefusalKind.QUEUE_FULL,
        "queue",
        1_000,
    )
    assert str(refused) == refused.message == "full"


def test_a_push_has_no_payloads_and_no_delay_unless_it_says_so():
    assert not Push("q", DEFAULT_OPTIONS).payloads
    assert not Push("q", DEFAULT_OPTIONS).rows


def test_rows_are_picked_with_all_that_they_have():
    """Columns that nobody filled stay empty."""
    own = [JobOptions(priority=index) for index in range(3)]
    full = JobColumns([b"a", b"b", b"c"], own, ["", "k", ""], [0, 0, 5])
    assert jobs_of(full.picked([2, 1])) == [
        NewJob(b"c", own[2], "", 5),
        NewJob(b"b", own[1], "k", 0),
    ]
    few = JobColumns([b"a", b"b"], own[:2]).picked([1])
    assert (few.payloads, few.options, few.job_keys, few.run_at_ms) == ([b"b"], [own[1]], [], [])

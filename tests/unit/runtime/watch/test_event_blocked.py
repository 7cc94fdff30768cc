"""What watchers see of jobs that wait for others, beside `test_events_of_facts`."""

from __future__ import annotations

from jobline_server.engine.blocked_entries import JobsUnblocked
from jobline_server.engine.entries import JobsPushed
from jobline_server.engine.values import JobOptions
from jobline_server.runtime.watch.event_blocked import pushed_some_blocked, unblocked
from jobline_server.runtime.watch.event_origin import EventOrigin

ORIGIN = EventOrigin(0, 7)
A, B = JobOptions(name="a"), JobOptions(name="b")


def test_each_job_of_a_push_is_seen_with_its_name() -> None:
    """Names are a column where jobs of one push differ."""
    fact = JobsPushed(1_000, "mail", 5, [A, B, B], [b"", b"", b""], blocked=[1, 2])
    seen = [[*run.starts, *run.columns.names] for run in pushed_some_blocked(ORIGIN, fact)]
    assert seen == [[5, "a"], [6, 7, "b", "b"], [6, 7, "b", "b"]]


def test_a_job_that_is_unblocked_before_its_time_is_seen_with_it() -> None:
    fact = JobsUnblocked(1_000, "mail", [5, 8], run_at_ms=[0, 9_000])
    assert [[*run.columns.run_at_ms] for run in unblocked(ORIGIN, fact)] == [[], [9_000]]

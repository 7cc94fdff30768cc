"""Silver tables are filters of events."""

from __future__ import annotations

from jobline_pipeline.tables import attempts, events, jobs, open_jobs
from tests.rows import at, completed, pushed


def retrying(offset, job_id, **columns):
    return completed(offset, job_id, event="retrying", final=False, **columns)


def test_attempts_are_the_ends_of_hand_outs(frame):
    """Whatever ended it; a job that was cancelled while it waited had none."""
    given = frame(
        events.TABLE.schema(),
        [
            pushed(1),
            {**completed(2, 1), "event": "leased", "final": None},
            retrying(10, 1, error="no", error_type="E"),
            completed(20, 1),
            completed(21, 2, event="released", final=False),
            completed(30, 3, event="cancelled", leased_at=None),
        ],
    )
    made = attempts.make(given).orderBy("offset").collect()
    assert [(row.offset, row.outcome, row.final) for row in made] == [
        (10, "retrying", False),
        (20, "completed", True),
        (21, "released", False),
    ]
    assert (made[0].wait_ms, made[0].run_ms, made[0].error) == (2000.0, 1000.0, "no")


def test_clocks_that_differ_make_no_negative_times(frame):
    """The times of two servers may be a little apart."""
    given = frame(events.TABLE.schema(), [completed(10, 1, ready_at=at(9.5))])
    assert attempts.make(given).collect()[0].wait_ms == 0.0


def test_jobs_are_final_events(frame):
    """A retry ends no job; `total_ms` is from push to end."""
    given = frame(events.TABLE.schema(), [pushed(1), retrying(10, 1), completed(20, 1)])
    row = jobs.make(given).collect()[0]
    assert (row.job_id, row.outcome, row.total_ms, row.run_ms) == (1, "completed", 3000.0, 1000.0)


def test_open_jobs_have_no_later_end(frame):
    """A job that died and was put back is open again."""
    given = frame(
        events.TABLE.schema(),
        [
            pushed(1),
            completed(2, 1),
            pushed(3),
            pushed(4),
            completed(5, 4, event="dead"),
            pushed(6, job_id=4, event="retried"),
        ],
    )
    none = frame(open_jobs.TABLE.schema(), [])
    made = open_jobs.make(none, given, jobs.make(given)).collect()
    assert sorted((row.job_id, row.offset) for row in made) == [(3, 3), (4, 6)]

"""Gold tables, each on rows that can be counted by hand."""

from __future__ import annotations

import math

import pytest
from pyspark.sql import functions as F

from jobline_pipeline.problems import PipelineError
from jobline_pipeline.tables import (
    attempts,
    audit,
    batches,
    capacity,
    error_groups,
    errors,
    events,
    fairness,
    flows,
    jobs,
    queue_minutes,
    slo,
    versions,
    workers,
)
from jobline_pipeline.tables.slo import Objective, read_objectives
from tests.rows import at, completed, pushed


def attempt(offset, **columns):
    """An attempt that ended `offset` seconds after noon."""
    return {
        "shard": 0, "offset": offset, "queue": "mail", "name": "mail.send", "job_id": offset,
        "delivery": 1, "attempt": 1, "worker": "w1", "worker_version": "1", "ended_at": at(offset),
        "ready_at": at(offset - 2), "leased_at": at(offset - 1), "outcome": "completed",
        "final": True, "wait_ms": 1000.0, "run_ms": 1000.0, **columns,
    }  # fmt: skip


def ended(job_id, **columns):
    """A job that ended `job_id` seconds after noon."""
    return {
        "shard": 0, "offset": job_id, "queue": "mail", "name": "mail.send", "job_id": job_id,
        "pushed_at": at(0), "ended_at": at(job_id), "outcome": "completed",
        "total_ms": job_id * 1000.0, "run_ms": 500.0, **columns,
    }  # fmt: skip


def test_queue_minutes_count_and_measure(frame):
    """Counts add up, quantiles of few values are exact, and hours merge sketches."""
    given = [pushed(n) for n in range(1, 11)]
    given += [completed(30, 1), completed(40, 2, leased_at=at(36)), completed(70, 3)]
    given += [completed(50, 4, event="retrying", final=False), completed(51, 5, event="dead")]
    given += [completed(52, 6, event="expired", leased_at=None)]
    made = queue_minutes.make(frame(events.TABLE.schema(), given)).cache()
    first, second = made.orderBy("minute").collect()
    assert (first.opened, first.ended, first.completed, first.failed) == (10, 4, 2, 2)
    assert (first.dead, first.cancelled, first.payload_bytes) == (1, 1, 100)
    assert (first.run_p50_ms, first.run_p99_ms, first.total_p99_ms) == (1000.0, 4000.0, 3000.0)
    assert (second.opened, second.completed, second.run_p50_ms) == (0, 1, 1000.0)
    hour = queue_minutes.by_hour(made).collect()[0]
    assert (hour.opened, hour.ended, hour.run_p99_ms) == (10, 5, 4000.0)
    backlog = queue_minutes.with_backlog(made).orderBy("minute").collect()
    assert [row.backlog for row in backlog] == [6, 5]


def test_jobs_that_die_without_an_attempt_are_no_failed_attempts(frame):
    """As the server counts: one that it waited for has failed, and it was never handed out."""
    died = completed(9, 1, event="dead", leased_at=None, reason="DEPENDENCY_FAILED")
    row = queue_minutes.make(frame(events.TABLE.schema(), [died])).collect()[0]
    assert (row.dead, row.failed, row.ended) == (1, 0, 1)


def test_minute_without_endings_has_no_quantiles(frame):
    """NULL is not zero."""
    row = queue_minutes.make(frame(events.TABLE.schema(), [pushed(1)])).collect()[0]
    assert (row.opened, row.wait_p50_ms, row.total_p99_ms) == (1, None, None)


def test_errors_are_grouped(frame):
    """By minute, queue, name, class and normal message; the last one is the example."""
    given = [
        attempt(1, outcome="retrying", error_type="E", error="order 1 lost"),
        attempt(2, outcome="dead", error_type="E", error="order 2 lost"),
        attempt(3, outcome="stalled", reason="lease lost"),
        attempt(4),
    ]
    made = errors.make(frame(attempts.TABLE.schema(), given)).orderBy("message").collect()
    assert [(r.message, r.error_type, r.failures, r.dead, r.example) for r in made] == [
        ("lease lost", "", 1, 0, None),
        ("order <n> lost", "E", 2, 1, "order 2 lost"),
    ]


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("WORKER_LOST", "worker lost: it disconnected and did not come back"),
        ("STALLED", "lease ran out: nothing was heard from the worker in time"),
        ("MAX_ATTEMPTS_EXCEEDED", ""),
        ("A_NEW_ONE", "A_NEW_ONE"),
        (None, ""),
    ],
)
def test_failures_without_a_message_are_said_in_words(frame, reason, message):
    """Nobody could send one of a lease that was lost; no name of the protocol is shown for it."""
    given = [attempt(1, outcome="stalled", reason=reason)]
    made = errors.make(frame(attempts.TABLE.schema(), given)).collect()
    assert [(row.message, row.example) for row in made] == [(message, None)]


def test_lost_leases_are_not_taken_for_each_other(frame):
    """What is said of them differs enough for MinHash."""
    given = [
        attempt(n, outcome="stalled", reason=reason)
        for n, reason in enumerate(("WORKER_LOST", "STALLED", "INTERRUPTED", "TIMEOUT"), 1)
    ]
    made = errors.make(frame(attempts.TABLE.schema(), given))
    assert error_groups.make(made).count() == len(given)


def test_nearly_equal_errors_are_one_group(frame):
    """MinHash finds what is said in a few other words; shares add up to one."""
    long = "could not connect to the database of the region {} because it refused the connection"
    texts = {long.format("east"): 5, long.format("west"): 3, "payload is not JSON": 2}
    given = [
        {
            "minute": at(0), "queue": "mail", "name": "n", "error_type": "E", "message": text,
            "failures": count, "dead": 0, "first_at": at(0), "last_at": at(1), "example": text,
        }
        for text, count in texts.items()
    ]  # fmt: skip
    made = error_groups.make(frame(errors.TABLE.schema(), given)).orderBy(F.desc("failures"))
    assert [(r.message, r.messages, r.failures, r.share) for r in made.collect()] == [
        (long.format("east"), 2, 8, 0.8),
        ("payload is not JSON", 1, 2, 0.2),
    ]


def test_workers_and_versions(frame):
    """Busy share, failures, and one row per version."""
    given = [
        attempt(1, run_ms=1_800_000.0),
        attempt(2, outcome="stalled", run_ms=0.0),
        attempt(3, worker="w2", worker_version="2", outcome="retrying"),
    ]
    rows = frame(attempts.TABLE.schema(), given)
    one, two = workers.make(rows).orderBy("worker").collect()
    assert (one.attempts, one.busy_share, one.failure_rate, one.stalled) == (2, 0.5, 0.5, 1)
    assert (two.worker, two.failed, two.worker_version) == ("w2", 1, "2")
    compared = versions.compared(versions.make(rows)).orderBy("worker_version").collect()
    assert [(r.worker_version, r.attempts, r.failure_rate) for r in compared] == [
        ("1", 2, 0.5),
        ("2", 1, 1.0),
    ]


def test_fairness_is_jains_index(frame):
    """(Σx)² / (n·Σx²): three groups with 3, 1 and 0 seconds."""
    given = [
        attempt(1, group="a", run_ms=3000.0, wait_ms=10.0),
        attempt(2, group="b", run_ms=1000.0, wait_ms=500.0),
        attempt(3, group="c", run_ms=0.0),
        attempt(4),
    ]
    made = fairness.make(frame(attempts.TABLE.schema(), given)).orderBy("group").collect()
    assert [(r.group, r.run_share, r.wait_max_ms) for r in made] == [
        ("a", 0.75, 10.0),
        ("b", 0.25, 500.0),
        ("c", 0.0, 1000.0),
    ]
    assert made[0].jain == pytest.approx(16 / (3 * 10))


def test_critical_path_follows_the_last_to_end(frame):
    """10 waits for its children 1, 2 and 5; 5 depends on 3 and 4."""
    ends = [ended(1, parent_id=10), ended(2, parent_id=10), ended(3), ended(4)]
    ends += [ended(5, parent_id=10, name="last"), ended(10)]
    waiting = frame(events.TABLE.schema(), [pushed(0, job_id=5, depends_on=[3, 4])])
    made = flows.make(frame(jobs.TABLE.schema(), ends), waiting).collect()
    assert len(made) == 1
    row = made[0]
    assert (row.job_id, row.waits_for, row.critical_path) == (10, 3, [10, 5, 4])
    assert (row.slack_ms, row.path_run_ms, row.critical_name) == (3000.0, 1500.0, "last")
    assert row.run_share == pytest.approx(0.15)


def test_jobs_without_others_are_no_flow(frame):
    """A root that has not ended is not there yet either."""
    ends = frame(jobs.TABLE.schema(), [ended(1), ended(2, parent_id=99)])
    assert flows.make(ends, frame(events.TABLE.schema(), [])).count() == 0


def test_batches_show_progress_and_stragglers(frame):
    """Four of five have ended; one took ten times as long as the others."""
    members = [pushed(n, batch_id=7) for n in range(1, 6)]
    ends = [ended(n, batch_id=7, total_ms=100.0) for n in (1, 2, 3)]
    ends.append(ended(4, batch_id=7, total_ms=1000.0, outcome="dead"))
    row = batches.make(
        frame(events.TABLE.schema(), members), frame(jobs.TABLE.schema(), ends)
    ).collect()[0]
    assert (row.jobs, row.ended, row.completed, row.progress) == (5, 4, 3, 0.8)
    assert (row.straggler_count, row.stragglers, row.total_p50_ms) == (1, [4], 100.0)


def test_slo_counts_what_was_declared(frame):
    """Waits of one queue, ends of all; a cancelled job says nothing."""
    rows = frame(
        attempts.TABLE.schema(), [attempt(1), attempt(2, wait_ms=9000.0), attempt(3, queue="x")]
    )
    ends = [ended(1), ended(2, outcome="dead"), ended(3, outcome="cancelled")]
    declared = [
        Objective("quick", "mail", "wait", 0.9, 5.0),
        Objective("done", "*", "completed", 0.75),
    ]
    made = slo.make(rows, frame(jobs.TABLE.schema(), ends), declared).orderBy("objective")
    found = [(r.objective, r.measured, r.bad, round(r.burn_rate, 6)) for r in made.collect()]
    assert found == [("done", 2, 1, 2.0), ("quick", 2, 1, 5.0)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[objective]", "is not TOML"),
        ('[[objective]]\nname = "x"', "an objective has name"),
        ('[[objective]]\nname="x"\nqueue="q"\nmeasure="speed"\nshare=0.9', "an objective has name"),
        ('[[objective]]\nname="x"\nqueue="q"\nmeasure="wait"\nshare=1.5', "an objective has name"),
    ],
)
def test_wrong_objectives_are_explained(tmp_path, text, said):
    """With the name of the file."""
    path = tmp_path / "objectives.toml"
    path.write_text(text)
    with pytest.raises(PipelineError, match=said):
        read_objectives(path)


def erlang_c_workers(offered, run_ms):
    """The same as `capacity`, by the textbook: sums of a^k/k!."""
    workers = math.floor(offered) + 1
    while True:
        terms = [offered**k / math.factorial(k) for k in range(workers)]
        last = offered**workers / math.factorial(workers) * workers / (workers - offered)
        late = last / (sum(terms) + last) * math.exp(-(workers - offered) * 1000.0 / run_ms)
        if late <= 0.01:
            return workers
        workers += 1


@pytest.mark.parametrize(("arrivals", "run_ms"), [(1, 50.0), (40, 90_000.0), (60, 600_000.0)])
def test_capacity_is_erlang_c(frame, arrivals, run_ms):
    """The recursion finds what the textbook's sums find, in both engines."""
    given = [attempt(n, run_ms=run_ms, worker=f"w{n % 7}") for n in range(1, arrivals + 1)]
    row = capacity.make(frame(attempts.TABLE.schema(), given)).collect()[0]
    assert row.offered == pytest.approx(arrivals * run_ms / 3_600_000)
    assert row.workers_needed == erlang_c_workers(row.offered, run_ms)
    assert capacity.workers_needed(row.offered, run_ms) == row.workers_needed
    assert (row.arrivals, row.workers_seen) == (arrivals, min(arrivals, 7))


def test_replay_is_first_come_first_served():
    """Two workers, three jobs of ten at once: the third waits for the first to end."""
    assert capacity.replay([(0.0, 10.0), (0.0, 10.0), (1.0, 10.0), (30.0, 1.0)], 2) == [0, 0, 9, 0]


def test_audit_counts_by_principal(frame):
    """Events that nobody asked for are left out."""
    given = [
        pushed(1, principal="shop"),
        pushed(2, principal="shop"),
        completed(3, 1, event="cancelled", principal="ops", operation_id=5),
        completed(4, 2),
    ]
    made = audit.make(frame(events.TABLE.schema(), given)).orderBy("principal").collect()
    assert [(r.principal, r.event, r.operation_id, r.jobs) for r in made] == [
        ("ops", "cancelled", 5, 1),
        ("shop", "pushed", None, 2),
    ]

"""Endings: what is told of jobs that ended, many at a time."""

from __future__ import annotations

from array import array

from jobline_server.engine.endings import JobsEnded, RunsEnded
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import DEFAULT_OPTIONS, EndReason, JobError, JobState

QUEUE = Queue("q", 1, 0)
ERROR = JobError("E", "no")


def test_ended_runs_name_every_job_and_its_payload():
    payloads = Payloads.of([b"0", b"1", b"2", b"3", b"4"])
    lot = Lot(100, QUEUE, DEFAULT_OPTIONS, payloads, pushed_ms=0, run_at_ms=0)
    ended = RunsEnded(
        lot, JobState.COMPLETED, array("q", (100, 103)), [2, 1], 9, 1, "w1", kept=True
    )
    assert list(ended.ids()) == [100, 101, 103]
    assert list(ended.payloads(100, 2)) == [b"0", b"1"]
    assert list(ended.payloads(103, 1)) == [b"3"]


def test_record_of_an_ended_job_has_its_own_result_and_everybodys_reason():
    one, two = (Job(job_id, QUEUE, DEFAULT_OPTIONS, b"x", 5) for job_id in (1, 2))
    ended = JobsEnded(
        JobState.DEAD,
        [one, two],
        9,
        kept=True,
        results={2: b"r"},
        reason=EndReason.STALLED,
        error=ERROR,
    )
    record = ended.record(two)
    assert (record.id, record.result, record.ended_ms) == (2, b"r", 9)
    assert (record.reason, record.error) == (EndReason.STALLED, ERROR)
    assert ended.record(one).result == b""

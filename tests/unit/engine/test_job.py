"""A job as an object of its own."""

from __future__ import annotations

from jobline_server.engine.holder import Holder
from jobline_server.engine.job import NO_DETAILS, Job
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import DEFAULT_OPTIONS, JobState, LeaseReason


def job(job_id: int = 1) -> Job:
    return Job(job_id, Queue("q", 9, 0), DEFAULT_OPTIONS, b"xyz", 1_000)


def test_new_job_is_ready_and_has_no_past():
    one = job()
    assert one.is_ready()
    assert (one.attempts, one.stalls, one.releases, one.delivery) == (0, 0, 0, 0)
    assert one.lease_reason is LeaseReason.FIRST
    assert not one.cancel_requested


def test_jobs_share_their_details_until_one_writes_its_own():
    """Most jobs never have any."""
    one, two = job(1), job(2)
    one.writable_details().worker_checkpoint = b"half way"
    assert two.details is NO_DETAILS
    assert NO_DETAILS.worker_checkpoint == b""
    assert one.writable_details() is one.details


def test_leased_job_is_a_lease_of_one():
    """A holder asks runs and jobs alike."""
    one = job(7)
    assert one.open_totals() == (1, 3)
    assert one.open_ids() == [7]


def test_record_of_a_job_holds_all_that_is_written_down():
    one = job(7)
    one.attempts, one.stalls, one.releases, one.delivery = 1, 2, 3, 4
    one.job_key, one.lease_reason = "k", LeaseReason.RETRY
    details = one.writable_details()
    details.worker_checkpoint, details.progress, details.progress_message = b"c", 50.0, "half way"
    record = one.record()
    assert (record.id, record.queue, record.payload, record.pushed_ms) == (7, "q", b"xyz", 1_000)
    assert (record.attempts, record.stalls, record.releases, record.delivery) == (1, 2, 3, 4)
    assert (record.job_key, record.lease_reason) == ("k", LeaseReason.RETRY)
    assert (record.worker_checkpoint, record.progress) == (b"c", 50.0)
    assert (record.progress_message, record.worker) == ("half way", "")


def test_record_names_the_worker_that_has_the_job():
    one = job()
    one.state, one.holder = JobState.ACTIVE, Holder("w1", "")
    assert not one.is_ready()
    assert one.record().worker == "w1"

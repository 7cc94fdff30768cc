"""Lanes: first ready first out, and what stopped being ready is skipped."""

from __future__ import annotations

from jobline_server.engine.job import Job
from jobline_server.engine.lane import Lane
from jobline_server.engine.lot import Lot
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import DEFAULT_OPTIONS, JobState

QUEUE = Queue("q", 1, 0)


def job(job_id: int, *, offset: int = 0) -> Job:
    one = Job(job_id, QUEUE, DEFAULT_OPTIONS, b"", 0)
    one.offset = offset
    return one


def lot(first_id: int, count: int = 2) -> Lot:
    payloads = Payloads.of([b"x"] * count)
    return Lot(first_id, QUEUE, DEFAULT_OPTIONS, payloads, pushed_ms=0, run_at_ms=0)


def filled(*items: Job | Lot) -> Lane:
    lane = Lane(0, "")
    for item in items:
        lane.put(item, item.waiting() if isinstance(item, Lot) else 1)
    return lane


def test_first_in_is_at_the_head():
    one, two = job(1), lot(2)
    lane = filled(one, two)
    assert (lane.head(), lane.ready) == (one, 3)


def test_what_comes_to_the_front_is_at_the_head():
    one, two = job(1), job(2)
    lane = filled(one)
    lane.put_front(two)
    assert (lane.head(), lane.ready) == (two, 2)


def test_empty_lane_has_no_head():
    assert Lane(0, "").head() is None


def test_head_passes_over_jobs_that_stopped_being_ready():
    one, two = job(1), job(2)
    lane = filled(one, two)
    one.state = JobState.CANCELLED
    lane.leave(1)
    assert (lane.head(), lane.ready, len(lane.items)) == (two, 1, 1)


def test_head_passes_over_members_and_lots_that_are_gone():
    one, two = lot(10, 3), lot(20, 2)
    lane = filled(one, two)
    one.gone = {0, 2}
    assert lane.head() is one
    assert one.cursor == 1
    one.leave(1)
    assert lane.head() is two
    assert list(lane.items) == [two]


def test_lane_goes_no_further_than_what_is_on_disk():
    """Nothing overtakes a job that is not durable yet within its lane."""
    one, two, three = job(1, offset=4), job(2, offset=5), job(3, offset=4)
    lane = filled(one, two, three)
    assert list(lane.durable(4)) == [one]
    assert list(lane.durable(5)) == [one, two, three]


def test_uncommitted_job_that_was_cancelled_holds_nobody_up():
    one, two = job(1, offset=9), job(2)
    lane = filled(one, two)
    one.state = JobState.CANCELLED
    assert list(lane.durable(5)) == [two]


def test_lane_sheds_what_is_not_ready_when_there_is_much_of_it():
    """A million cancelled jobs are not kept until their turn comes."""
    jobs = [job(i) for i in range(2_000)]
    lane = filled(*jobs)
    for one in jobs[:1_500]:
        one.state = JobState.CANCELLED
        lane.leave(1)
    assert lane.ready == 500
    assert len(lane.items) < 1_000
    assert lane.head() is jobs[1_500]

"""Lanes: first ready first out, and what stopped being ready is skipped."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

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


@pytest.mark.parametrize("order", ["first", "last", "any"])
def test_lane_sheds_a_few_at_a_time_whatever_order_they_leave_in(order):
    """Trial E5: few of many cancelled jobs are left in the end, and each that leaves has two others
    looked at, not all of them.
    """
    jobs = [job(i) for i in range(20_000)]
    lane = filled(*jobs)
    leaving = jobs[:] if order == "first" else jobs[::-1]
    if order == "any":
        Random(3).shuffle(leaving)
    lengths = [20_000]
    for one in leaving[:-1]:
        one.state = JobState.CANCELLED
        lane.leave(1)
        lengths.append(len(list(lane)) if len(lengths) % 500 == 0 else lengths[-1])
    assert all(before - after <= 2 * 500 for before, after in pairwise(lengths))
    assert len(list(lane)) < 20_000 // 8
    assert lane.head() is leaving[-1]


def test_lane_keeps_its_order_while_it_is_swept():
    """Trial E5: jobs that come meanwhile stand behind, or before all."""
    chance = Random(5)
    jobs = [job(i) for i in range(2_000)]
    lane, expected = filled(*jobs), jobs[:]
    for number in range(2_000, 4_000):
        one = expected.pop(chance.randrange(len(expected)))
        one.state = JobState.CANCELLED
        lane.leave(1)
        new = job(number)
        if number % 10:
            lane.put(new, 1)
            expected.append(new)
        else:
            lane.put_front(new)
            expected.insert(0, new)
        if number % 7 == 0:
            assert lane.head() is expected.pop(0)
            lane.items.popleft()
            lane.ready -= 1
    assert [item for item in lane if item.is_ready()] == expected

"""Lanes: first ready first out, and what stopped being ready is skipped."""

from __future__ import annotations

from collections import deque
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


def test_what_comes_back_stands_where_it_stood_in_whichever_parts_it_comes():
    """Trial C2: before all that was behind it, and behind what was before it."""
    jobs = [job(i) for i in range(1, 101)]
    for one in jobs:
        one.order = one.id
    for parts in ((60, 20, 0), (0, 20, 60), (20, 60, 0)):
        lane = filled(*jobs[80:])
        for start in parts:
            lane.put_back(jobs[start : start + (20, 40)[start == 20]])
        assert list(lane.items) == jobs
        assert lane.ready == 100


def test_what_comes_back_stands_among_others_that_came_back():
    """Trial C2: one by one, in any order, and a run's members before what is left of its lot."""
    rest = lot(100, 9)
    rest.order, rest.cursor = 50, 4
    members = [job(100 + i) for i in range(4)]
    others = [job(i) for i in range(1, 50)]
    for one in members:
        one.order = 50
    for one in others:
        one.order = one.id
    lane = filled(rest)
    for one in [*others[::2], *members[::-1], *others[1::2]]:
        lane.put_back([one])
    assert list(lane.items) == [*others, *members, rest]


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
    one.holes = {0, 2}
    assert lane.head() is one
    assert one.cursor == 1
    one.remove(1)
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


def test_what_comes_back_while_a_lane_is_swept_stands_where_it_stood():
    """Trial C2: some of the lane is swept, the rest stands behind that."""
    jobs = [job(i) for i in range(1_000)]
    lane = filled(*jobs[::2])
    for one in jobs[200:600:2]:
        one.state = JobState.CANCELLED
        lane.leave(1)
    assert 0 < len(lane.items) < len(list(lane))
    lane.put_back(jobs[1::2])
    ready = [one for one in jobs if one.is_ready()]
    assert [item for item in lane if item.is_ready()] == ready


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
            new.order = -number
            lane.put_back([new])
            expected.insert(0, new)
        if number % 7 == 0:
            assert lane.head() is expected.pop(0)
            lane.items.popleft()
            lane.ready -= 1
    assert [item for item in lane if item.is_ready()] == expected


def test_head_is_found_in_what_is_still_to_be_swept():
    """All that was swept is gone already."""
    jobs = [job(i) for i in range(1_000)]
    lane = filled(*jobs)
    for one in jobs[:200]:
        one.state = JobState.CANCELLED
        lane.leave(1)
    assert lane.unswept
    lane.items.clear()
    assert lane.head() is lane.items[0]


def test_item_is_taken_out_wherever_it_stands():
    """At the head, within, at the end; and behind the point that a sweep has reached."""
    jobs = [job(i) for i in range(1, 10)]
    for one in jobs:
        one.order = one.id
    lane = filled(*jobs)
    for one in (jobs[0], jobs[4], jobs[8]):
        lane.take_out(one)
    assert [one.order for one in lane] == [2, 3, 4, 6, 7, 8]
    lane.unswept = deque([jobs[6], jobs[7]])
    lane.items = deque([jobs[1], jobs[2], jobs[3], jobs[5]])
    for one in (jobs[6], jobs[2]):
        lane.take_out(one)
    assert [one.order for one in lane] == [2, 4, 6, 8]
    assert lane.ready == 4

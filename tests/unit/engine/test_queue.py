"""Queues: lanes by priority and name, and counts."""

from __future__ import annotations

from jobline_server.engine.job import Job
from jobline_server.engine.lane import SMALL_BYTES
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import JobOptions, JobState, QueueSettings

READY = JobState.READY


def job(queue: Queue, job_id: int, priority: int = 0, name: str = "") -> Job:
    one = Job(job_id, queue, JobOptions(priority=priority, name=name), b"", 0)
    one.order = job_id
    queue.put(one, 1)
    return one


def shape(queue: Queue, names: frozenset[str] | None = None) -> list[list[tuple[int, str]]]:
    """Priorities and names as they would be served."""
    return [[(lane.priority, lane.name) for lane in lanes] for lanes in queue.open.ranks(names)]


def test_lanes_are_served_by_priority_highest_first():
    queue = Queue("q", 1, 0)
    for job_id, priority in enumerate([0, 5, -3, 5]):
        job(queue, job_id, priority)
    assert shape(queue) == [[(5, "")], [(0, "")], [(-3, "")]]
    assert (queue.counts[READY], len([*queue.lanes()])) == (4, 3)


def test_names_of_one_priority_stand_side_by_side():
    queue = Queue("q", 1, 0)
    job(queue, 1, name="a")
    job(queue, 2, name="b")
    job(queue, 3, 1, "a")
    assert shape(queue) == [[(1, "a")], [(0, "a"), (0, "b")]]


def test_only_lanes_of_handled_names_are_served():
    """Few names of many, and many names of few."""
    queue = Queue("q", 1, 0)
    for job_id, name in enumerate("abc"):
        job(queue, job_id, name=name)
    assert shape(queue, frozenset({"b"})) == [[(0, "b")]]
    assert shape(queue, frozenset("bcdefg")) == [[(0, "b"), (0, "c")]]
    assert shape(queue, frozenset({"z"})) == [[]]


def test_emptied_lane_is_forgotten_with_what_lies_in_it():
    queue = Queue("q", 1, 0)
    one, two = job(queue, 1), job(queue, 2, 7)
    two.state = JobState.CANCELLED
    queue.leave(two, 1)
    assert shape(queue) == [[(0, "")]]
    one.state = JobState.CANCELLED
    queue.leave(one, 1)
    assert (shape(queue), queue.counts[READY]) == ([], 0)


def test_lane_that_was_counted_twice_is_counted_once():
    queue = Queue("q", 1, 0)
    lane = queue.lane_of(job(queue, 1))
    queue.count_ready({lane: lane.ready})
    assert (shape(queue), queue.counts[READY]) == ([[(0, "")]], 1)


def test_lane_of_one_name_goes_and_its_neighbour_stays():
    queue = Queue("q", 1, 0)
    one = job(queue, 1, name="a")
    job(queue, 2, name="b")
    one.state = JobState.CANCELLED
    queue.leave(one, 1)
    assert shape(queue) == [[(0, "b")]]


def test_jobs_that_come_back_stand_where_they_stood_each_in_its_lane():
    queue = Queue("q", 1, 0)
    job(queue, 1)
    options = [JobOptions(), JobOptions(priority=5), JobOptions()]
    jobs = [Job(job_id, queue, own, b"", 0) for job_id, own in enumerate(options, start=2)]
    for order, one in enumerate(jobs, start=-9):
        one.order = order
    queue.put_back(jobs[::-1])
    first, second = queue.find_lane((5, "", 0, None, "")), queue.find_lane((0, "", 0, None, ""))
    assert first is not None
    assert second is not None
    assert list(first.items) == [jobs[1]]
    assert list(second.items)[:2] == [jobs[0], jobs[2]]
    assert queue.counts[READY] == 4


def test_many_items_are_put_as_each_of_them_would_be():
    """Large payloads have lanes of their own, whatever their options."""
    one_by_one, at_once = Queue("q", 1, 0), Queue("q", 1, 0)
    kinds = [JobOptions(), JobOptions(priority=5), JobOptions(name="n")]
    sizes = [0, 0, 0, SMALL_BYTES + 1, 0, 0, 0]
    jobs = [Job(i, one_by_one, kinds[i % 3], bytes(size), 0) for i, size in enumerate(sizes)]
    for one in jobs:
        one_by_one.put(one, 1)
    at_once.put_all(jobs, [1] * len(jobs))
    assert shape(at_once) == shape(one_by_one)
    for lane in one_by_one.lanes():
        found = at_once.find_lane(lane.key)
        assert found is not None
        assert (list(found), found.ready) == (list(lane), lane.ready)
    assert at_once.counts == one_by_one.counts
    at_once.put_all([], [])
    assert at_once.counts == one_by_one.counts


def test_item_without_ready_jobs_is_found_by_nobody():
    queue = Queue("q", 1, 0)
    queue.put(Job(1, queue, JobOptions(), b"", 0), 0)
    assert (shape(queue), queue.counts[READY]) == ([], 0)


def test_live_jobs_are_those_that_have_not_ended():
    queue = Queue("q", 1, 0)
    queue.counts[JobState.SCHEDULED], queue.counts[READY], queue.counts[JobState.ACTIVE] = 1, 2, 3
    queue.set_kept({JobState.DEAD: 9})
    assert (queue.live(), queue.waiting(), queue.kept()) == (6, 3, {JobState.DEAD: 9})
    queue.set_kept({JobState.STALE: 1})
    assert (queue.live(), queue.kept()) == (6, {JobState.STALE: 1})


def test_queue_is_plain_until_somebody_set_or_paused_something():
    queue = Queue("q", 1, 0)
    assert queue.is_plain(0)
    queue.paused = True
    assert not queue.is_plain(0)
    queue.paused, queue.settings = False, QueueSettings(max_attempts=1)
    assert not queue.is_plain(0)


def test_priorities_of_other_names_are_not_walked():
    """A worker whose names are nowhere near the front of a hundred thousand priorities costs the
    others nothing.
    """
    queue = Queue("q", 1, 0)
    for priority in range(20):
        job(queue, priority, priority, "a")
    mine = job(queue, 20, 5, "b")
    large = Job(21, queue, JobOptions(priority=7, name="b"), bytes(SMALL_BYTES + 1), 0)
    queue.put(large, 1)

    assert shape(queue, frozenset({"b"})) == [[(7, "b")], [(5, "b")]]
    assert shape(queue, frozenset({"z"})) == []
    assert [lanes[0][0] for lanes in shape(queue, frozenset("ab"))] == list(range(19, -1, -1))

    large.state = JobState.CANCELLED
    queue.leave(large, 1)
    mine.state = JobState.CANCELLED
    queue.leave(mine, 1)
    assert shape(queue, frozenset({"b"})) == []

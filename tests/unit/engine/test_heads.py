"""Many lanes of one priority: what is next is found without a look at each of them."""

from __future__ import annotations

from heapq import merge
from itertools import islice
from operator import attrgetter
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobline_server.engine import open_lanes, ranks
from jobline_server.engine.heads import LaneHeads
from jobline_server.engine.job import Job
from jobline_server.engine.lane import Lane, LaneItem
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import JobOptions, JobState
from tests.unit.engine.queue_jobs import QueueJobs, lanes_looked_at

NAMES = 6
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "lease", "back", "cancel", "commit"]), st.integers(0, 1 << 16)
    ),
    max_size=80,
)


class Lanes(QueueJobs):
    """A queue with a few names, whose lanes are never merged as they are, and what it has out."""

    def __init__(self) -> None:
        super().__init__()
        self.committed = 0

    def put(self, draw: int) -> None:
        job = self.add(JobOptions(name=f"n{draw % NAMES}"))
        job.offset = self.number
        self.queue.put(job, 1)

    def lease(self, draw: int) -> None:
        """As many as are drawn of those that come next."""
        for job in self.next()[: draw % 4]:
            self.hand_out(job)

    def commit(self, _draw: int) -> None:
        self.committed = self.number

    def next(self) -> list[LaneItem]:
        (fronts,) = self.queue.open.fronts(None, None) if self.ready else ([],)
        return [job for front in fronts for job in front.durable(self.committed)]

    def merged(self) -> list[LaneItem]:
        """The slow way."""
        lanes = [lane.durable(self.committed) for lane in self.queue.lanes()]
        return list(merge(*lanes, key=attrgetter("order")))


def drawn(seed: int) -> list[tuple[str, int]]:
    """Steps that meet every branch, whatever else is tried."""
    chance = Random(seed)
    kinds = ["put", "put", "put", "lease", "back", "cancel", "commit"]
    return [(chance.choice(kinds), chance.randrange(1 << 16)) for _ in range(300)]


@given(steps=STEPS, spare=st.sampled_from([0, 5, 1_000]))
@example(steps=drawn(1), spare=1_000)
@example(steps=drawn(2), spare=0)
@settings(deadline=None)
def test_what_is_next_is_what_a_merge_of_all_lanes_has(steps, spare):
    """Whatever was put, handed out, given back, cancelled and committed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranks, "LANES_MERGED_MAX", 0)
        patch.setattr(open_lanes, "FEW_MAX", 0)
        patch.setattr(ranks, "HEADS_SPARE", spare)
        lanes = Lanes()
        for step, draw in steps:
            getattr(lanes, step)(draw)
            assert lanes.next() == lanes.merged()


def a_queue(names: int) -> Queue:
    """A queue with so many names, two jobs each."""
    queue = Queue("q", 1, 0)
    for job_id in range(1, 2 * names + 1):
        job = Job(job_id, queue, JobOptions(name=f"n{job_id % names}"), b"", 0)
        job.order = job_id
        queue.put(job, 1)
    return queue


def test_hand_out_looks_at_the_lanes_it_takes_from(monkeypatch):
    """With 20,000 names each took 30 ms."""
    queue = a_queue(1_000)
    ((heads,),) = queue.open.fronts(None, None)
    assert isinstance(heads, LaneHeads)
    looked = lanes_looked_at(monkeypatch)
    items = heads.durable(0)
    assert [next(items).order for _ in range(5)] == [1, 2, 3, 4, 5]
    assert len(looked) <= 6


def test_heads_of_lanes_that_come_and_go_do_not_pile_up():
    """Also where only those ask who handle some names."""
    queue = a_queue(100)
    ((heads,),) = queue.open.fronts(None, None)
    for number in range(1_000, 4_000):
        job = Job(number, queue, JobOptions(name="new"), b"", 0)
        queue.put(job, 1)
        job.state = JobState.CANCELLED
        queue.leave(job, 1)
    ((after,),) = queue.open.fronts(None, None)
    assert after is not heads
    assert isinstance(after, LaneHeads)
    assert len(after) <= 2 * 100 + ranks.HEADS_SPARE


def test_few_lanes_are_merged_as_they_are():
    queue = a_queue(ranks.LANES_MERGED_MAX)
    (lanes,) = queue.open.fronts(None, None)
    assert [type(lane) for lane in lanes] == [Lane] * ranks.LANES_MERGED_MAX


def test_heads_of_lanes_that_are_all_gone_give_nothing():
    """What is left in the heap is thrown away."""
    queue = a_queue(100)
    ((heads,),) = queue.open.fronts(None, None)
    assert isinstance(heads, LaneHeads)
    for lane in queue.lanes():
        lane.ready = 0
    assert list(heads.durable(0)) == []
    assert len(heads) == 0


@pytest.mark.parametrize("is_taken_from", [False, True])
def test_lanes_up_to_an_item_are_found_without_a_look_at_each(is_taken_from):
    """Whether or not anybody took from the lanes before."""
    queue = a_queue(100)
    ((heads,),) = queue.open.fronts(None, None)
    assert isinstance(heads, LaneHeads)
    if is_taken_from:
        assert len(list(islice(heads.durable(0), 3))) == 3
    last = Job(5, queue, JobOptions(name="n5"), b"", 0)
    last.order = 5
    assert {lane.name for lane in queue.open.lanes_up_to(last, None)} == {
        "n1",
        "n2",
        "n3",
        "n4",
        "n5",
    }


def a_lane(name: str, *orders: int) -> Lane:
    """A lane with a job of each of these orders."""
    lane = Lane(0, name)
    for order in orders:
        job = Job(order, Queue("q", 1, 0), JobOptions(name=name), b"", 0)
        job.order = order
        lane.put(job, 1)
    return lane


def test_lane_that_was_noted_anew_is_found_by_its_newest_entry():
    """An older one counts no more, before or behind the others; an empty lane is none."""
    early, late = a_lane("early", 10, 11), a_lane("late", 20)
    heads = LaneHeads([early, late, a_lane("empty")])
    heads.note(late)
    heads.note(early)
    heads.note(early)
    assert len(heads) == 5
    assert sorted(lane.name for lane in heads.lanes_up_to(20)) == ["early", "late"]
    assert [item.order for item in heads.durable(0)] == [10, 11, 20]


def test_lane_whose_head_went_is_met_by_the_next_one():
    """Its place among the lanes is that of its head of now."""
    first, second = a_lane("first", 1, 9), a_lane("second", 5)
    heads = LaneHeads([first, second])
    first.items.popleft()
    first.ready -= 1
    assert [item.order for item in heads.durable(0)] == [5, 9]

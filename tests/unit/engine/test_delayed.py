"""What waits for its time: in order, and without much of what does not wait any more."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine import delayed as module
from jobline_server.engine import limits
from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel, decide_delete_waiting, decide_promote
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.delayed import STRETCH_MS, Delayed, DelayedJobs
from jobline_server.engine.limits import DAY_MS

entries = st.tuples(st.integers(0, 9), st.integers(0, 9))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), entries),
        st.tuples(st.just("leave"), entries),
        st.tuples(st.just("pop"), st.integers(0, 9)),
    ),
    max_size=60,
)


@given(steps)
def test_what_waits_comes_in_order_of_time_whatever_is_swept(found):
    """As from a plain sorted list."""
    delayed, waiting = Delayed(), set()
    for kind, step in found:
        if kind == "add" and step not in waiting:
            delayed.add(*step)
            waiting.add(step)
        elif kind == "leave":
            waiting.discard(step)
            delayed.sweep(1, lambda *entry: entry in waiting)
        elif kind == "pop":
            due = sorted(entry for entry in waiting if entry[0] <= step)
            popped = []
            while (entry := delayed.pop_due(step)) is not None:
                popped.append(entry)
            assert [entry for entry in dict.fromkeys(popped) if entry in waiting] == due
            waiting.difference_update(due)
        assert waiting <= set(delayed)
        assert delayed.first_ms() == min((at_ms for at_ms, _ in delayed), default=None)


def test_a_job_that_left_the_head_of_its_lot_goes_before_the_rest_at_the_same_moment(world):
    """Put off again, to the very time its lot waits for: jobs of one moment go by id."""
    first_id = world.plain(b"1", b"2", b"3", delay_ms=5_000).first_id
    decide_promote(world.shard, world.now, [first_id])
    world.commit()
    leased = world.one()
    world.release(ReleaseItem(leased.id, leased.delivery, delay_ms=5_000))
    world.tick(5_000)
    assert world.ids() == [first_id, first_id + 1, first_id + 2]
    world.check()


def test_a_sweep_looks_at_a_bounded_number_of_entries():
    """However many there are."""
    delayed = Delayed()
    for at in range(1_000):
        delayed.add(at, at)
    delayed.sweep(3, lambda *_: False)
    assert len(delayed) == 994
    delayed.sweep(10**9, lambda *_: True)
    assert len(delayed) == 994


def test_nothing_waits_at_first():
    delayed = Delayed()
    delayed.sweep(5, lambda *_: False)
    assert (len(delayed), delayed.first_ms(), delayed.pop_due(10**15)) == (0, None, None)


def pop_all(delayed, wall_ms, count):
    """Takes all that is due, `count` at a time."""
    popped = []
    while due := delayed.pop_many_due(wall_ms, count):
        assert len(due) <= count
        popped += due
    return popped


@given(
    st.sets(st.tuples(st.integers(0, 1_000), st.integers(0, 99)), max_size=60),
    st.integers(1, 9),
    st.integers(0, 1_000),
    st.integers(0, 60),
)
def test_jobs_that_are_overdue_together_trade_places_within_a_tenth_of_a_second(
    found, count, wall_ms, swept
):
    """Each comes once, none before its time, and no more than a slice in their exact order."""
    delayed = DelayedJobs()
    for entry in found:
        delayed.add(*entry)
    delayed.sweep(swept, lambda *_: True)
    due = sorted(entry for entry in found if entry[0] <= wall_ms)
    first = delayed.pop_many_due(wall_ms, count)
    assert first == due[:count]
    left = found.difference(first)
    assert (len(delayed), set(delayed)) == (len(left), left)
    popped = first + pop_all(delayed, wall_ms, count)
    assert sorted(popped) == due
    latest_ms = 0
    for at_ms, _ in popped:
        assert latest_ms - at_ms <= STRETCH_MS
        latest_ms = max(latest_ms, at_ms)
    assert set(delayed) == found.difference(due)
    assert delayed.first_ms() == min((at_ms for at_ms, _ in set(delayed)), default=None)


def test_what_was_gathered_waits_again_when_the_clock_is_set_back():
    """As what is on the heap does; and it holds up nothing that is due."""
    delayed = DelayedJobs()
    for number in range(100):
        delayed.add(1_000 + number % 10, number)
    assert len(delayed.pop_many_due(1_010, 10) + delayed.pop_many_due(1_010, 10)) == 20
    delayed.add(500, 1_000)
    assert delayed.pop_many_due(600, 10) == [(500, 1_000)]
    assert (delayed.pop_many_due(600, 10), delayed.first_ms()) == ([], 1_001)
    assert (len(delayed), len(set(delayed))) == (80, 80)
    assert len(pop_all(delayed, 1_010, 10)) == 80


@pytest.mark.parametrize("gathered_max", [1_000_000, 400])
def test_many_that_are_overdue_come_in_the_order_of_their_pushes(monkeypatch, gathered_max):
    """Pushed in hundreds, of which one is due at each moment: by time, each id is a hundred away
    from the one before it.
    """
    monkeypatch.setattr(module, "GATHERED_MAX", gathered_max)
    delayed = DelayedJobs()
    for number in range(10_000):
        delayed.add(number % 100, number)
    popped = [first_id for _, first_id in pop_all(delayed, 100, 100)]
    assert sorted(popped) == list(range(10_000))
    turns = sum(one > next_one for one, next_one in itertools.pairwise(popped))
    # A gathered stretch is twice as long as the one before it, up to the bound.
    assert turns <= (8 if gathered_max > 10_000 else 10_000 // gathered_max + 8)


def test_what_is_cancelled_while_it_is_overdue_does_not_come(world, monkeypatch):
    """It is skipped when it is its turn, as before it was due; the others come, all of them."""
    monkeypatch.setattr(limits, "SLICE_DUE", 2)
    ids = [world.row(delay_ms=1_000 + number % 3) for number in range(12)]
    assert world.tick(1_002)
    assert world.shard.delayed.first_ms() <= world.now.wall_ms
    cancel(world, ids[-1])
    cancel(world, ids[-2])
    world.check()
    while world.tick():
        world.check()
    assert sorted(world.ids()) == ids[:-2]
    assert world.shard.delayed.first_ms() is None


def cancel(world, job_id):
    decide_cancel(world.shard, world.now, [job_id])


def delete(world, job_id):
    decide_delete_waiting(world.shard, world.now, [job_id])


def promote(world, job_id):
    decide_promote(world.shard, world.now, [job_id])


def delete_queue(world, _job_id):
    decide_delete_queue(world.shard, world.now, "q", force=True)


@pytest.mark.parametrize("change", [cancel, delete, promote, delete_queue])
@pytest.mark.parametrize("is_lot", [False, True])
def test_what_stops_waiting_does_not_pile_up(world, change, is_lot):
    """Live, and in a shard that the journal is applied to; what still waits comes."""
    keep = [world.row(queue="kept", delay_ms=DAY_MS) for _ in range(10)]
    for _ in range(200):
        pushed = world.plain(b"x", delay_ms=DAY_MS) if is_lot else None
        change(world, pushed.first_id if pushed else world.row(delay_ms=DAY_MS))
        world.commit()
    world.check()
    for shard in (world.shard, world.recovered()):
        assert len(shard.delayed) <= 2 * len(keep)
    world.tick(DAY_MS)
    assert world.ids(queue="kept") == keep


def test_a_queue_that_is_deleted_sweeps_for_what_waited_in_it_only(world, monkeypatch):
    """Its active jobs may be many, and what waits in other queues more: the loop has to go on."""
    swept = []
    monkeypatch.setattr(Delayed, "sweep", lambda _self, count, _waits: swept.append(count))
    for jobs in (3, 2):
        world.plain(*[b"x"] * jobs)
        world.row()
    world.lease(100)
    world.row(delay_ms=DAY_MS)
    world.plain(b"1", b"2", delay_ms=DAY_MS)
    delete_queue(world, 0)
    assert sum(swept) == 2

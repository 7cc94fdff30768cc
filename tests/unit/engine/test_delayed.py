"""What waits for its time: in order, and without much of what does not wait any more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel, decide_delete_waiting, decide_promote
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.delayed import Delayed
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

"""A shard: the door through which facts pass, ids, and where things are found."""

from __future__ import annotations

import pytest

from jobline_server.engine.commands import Push
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.entries import CancelRequested, JobDied
from jobline_server.engine.entry_bytes import size_of
from jobline_server.engine.load import Load
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.shard import Shard
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.update_entries import JobUpdated
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, EndReason, JobState
from tests.unit.engine.effects_of import take_woken


def test_facts_of_a_turn_share_the_next_offset(world):
    """What is taken after them belongs to the one after."""
    shard = world.shard
    assert shard.take_entries() == []
    assert shard.next_offset == 1
    shard.emit(CancelRequested(1, "q", []))
    shard.emit(CancelRequested(2, "q", []))
    assert len(shard.take_entries()) == 2
    assert shard.next_offset == 2


def test_after_a_full_entry_facts_have_the_next_offset(world):
    """In their order, with the volatile ones that came meanwhile; the last entry has some."""
    shard = world.shard
    shard.emit(CancelRequested(1, "q", []))
    shard.end_entry()
    shard.emit(CancelRequested(2, "q", []), volatile=True)
    assert len(shard.entries) == 1
    shard.emit(CancelRequested(3, "q", []))
    shard.emit(CancelRequested(4, "q", []))
    assert len(shard.entries) == 2
    first, last = shard.take_all()
    assert (first.offset, [fact.at_ms for fact in first.facts]) == (1, [1])
    assert (last.offset, [fact.at_ms for fact in last.facts]) == (2, [3, 4])
    assert [one.offset for one in first.applied + last.applied] == [1, 0, 2, 2]
    assert (shard.next_offset, shard.entries, shard.applied) == (3, [], [])


def test_a_rejected_fact_begins_no_entry(world):
    """All that was recorded would seem to be none, and be answered as if it were on disk."""
    shard = world.shard
    shard.emit(CancelRequested(1, "q", []))
    shard.end_entry()
    with pytest.raises(IllegalMove):
        shard.emit(JobDied(0, 99, EndReason.NONE, None))
    assert (len(shard.entries), shard.full, shard.next_offset) == (1, [], 1)
    shard.emit(CancelRequested(2, "q", []))
    assert [entry.offset for entry in shard.take_all()] == [1, 2]


def test_what_may_take_many_bytes_is_counted(world):
    shard = world.shard
    world.plain(b"x" * 1_000, b"y" * 2_000)
    assert shard.entry_bytes == 0  # taken
    first_id = decide_push(
        shard, world.now, Push("q", DEFAULT_OPTIONS, payloads=Payloads.of([b"x" * 1_000]))
    ).first_id
    assert 1_000 <= shard.entry_bytes < 1_200
    shard.emit(JobUpdated(1, "q", first_id, b"z" * 5_000))
    assert 6_000 <= shard.entry_bytes < 6_400
    shard.take_all()
    assert shard.entry_bytes == 0
    assert size_of(object()) < 100  # what is no value is not written


def test_facts_of_full_entries_wait_for_the_journal_too(world):
    """The timers stop at so many."""
    for _ in range(3):
        world.shard.emit(CancelRequested(1, "q", []))
        world.shard.end_entry()
    assert world.shard.recorded() == 3


def test_nothing_is_uncommitted_once_the_disk_has_all_that_was_taken(world):
    shard = world.shard
    assert not shard.has_uncommitted()
    shard.emit(CancelRequested(1, "q", []))
    assert shard.has_uncommitted()
    shard.take_entries()
    assert shard.has_uncommitted()
    shard.committed = 1
    assert not shard.has_uncommitted()


def test_volatile_fact_is_applied_and_not_recorded(world):
    world.plain(b"x", level=AckLevel.MEMORY)
    assert [type(fact).__name__ for _, fact in world.journal] == ["QueueChanged"]
    assert world.counts() == (0, 1, 0)


def test_fact_that_cannot_be_applied_is_not_recorded(world):
    with pytest.raises(IllegalMove):
        world.shard.emit(JobDied(0, 99, EndReason.NONE, None))
    assert world.shard.take_entries() == []


def test_replay_applies_what_the_journal_holds(world):
    first_id = world.plain(b"1", b"2").first_id
    recovered = world.recovered()
    assert recovered.state_of(first_id + 1) is JobState.READY
    assert recovered.take_entries() == []


def test_ids_carry_the_shard_and_only_grow():
    shard = Shard(3, epoch=1, next_sequence=10, load=Load())
    assert shard.next_id() == 3 << 43 | 10 == shard.id_of(10)
    shard.use_ids(shard.id_of(20), 5)
    assert shard.next_id() == shard.id_of(25)
    shard.use_ids(shard.id_of(3), 1)
    assert shard.next_id() == shard.id_of(25)


def test_orders_grow(world):
    assert world.shard.tail_order() < world.shard.tail_order()


def test_first_delivery_of_an_epoch_is_above_all_of_earlier_ones():
    """Even above a job's that was handed out a million times."""
    earlier, later = Shard(1, epoch=7, load=Load()), Shard(1, epoch=8, load=Load())
    assert later.first_delivery() > earlier.first_delivery() + 1_000_000


def test_woken_queues_come_once_and_in_order(world):
    world.plain(b"1", queue="a")
    world.plain(b"2", queue="b")
    world.plain(b"3", queue="a")
    assert [queue.name for queue in take_woken(world.shard)] == ["a", "b"]
    assert take_woken(world.shard) == []


def test_endings_are_handed_over_once(world):
    first_id = world.plain(b"1").first_id
    world.ack([(first_id, world.lease().runs[0].delivery)])
    assert set(world.ended()) == {first_id}
    assert world.ended() == {}


def test_lease_is_found_for_members_and_single_jobs(world):
    shard = world.shard
    single, first_id = world.row(), world.plain(b"1", b"2", b"3").first_id
    run = world.lease(3).runs[0]
    world.ack([(first_id, run.delivery)])
    assert shard.find_lease(single) == (shard.jobs[single], True)
    lease, live = shard.find_lease(first_id + 1)
    assert (lease is shard.lots.find(first_id).leases[0], live) == (True, True)
    assert shard.find_lease(first_id) == (None, False)
    assert shard.find_lease(first_id + 2) == (None, True)
    assert shard.find_lease(4711) == (None, False)
    waiting = world.row()
    assert shard.find_lease(waiting) == (None, True)


def test_state_is_known_of_whatever_is_live_and_of_nothing_else(world):
    first_id = world.plain(b"1", b"2", b"3").first_id
    delayed = world.plain(b"4", delay_ms=1_000).first_id
    single = world.row()
    run = world.lease(2).runs[0]
    world.ack([(first_id, run.delivery)])
    states = [world.state(job_id) for job_id in (*range(first_id, first_id + 3), delayed, single)]
    ready = JobState.READY
    assert states == [None, JobState.ACTIVE, ready, JobState.SCHEDULED, ready]
    world.ack([(first_id + 1, run.delivery)])
    assert [world.state(job_id) for job_id in (first_id + 1, 4711)] == [None, None]


def test_session_has_one_holder_however_often_it_is_asked_for(world):
    one = world.shard.clocks.holder_of("s1", "w1")
    assert world.shard.clocks.holder_of("s1", "w1") is one
    assert world.shard.clocks.holder_of("s2", "w1") is not one


def test_session_is_forgotten_with_the_holder_it_has_and_with_no_other(world):
    earlier = world.shard.clocks.holder_of("s1", "w1")
    world.shard.clocks.forget(earlier)
    later = world.shard.clocks.holder_of("s1", "w1")
    world.shard.clocks.forget(earlier)
    assert world.shard.clocks.holders == {"s1": later}

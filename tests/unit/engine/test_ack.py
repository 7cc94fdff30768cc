"""Acks: in order and in none, right and wrong, of runs and of single jobs."""

from __future__ import annotations

import pytest

from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.decide.ack import decide_ack
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.endings import RunsEnded
from jobline_server.engine.entries import JobsCompleted
from jobline_server.engine.values import AckLevel, JobState, SettleOutcome
from tests.unit.engine.effects_of import take_endings
from tests.unit.engine.world import leases_of

LOST, NOT_FOUND = SettleOutcome.LEASE_LOST, SettleOutcome.NOT_FOUND
COMPLETED, CANCELLED = JobState.COMPLETED, JobState.CANCELLED


@pytest.fixture
def held(world):
    """(id, delivery) of eight plain jobs of two lots, leased by one worker."""
    world.plain(*[b"%d" % i for i in range(5)])
    world.plain(*[b"%d" % i for i in range(3)])
    return leases_of(world.lease())


def completed(world) -> list[int]:
    """What completed since this was asked last, in order of ids."""
    ended = world.ended()
    assert {state for state, _ in ended.values()} <= {COMPLETED}
    return sorted(ended)


def test_acks_in_order_are_one_fact_with_one_run_a_lease(world, held):
    world.ack(held)
    fact = world.journal[-1][1]
    assert isinstance(fact, JobsCompleted)
    assert fact.counts == [5, 3]
    assert completed(world) == [job_id for job_id, _ in held]


def test_acks_in_any_order_complete_every_job(world, held):
    shuffled = [held[i] for i in (6, 0, 4, 2, 7, 3)]
    assert world.ack(shuffled) == []
    world.check()
    assert completed(world) == sorted(job_id for job_id, _ in shuffled)
    assert world.counts() == (0, 0, 2)


def test_ack_of_each_job_once_more_finds_nothing(world, held):
    world.ack(held[:3])
    assert world.ack(held[:4]) == [(0, NOT_FOUND), (1, NOT_FOUND), (2, NOT_FOUND)]
    assert len(completed(world)) == 4


def test_job_named_twice_in_one_call_completes_once(world, held):
    twice = [held[0], held[1], held[0], held[2], held[2]]
    assert world.ack(twice) == [(2, NOT_FOUND), (4, NOT_FOUND)]
    assert len(completed(world)) == 3
    world.check()


def test_overlapping_stretches_complete_each_job_once(world, held):
    assert world.ack([*held[:3], *held[1:4]]) == [(3, NOT_FOUND), (4, NOT_FOUND)]
    assert len(completed(world)) == 4
    assert world.ack([held[4], held[5], held[5]]) == [(2, NOT_FOUND)]


def test_single_job_named_twice_completes_once(world):
    world.row()
    job = world.one()
    lease = (job.id, job.delivery)
    assert world.ack([lease, lease]) == [(1, NOT_FOUND)]


@pytest.mark.parametrize("wrong", [-1, 1])
def test_older_or_foreign_delivery_changes_nothing(world, held, wrong):
    """One bad apple does not spoil its neighbours."""
    bad = [
        (job_id, delivery + wrong if i == 1 else delivery)
        for i, (job_id, delivery) in enumerate(held)
    ]
    assert world.ack(bad) == [(1, LOST)]
    assert world.state(held[1][0]) is JobState.ACTIVE
    assert len(completed(world)) == 7


def test_jobs_that_wait_or_never_were_are_told_apart(world, held):
    waiting = world.plain(b"w").first_id
    delivery = held[0][1]
    leases = [held[0], (waiting, delivery), (4711, delivery), held[1], (waiting + 5, delivery)]
    assert world.ack(leases) == [(1, LOST), (2, NOT_FOUND), (4, NOT_FOUND)]
    assert world.counts() == (0, 1, 6)


def test_results_are_kept_with_their_jobs(world, held):
    """Those with a result end on their own, their neighbours as runs between them."""
    ids = [job_id for job_id, _ in held]
    world.ack(held, {ids[0]: b"first", ids[2]: b"third"})
    ended = take_endings(world.shard)
    runs = [(one.starts.tolist(), one.counts) for one in ended if isinstance(one, RunsEnded)]
    assert runs == [([ids[1], ids[3]], [1, 2]), ([ids[5]], [3])]
    results = {
        i: one.results for one in ended if not isinstance(one, RunsEnded) for i in one.results
    }
    assert set(results) == {ids[0], ids[2]}


def test_single_jobs_and_members_are_acked_together(world):
    rows = [world.row(b"r1"), world.row(b"r2", priority=-1)]
    world.plain(b"p1", b"p2")
    held = leases_of(world.lease())
    assert world.ack(held, {rows[1]: b"done"}) == []
    ended = world.ended()
    assert len(ended) == 4
    assert (ended[rows[1]][1].result, ended[rows[0]][1].result) == (b"done", b"")
    assert ended[rows[0]][1].worker == "w1"
    world.check()


def test_cancelled_job_that_is_acked_stays_cancelled_and_keeps_its_result(world):
    job_id = world.row()
    job = world.one()
    decide_cancel(world.shard, world.now, [job_id])
    assert world.ack([(job_id, job.delivery)], {job_id: b"r"}) == [(0, SettleOutcome.CANCELLED)]
    state, record = world.ended()[job_id]
    assert (state, record.result) == (CANCELLED, b"r")


def test_jobs_that_are_never_written_complete_without_a_fact(world):
    world.plain(b"1", b"2", level=AckLevel.MEMORY)
    single = world.row(level=AckLevel.MEMORY)
    cancelled = world.row(level=AckLevel.MEMORY)
    held = leases_of(world.lease())
    decide_cancel(world.shard, world.now, [cancelled])
    recorded = len(world.journal)
    assert world.ack(held) == [(3, SettleOutcome.CANCELLED)]
    assert len(world.journal) == recorded
    assert {single, cancelled} <= set(world.ended())
    assert world.queue().kept() == {}


def test_ack_of_nothing_is_nothing(world):
    assert decide_ack(world.shard, world.now, [], [], {}) == []
    assert world.commit() == []


def test_partly_settled_run_is_acked_in_stretches(world, held):
    world.ack([held[2]])
    assert world.ack(held[:5]) == [(2, NOT_FOUND)]
    assert world.ack(held[5:]) == []
    assert world.counts() == (0, 0, 0)
    assert not world.shard.lots.lots


def test_jobs_on_leases_of_two_workers_are_acked_in_one_call(world):
    """Nothing asks who acks: the counter is the proof."""
    world.plain(*[b"x"] * 6)
    one = leases_of(world.lease(3))
    two = leases_of(world.lease(3, holder=world.session("w2")))
    mixed = [one[0], two[0], one[2], two[2], two[1], one[1]]
    assert world.ack(mixed) == []
    workers = {record.worker for _, record in world.ended().values()}
    assert workers == {"w1", "w2"}
    world.check()


def test_single_jobs_before_and_after_members_are_acked_in_one_call(world):
    """In the order they come: objects, then a lot, then objects again."""
    first, members, last = world.row(), world.plain(b"1", b"2").first_id, world.row()
    held = dict(leases_of(world.lease()))
    order = [first, members, members + 1, last]
    assert world.ack([(job_id, held[job_id]) for job_id in order]) == []
    assert completed(world) == order
    row, other = world.row(), world.plain(b"1").first_id
    held = dict(leases_of(world.lease()))
    assert world.ack([(row, held[row]), (other, held[other])]) == []


def test_a_member_that_left_its_lot_is_acked_between_the_others(world):
    """It came back, was leased again, and is an object now; its run knows it as settled."""
    first = world.plain(b"1", b"2", b"3").first_id
    held = dict(leases_of(world.lease()))
    world.release(ReleaseItem(first + 1, held[first + 1]))
    held |= leases_of(world.lease())
    assert world.ack(sorted(held.items())) == []
    assert completed(world) == [first, first + 1, first + 2]


def test_single_job_with_an_old_delivery_is_lost(world):
    job_id = world.row()
    assert world.ack([(job_id, world.one().delivery - 1)]) == [(0, LOST)]


def test_single_jobs_far_apart_are_acked_in_one_call(world):
    """Their ids lie in different parts of the table, some of them side by side."""
    for sequence in (1, 1 << 20):
        world.shard.next_sequence = max(world.shard.next_sequence, sequence)
        world.row()
        world.row()
    leased = leases_of(world.lease())
    assert world.ack(leased) == []
    assert completed(world) == [job_id for job_id, _ in leased]


def test_acks_that_are_known_to_be_in_order_are_one_run(world, held):
    """Nobody looks at their ids one by one; the result is that of all others."""
    ids, deliveries = [job_id for job_id, _ in held[:5]], [delivery for _, delivery in held[:5]]
    assert decide_ack(world.shard, world.now, ids, deliveries, {}, in_order=True) == []
    [fact] = world.commit()
    assert isinstance(fact, JobsCompleted)
    assert (fact.starts, fact.counts) == ([ids[0]], [5])
    assert completed(world) == ids
    world.check()

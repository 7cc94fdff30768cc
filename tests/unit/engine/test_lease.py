"""Hand-outs: what workers get, and under which counter."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import LeasedJob, LeasedRun, ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.lease import leased_job
from jobline_server.engine.decide.queues import decide_pause_queue
from jobline_server.engine.entries import JobsLeased
from jobline_server.engine.holder import Holder
from jobline_server.engine.values import AckLevel, JobState, LeaseReason
from tests.unit.engine.world import EPOCH, FIRST_DELIVERY, leases_of


def test_plain_jobs_come_as_a_run(world):
    first_id = world.plain(b"1", b"2", b"3").first_id
    [run] = world.lease(2).runs
    assert (run.first_id, run.delivery, list(run.payloads)) == (
        first_id,
        FIRST_DELIVERY,
        [b"1", b"2"],
    )
    assert (run.queue, run.lease_ms, run.pushed_ms) == ("q", 30_000, world.now.wall_ms)
    assert list(world.lease(9).runs[0].payloads) == [b"3"]


def test_single_job_comes_with_what_its_worker_needs(world):
    job_id = world.row(b"x", key="k", name="mail", lease_ms=5_000)
    job = world.one()
    assert (job.id, job.payload, job.job_key, job.options.name) == (job_id, b"x", "k", "mail")
    assert (job.delivery, job.attempt, job.reason) == (FIRST_DELIVERY, 1, LeaseReason.FIRST)
    assert (job.queue, job.lease_ms, job.worker_checkpoint) == ("q", 5_000, b"")


def test_hand_out_of_lots_and_jobs_is_one_fact_in_their_order(world):
    single, lot, last = world.row(), world.plain(b"1", b"2").first_id, world.row(priority=-1)
    leased = world.lease()
    fact = world.journal[-1][1]
    assert isinstance(fact, JobsLeased)
    assert (fact.starts, fact.counts) == ([single, lot, last], [1, 2, 1])
    assert [type(item) for item in leased.items()] == [LeasedJob, LeasedRun, LeasedJob]


def test_jobs_that_are_never_written_go_out_among_the_others(world):
    """In facts of their own, each from the head of the lane."""
    levels = [AckLevel.MEMORY, None, AckLevel.MEMORY, None]
    ids = [world.row(level=level) for level in levels]
    assert world.ids() == ids
    world.check()


def test_counter_grows_with_each_hand_out(world):
    job_id = world.row()
    first = world.one()
    world.release(ReleaseItem(job_id, first.delivery))
    assert world.one().delivery == first.delivery + 1


def test_counter_goes_on_after_a_million_hand_outs(world):
    """It had gone back to the first one: an old lease would have been valid again."""
    job_id = world.row()
    newest = (EPOCH << 20) + (1 << 20) - 1
    world.shard.jobs[job_id].delivery = newest
    one = world.one()
    assert one.delivery == newest + 1
    world.release(ReleaseItem(job_id, one.delivery))
    assert world.one().delivery == newest + 2


def test_counter_of_a_later_epoch_starts_above_the_last(world):
    job_id = world.row()
    world.shard.jobs[job_id].delivery = (EPOCH - 1 << 20) + 900
    assert world.one().delivery == FIRST_DELIVERY


def test_paused_queue_hands_out_nothing(world):
    world.row()
    decide_pause_queue(world.shard, world.now, "q", "somebody", "why")
    assert world.lease().count() == 0


def test_nothing_is_handed_out_to_who_takes_nothing_or_where_nothing_is(world):
    world.row(delay_ms=1_000)
    assert world.lease().count() == 0
    world.tick(1_000)
    assert world.lease(0).count() == 0
    assert world.lease(names=frozenset({"other"})).count() == 0
    assert world.lease().count() == 1


def test_consumer_may_ask_for_a_length_of_its_own(world):
    world.row(lease_ms=5_000)
    world.plain(b"1")
    leased = world.lease(lease_ms=9_000)
    assert {item.lease_ms for item in leased.items()} == {9_000}
    assert world.shard.jobs[leased.jobs[0].id].deadline_ms == world.now.mono_ms + 9_000


def test_job_is_told_why_it_is_here_again(world):
    job_id = world.row()
    world.fail(job_id, world.one().delivery, retry_after_ms=0)
    assert (world.one().reason, world.shard.jobs[job_id].state) == (
        LeaseReason.RETRY,
        JobState.ACTIVE,
    )
    resumed = leased_job(world.shard.jobs[job_id], LeaseReason.RESUMED)
    assert (resumed.reason, resumed.attempt) == (LeaseReason.RESUMED, 2)
    assert leased_job(world.shard.jobs[job_id]).reason is LeaseReason.RETRY


def test_window_counts_jobs_and_bytes(world):
    world.plain(b"1", b"22", b"333")
    world.row(b"4444")
    holder = world.session()
    world.lease(holder=holder)
    assert (holder.in_flight.jobs, holder.in_flight.payload_bytes) == (4, 10)


def test_holder_without_leases_is_not_armed(world):
    """There is nothing to look at."""
    world.shard.clocks.arm(Holder("w1", ""))
    assert world.shard.clocks.next_deadline() is None


def test_a_pull_from_many_queues_is_armed_without_looking_at_what_it_has(world, monkeypatch):
    """A call may name a thousand queues, and each is a lease of its own."""
    looked_at = []
    deadline_of = Holder.deadline_of

    def counted(holder, lease):
        looked_at.append(lease)
        return deadline_of(holder, lease)

    monkeypatch.setattr(Holder, "deadline_of", counted)
    holder = Holder("w1", "")
    for number in range(20):
        world.plain(b"x", queue=f"q{number}")
        world.lease(holder=holder, queue=f"q{number}", lease_ms=60_000 - number * 1_000)

    assert len(looked_at) < 20
    assert holder.armed == (world.now.mono_ms + 41_000) // limits.WHEEL_MS + 1


def test_leases_of_a_whole_lot_share_its_payloads(world):
    """Copying it would visit every payload; nobody writes to it."""
    world.plain(b"1", b"2")
    run = world.lease().runs[0]
    [lot] = world.shard.lots.lots.values()
    assert run.payloads is lot.payloads
    assert leases_of(world.lease()) == []


@pytest.mark.parametrize("kind", ["single jobs", "lots of one", "a lot with holes"])
def test_one_hand_out_takes_a_bounded_number_of_items(world, monkeypatch, kind):
    """What each of them costs, the loop waits for; the next hand-out goes on where it ended."""
    monkeypatch.setattr(limits, "LEASE_SLICE_ITEMS", 3)
    if kind == "single jobs":
        ids = [world.row(priority=number < 2) for number in range(7)]
    elif kind == "lots of one":
        ids = [world.plain(b"x").first_id for _ in range(7)]
    else:
        first_id = world.plain(*[b"x"] * 14).first_id
        decide_cancel(world.shard, world.now, range(first_id, first_id + 14, 2))
        ids = list(range(first_id + 1, first_id + 14, 2))
    taken = [world.ids(9) for _ in range(3)]
    assert [len(part) for part in taken] == [3, 3, 1]
    assert sorted(job_id for part in taken for job_id in part) == ids
    world.check()

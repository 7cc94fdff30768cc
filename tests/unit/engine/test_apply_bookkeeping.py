"""What several facts do to a job: it leaves its lot, its lease, and the counts."""

from __future__ import annotations

import pytest

from jobline_server.engine.apply import bookkeeping
from jobline_server.engine.changes import Bundle
from jobline_server.engine.columns import INDEX_BYTES
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.values import AckLevel, JobOptions, JobState


def test_leased_member_becomes_a_job_with_its_lease(world):
    first_id = world.plain(b"1", b"22", b"333").first_id
    holder = world.session()
    delivery = world.lease(holder=holder).runs[0].delivery
    job = bookkeeping.single(world.shard, first_id + 1)
    assert (job.state, job.delivery, job.holder, job.payload) == (
        JobState.ACTIVE,
        delivery,
        holder,
        b"22",
    )
    assert (holder.in_flight.jobs, holder.in_flight.payload_bytes) == (3, 6)
    assert bookkeeping.single(world.shard, first_id + 1) is job
    world.check()


def test_member_with_something_of_its_own_takes_it_along(world):
    """Its headers go before the lot's; its bytes are those of its payload then."""
    options = JobOptions(headers=(("a", "shared"), ("b", "shared")))
    columns = {"headers": {"a": ["", "own"]}, "job_keys": ["k1", "k2"]}
    first_id = world.push(payloads=[b"1", b"22"], options=options, **columns).first_id
    assert world.shard.load.payload_bytes == 3 + 2 + 5 + 4 + 4 + 4 * INDEX_BYTES
    holder = world.session()
    world.lease(holder=holder)
    job = bookkeeping.single(world.shard, first_id + 1)
    assert (job.options.headers, job.job_key) == ((("a", "own"), ("b", "shared")), "k2")
    assert bookkeeping.single(world.shard, first_id).options is options
    assert world.shard.load.payload_bytes == holder.in_flight.payload_bytes == 3
    world.check()


def test_last_leased_member_takes_its_run_and_its_lot_along(world):
    first_id = world.plain(b"1").first_id
    holder = world.session()
    world.lease(holder=holder)
    bookkeeping.single(world.shard, first_id)
    assert list(holder.leases) == [first_id]
    assert world.shard.lots.lots == {}
    world.check()


def test_delayed_member_becomes_a_job_that_waits(world):
    first_id = world.plain(b"1", b"2", delay_ms=9).first_id
    job = bookkeeping.single(world.shard, first_id + 1)
    assert (job.state, job.run_at_ms) == (JobState.SCHEDULED, world.now.wall_ms + 9)
    world.shard.schedule(job.run_at_ms, job.id)
    world.check()


def test_volatile_member_stays_volatile_and_out_of_checkpoints(world):
    first_id = world.plain(b"1", b"2", level=AckLevel.MEMORY).first_id
    world.lease()
    job = bookkeeping.single(world.shard, first_id)
    assert (job.volatile, world.shard.changes.jobs.to_write, world.shard.changes.lots.to_write) == (
        True,
        set(),
        set(),
    )


def test_ready_or_ended_member_is_not_taken_off_its_lot(world):
    first_id = world.plain(b"1", b"2", b"3").first_id
    delivery = world.lease(2).runs[0].delivery
    world.ack([(first_id, delivery)])
    for job_id in (first_id, first_id + 2):
        with pytest.raises(IllegalMove, match=f"job {job_id} cannot be taken off its lot"):
            bookkeeping.single(world.shard, job_id)
    with pytest.raises(IllegalMove, match="job 4711 is not live"):
        bookkeeping.single(world.shard, 4711)
    world.check()


def test_job_that_is_not_leased_has_no_lease_to_give_back(world):
    job = world.shard.jobs[world.row()]
    with pytest.raises(IllegalMove, match=f"job {job.id} is not leased"):
        bookkeeping.unlease(job)


def test_nobody_gives_back_nothing():
    bookkeeping.unlease_all([])


def test_lot_that_is_spent_takes_its_payloads_along(world):
    first_id = world.plain(b"1").first_id
    lot = world.shard.lots.find(first_id)
    lot.stored, lot.apart = True, 0
    world.shard.changes.lot_payloads.to_write.add(first_id)
    delivery = world.lease().runs[0].delivery
    world.ack([(first_id, delivery)])
    assert world.shard.changes.lot_payloads.to_delete == [first_id]
    assert world.shard.changes.lot_payloads.to_write == set()


def test_stored_lot_that_is_spent_is_buried(world):
    first_id = world.plain(b"1", b"2").first_id
    world.shard.lots.find(first_id).stored = True
    delivery = world.lease().runs[0].delivery
    world.ack([(first_id, delivery), (first_id + 1, delivery)])
    assert world.shard.changes.lots.to_delete == [first_id]
    assert world.shard.changes.lots.to_write == set()


def test_stored_job_that_is_gone_is_buried(world):
    job = world.shard.jobs[world.row()]
    job.stored = True
    job.queue.leave(job, 1)
    bookkeeping.drop_job(world.shard, job)
    assert world.shard.changes.jobs.to_delete == [job.id]
    assert world.shard.load.live_jobs == 0


def test_jobs_that_are_gone_leave_their_bundle_and_the_last_takes_it_along(world):
    shard = world.shard
    jobs = [shard.jobs[world.row()] for _ in range(3)]
    bundle = Bundle(jobs[0].id, jobs[-1].id + 1, len(jobs))
    shard.bundles[bundle.first_id] = bundle
    for job in jobs:
        job.stored = bundle
        job.queue.leave(job, 1)
    bookkeeping.drop_job(shard, jobs[0])
    assert (bundle.jobs, shard.changes.bundles.to_write) == (2, {bundle.first_id})
    bookkeeping.drop_jobs(shard, jobs[0].queue, jobs[1:])
    assert shard.changes.bundles.to_write == set()
    assert shard.changes.bundles.to_delete == [bundle.first_id]
    assert (shard.bundles, shard.changes.jobs.to_delete) == ({}, [])


def test_jobs_of_two_holders_give_back_to_each_its_own(world):
    jobs = [world.shard.jobs[world.row(payload)] for payload in (b"1", b"22", b"333")]
    one, two = world.session("w1"), world.session("w2")
    for holder in (one, two, one):
        world.lease(1, holder=holder)
    bookkeeping.unlease_all(jobs[:2])
    assert (one.in_flight.payload_bytes, two.in_flight.payload_bytes) == (3, 0)
    bookkeeping.unlease(jobs[2])
    assert (one.in_flight.jobs, one.leases, jobs[2].holder) == (0, {}, None)

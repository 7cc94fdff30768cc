"""Time: delayed jobs become ready, leases end, workers vanish and come back."""

from __future__ import annotations

from jobline_server.engine.commands import ExtendItem, ReleaseItem
from jobline_server.engine.decide.admin import decide_promote
from jobline_server.engine.values import AckLevel, JobState

LEASE_MS = 30_000
ACTIVE, READY = JobState.ACTIVE, JobState.READY


def test_job_put_off_twice_to_the_same_moment_becomes_ready_once(world):
    """Delayed, promoted, released to the very time it was pushed for."""
    job_id = world.row(delay_ms=5_000)
    decide_promote(world.shard, world.now, [job_id])
    world.commit()
    job = world.one()
    world.release(ReleaseItem(job_id, job.delivery, delay_ms=5_000))
    world.tick(5_000)
    assert world.ids() == [job_id]
    world.check()


def test_jobs_due_in_one_tick_go_in_the_order_of_their_time(world):
    """Whether they are lots, single jobs, or never written: the earliest is the first."""
    single = world.row(delay_ms=1_000)
    lot = world.plain(b"1", b"2", delay_ms=2_000).first_id
    volatile = world.row(delay_ms=3_000, level=AckLevel.MEMORY)
    last = world.row(delay_ms=4_000)
    world.tick(10_000)
    assert world.ids() == [single, lot, lot + 1, volatile, last]


def test_lost_jobs_stand_at_the_front_in_the_order_they_stood_in_before(world):
    """Also those that were taken off their lot meanwhile, or are never written."""
    first_id = world.plain(b"1", b"2", b"3").first_id
    volatile = world.row(level=AckLevel.MEMORY)
    leased = world.lease()
    world.extend(ExtendItem(first_id + 1, leased.runs[0].delivery, progress=50.0))
    later = world.row()
    world.tick(2 * LEASE_MS)
    assert world.ids() == [first_id, first_id + 1, first_id + 2, volatile, later]


def test_extending_one_job_keeps_no_neighbour_alive(world):
    """Jobs handed out together have leases of their own."""
    first_id = world.plain(b"1", b"2", b"3").first_id
    delivery = world.lease().runs[0].delivery
    world.advance(20_000)
    world.extend(ExtendItem(first_id + 1, delivery))
    world.tick(LEASE_MS - 20_000 + 1_000)
    assert [world.state(first_id + i) for i in range(3)] == [READY, ACTIVE, READY]
    world.tick(20_000)
    assert world.state(first_id + 1) is READY
    world.check()


def test_extending_all_jobs_one_by_one_extends_their_run(world):
    """It stays one run with one end, and forgets the ends of its own."""
    first_id = world.plain(b"1", b"2", b"3").first_id
    delivery = world.lease().runs[0].delivery
    world.advance(20_000)
    world.extend(*[ExtendItem(first_id + i, delivery) for i in range(3)])
    lease = world.shard.find_lease(first_id)[0]
    assert (lease.deadline_ms, lease.later) == (world.now.mono_ms + LEASE_MS, {})
    world.tick(LEASE_MS - 1_000)
    assert world.counts() == (0, 0, 3)


def test_job_taken_off_its_run_keeps_its_own_end(world):
    """What is known of it alone goes with it."""
    first_id = world.plain(b"1", b"2").first_id
    delivery = world.lease().runs[0].delivery
    world.advance(20_000)
    world.extend(ExtendItem(first_id, delivery))
    world.extend(ExtendItem(first_id, delivery, lease_ms=1_000, progress=1.0))
    world.tick(LEASE_MS - 1_000)
    assert [world.state(first_id), world.state(first_id + 1)] == [ACTIVE, READY]

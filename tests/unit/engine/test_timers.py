"""Time: delayed jobs become ready, leases end, workers vanish and come back."""

from __future__ import annotations

from jobline_server.engine.commands import ExtendItem, ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel, decide_promote
from jobline_server.engine.decide.timers import next_deadline
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    AckLevel,
    AttemptOutcome,
    Backoff,
    EndReason,
    JobState,
    LeaseReason,
    Now,
    RevokeReason,
)
from tests.pushed_rows import NewJob
from tests.unit.engine.effects_of import revoked_in

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


def test_jobs_that_several_lost_at_once_stand_at_the_front_in_their_old_order(world):
    """Whoever had them, and whichever lease is looked at first."""
    ids = [world.row() for _ in range(3)] + [world.plain(b"1", b"2").first_id]
    world.lease(1)
    world.lease(1, holder=world.session())
    world.lease(3)
    world.tick(2 * LEASE_MS)
    assert world.ids() == [*ids, ids[-1] + 1]


def test_lost_lease_uses_a_stall_and_no_attempt(world):
    job_id = world.row()
    world.lease()
    assert not world.tick(LEASE_MS)
    assert world.state(job_id) is ACTIVE
    world.tick(1_000)
    single = world.shard.jobs[job_id]
    assert (single.stalls, single.attempts, single.state) == (1, 0, READY)
    assert world.one().reason is LeaseReason.STALLED


def test_second_stall_waits_and_the_last_one_kills(world):
    job_id = world.row(max_stalls=2, backoff=Backoff(jitter=0.0))
    world.lease()
    world.tick(LEASE_MS + 1_000)
    world.lease()
    world.tick(LEASE_MS + 1_000)
    assert world.counts() == (1, 0, 0)
    world.tick(1_000)
    world.lease()
    world.tick(LEASE_MS + 1_000)
    state, record = world.ended()[job_id]
    assert (state, record.reason, record.stalls) == (JobState.DEAD, EndReason.STALLED, 3)
    assert [attempt.outcome for attempt in record.history] == [AttemptOutcome.STALLED] * 3


def test_worker_is_told_of_every_lease_it_lost(world):
    first_id = world.plain(b"1", b"2").first_id
    holder = world.session()
    delivery = world.lease(holder=holder).runs[0].delivery
    world.tick(2 * LEASE_MS)
    lost = RevokeReason.LEASE_LOST
    assert revoked_in(world.shard) == [(holder, first_id + i, delivery, lost) for i in range(2)]


def test_cancelled_job_whose_lease_ends_is_cancelled(world):
    job_id = world.row()
    world.lease()
    decide_cancel(world.shard, world.now, [job_id])
    world.tick(2 * LEASE_MS)
    assert world.ended()[job_id][0] is JobState.CANCELLED


def test_heartbeats_of_a_session_keep_all_its_leases(world):
    """Predecessors: a job active for over 30 minutes was dropped although it sent heartbeats."""
    world.plain(b"1", b"2")
    world.row()
    holder = world.session()
    world.lease(holder=holder)
    for _ in range(100):
        world.advance(20_000)
        holder.last_seen_ms = world.now.mono_ms
        world.tick()
    assert world.counts() == (0, 0, 3)


def test_jobs_of_a_broken_stream_wait_for_its_grace_and_no_longer(world):
    job_id = world.row()
    holder = world.session()
    world.lease(holder=holder)
    world.shard.clocks.disconnect(world.now, holder, grace_ms=15_000)
    world.tick(15_000)
    assert world.state(job_id) is ACTIVE
    world.tick(1_000)
    assert world.state(job_id) is READY
    assert world.shard.clocks.holders == {}


def test_lost_worker_is_the_reason_of_a_job_that_dies_with_it(world):
    job_id = world.row(max_stalls=0)
    holder = world.session()
    world.lease(holder=holder)
    world.shard.clocks.disconnect(world.now, holder, grace_ms=0)
    world.tick(1_000)
    assert world.ended()[job_id][1].reason is EndReason.WORKER_LOST


def test_worker_that_comes_back_in_time_keeps_its_leases(world):
    job_id = world.row()
    holder = world.session()
    delivery = world.one(holder=holder).delivery
    world.shard.clocks.disconnect(world.now, holder, grace_ms=15_000)
    world.tick(10_000)
    world.shard.clocks.resume(world.now, holder)
    world.tick(20_000)
    assert world.ack([(job_id, delivery)]) == []
    world.shard.clocks.resume(world.now, holder)


def test_worker_without_leases_is_forgotten_as_its_stream_breaks(world):
    holder = world.session()
    world.shard.clocks.disconnect(world.now, holder, grace_ms=15_000)
    assert world.shard.clocks.holders == {}


def test_session_is_forgotten_when_it_settled_everything_after_its_stream_broke(world):
    """The acks came by other calls."""
    job_id = world.row()
    holder = world.session()
    delivery = world.one(holder=holder).delivery
    world.shard.clocks.disconnect(world.now, holder, grace_ms=15_000)
    world.ack([(job_id, delivery)])
    world.tick(2 * LEASE_MS)
    assert world.shard.clocks.holders == {}


def test_connected_session_without_leases_is_kept(world):
    job_id = world.row()
    holder = world.session()
    world.ack([(job_id, world.one(holder=holder).delivery)])
    world.tick(2 * LEASE_MS)
    assert list(world.shard.clocks.holders.values()) == [holder]


def test_wall_clock_that_jumps_ends_no_lease(world):
    job_id = world.row()
    world.lease()
    world.now = Now(world.now.wall_ms + 3_600_000, world.now.mono_ms)
    world.tick()
    assert world.state(job_id) is ACTIVE


def test_delayed_jobs_become_ready_in_slices(world):
    """A million due at once do not stop the loop."""
    ids = [job_id for _ in range(3) for job_id in rows_due_soon(world)]
    assert world.tick(1_000)
    assert world.counts() == (500, 1_000, 0)
    assert not world.tick()
    assert [job_id for _ in range(2) for job_id in world.ids(1_000)] == ids


def rows_due_soon(world) -> range:
    jobs = [NewJob(b"x", DEFAULT_OPTIONS, run_at_ms=world.now.wall_ms + 1_000) for _ in range(500)]
    pushed = world.push(jobs=jobs)
    return range(pushed.first_id, pushed.first_id + 500)


def test_job_that_no_longer_waits_when_its_time_comes_is_left_alone(world):
    cancelled, promoted = world.row(delay_ms=1_000), world.row(delay_ms=1_000)
    lot = world.plain(b"1", delay_ms=1_000).first_id
    decide_cancel(world.shard, world.now, [cancelled, lot])
    decide_promote(world.shard, world.now, [promoted])
    world.commit()
    assert world.ids() == [promoted]
    world.tick(1_000)
    assert world.counts() == (0, 0, 1)
    world.check()


def test_keys_are_forgotten_after_their_window(world):
    world.row(key="a")
    world.tick(26 * 3_600_000)
    assert (world.shard.keys.records, world.shard.load.keys) == ({}, 0)


def test_next_deadline_is_that_of_the_next_job_or_lease(world):
    shard = world.shard
    assert next_deadline(shard, world.now) is None
    world.row(delay_ms=50_000)
    assert next_deadline(shard, world.now) == 50_000
    world.plain(b"1")
    world.lease()
    assert next_deadline(shard, world.now) in range(LEASE_MS, LEASE_MS + 1_001)
    world.advance(100_000)
    assert next_deadline(shard, world.now) == 0


def test_every_lease_has_its_full_time_again_after_a_restart(world):
    """Whoever held it, and however long the server was down."""
    first_id = world.plain(b"1", b"2").first_id
    world.lease(1, holder=world.session())
    single = world.row()
    world.lease(2)
    world.advance(25_000)
    world.shard = world.recovered()
    world.shard.restart_leases(world.now)
    world.shard.committed = world.shard.next_offset
    world.tick(LEASE_MS)
    assert world.counts() == (0, 0, 3)
    world.tick(1_000)
    assert [world.state(i) for i in (first_id, first_id + 1, single)] == [READY] * 3
    assert world.shard.clocks.holders == {}


def test_worker_that_returns_after_a_restart_keeps_its_leases(world):
    first_id = world.plain(b"1").first_id
    delivery = world.lease(holder=world.session()).runs[0].delivery
    world.shard = world.recovered()
    world.shard.restart_leases(world.now)
    [holder] = world.shard.clocks.holders.values()
    world.shard.clocks.resume(world.now, holder)
    assert list(holder.held()) == [(first_id, delivery)]
    assert world.ack([(first_id, delivery)]) == []

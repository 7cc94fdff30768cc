"""Jobs that may be handed out only once."""

from __future__ import annotations

from typing import Any

import pytest

from jobline_server.engine.commands import Leased, ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel, decide_retry
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.once import (
    begin_leases,
    decide_abandon,
    hold_leases,
    not_once,
    take_once,
)
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.holder import Holder
from jobline_server.engine.limits import LEASE_MS_DEFAULT, LEASE_MS_MAX
from jobline_server.engine.rules import DeliveryMode, JobRules
from jobline_server.engine.values import EndReason, FailAction, JobOptions, JobState
from tests.unit.engine.effects_of import revoked_in
from tests.unit.engine.world import World, leases_of

ONCE = JobRules(delivery_mode=DeliveryMode.ONCE)
AGAIN = JobRules(delivery_mode=DeliveryMode.AT_LEAST_ONCE)
LOST_MS = LEASE_MS_DEFAULT + 2_000


@pytest.fixture
def world() -> World:
    return World()


def a_lot(world: World, count: int, rules: JobRules = ONCE, **options: Any) -> int:
    payloads = [b"x"] * count
    return world.plain(*payloads, options=JobOptions(rules=rules, **options)).first_id


def leased_now(world: World, holder: Holder) -> Leased:
    """As `World.lease`, but the disk is behind."""
    leased = decide_lease(
        world.shard,
        world.now,
        world.queue(),
        holder,
        max_jobs=100,
        max_bytes=1 << 30,
        names=None,
        lease_ms=0,
    )
    world.shard.clocks.arm(holder)
    return leased


def ends(world: World) -> list[tuple[int, JobState, EndReason]]:
    return [(job_id, state, record.reason) for job_id, (state, record) in world.ended().items()]


def test_g7_a_lost_lease_is_the_end(world):
    """Whatever its budget of stalls: it may have run."""
    single, first = world.row(rules=ONCE, max_stalls=9), a_lot(world, 2)
    world.lease(holder=world.session())
    world.tick(LOST_MS)
    assert ends(world) == [
        (job_id, JobState.DEAD, EndReason.INTERRUPTED) for job_id in (single, first, first + 1)
    ]
    assert [reason.name for *_, reason in revoked_in(world.shard)] == ["LEASE_LOST"] * 3
    world.check()


def test_history_shows_the_lost_lease_as_a_stall(world):
    """An operator sees that no attempt failed."""
    job_id = world.row(rules=ONCE)
    world.lease()
    world.tick(LOST_MS)
    record = world.ended()[job_id][1]
    assert [attempt.outcome.name for attempt in record.history] == ["STALLED"]
    assert (record.stalls, record.attempts) == (1, 0)


def test_g7_a_restart_gives_the_lease_its_full_time_and_no_other_worker_the_job(world):
    """Its session may come back for it; if it does not, the job is dead."""
    job_id = world.row(rules=ONCE)
    world.lease(holder=world.session())
    shard = world.recovered()
    shard.restart_leases(world.now)
    world.shard = shard
    world.tick(LEASE_MS_DEFAULT - 2_000)
    assert world.state(job_id) is JobState.ACTIVE
    assert world.lease().count() == 0
    world.tick(4_000)
    assert ends(world) == [(job_id, JobState.DEAD, EndReason.INTERRUPTED)]


def test_one_failure_is_the_last_unless_attempts_are_given(world):
    """Only a worker that says so makes it safe to run again."""
    final, patient = world.row(rules=ONCE), world.row(rules=ONCE, max_attempts=2)
    first, second = world.lease().jobs
    assert world.fail(*(first.id, first.delivery)).state is JobState.DEAD
    assert ends(world) == [(final, JobState.DEAD, EndReason.MAX_ATTEMPTS_EXCEEDED)]
    assert world.fail(patient, second.delivery, retry_after_ms=0).state is JobState.READY
    again = world.one()
    assert (again.id, again.attempt) == (patient, 2)
    assert world.fail(patient, again.delivery, then=FailAction.RETRY).state is JobState.DEAD


def test_its_worker_may_release_it(world):
    """It says that the job has not run."""
    job_id = world.row(rules=ONCE)
    leased = world.one()
    assert world.release(ReleaseItem(job_id, leased.delivery)) == []
    assert world.one().id == job_id


def test_a_queue_says_once_for_jobs_that_say_nothing(world):
    """And a job that says otherwise goes on as ever."""
    world.settings(delivery_mode=DeliveryMode.ONCE)
    silent, other = world.row(), world.row(rules=AGAIN)
    leased = world.lease()
    assert leased.has_once
    assert [item.is_once for item in leased.items()] == [True, False]
    world.tick(LOST_MS)
    assert ends(world) == [(silent, JobState.DEAD, EndReason.INTERRUPTED)]
    assert world.state(other) is JobState.READY


def test_once_and_other_jobs_keep_their_order(world):
    """They are taken apart only for their way to the consumer."""
    ids = [world.row(), world.row(rules=ONCE), world.row(), a_lot(world, 3), world.row()]
    leased = world.lease()
    assert [job_id for job_id, _ in leases_of(leased)][:4] == ids[:4]
    once, others = take_once(leased)
    assert [job_id for job_id, _ in leases_of(once)] == [ids[1], *range(ids[3], ids[3] + 3)]
    assert [job_id for job_id, _ in leases_of(others)] == [ids[0], ids[2], ids[4]]
    assert len(once.runs) == 1


def test_jobs_without_it_are_not_looked_at(world):
    """A queue that has none pays nothing."""
    world.plain(b"x", b"y")
    world.row(rules=AGAIN)
    assert not world.lease().has_once


def test_a_lease_that_is_held_does_not_end_before_it_begins(world):
    """A full disk may keep a commit for longer than a lease takes."""
    first, single = a_lot(world, 2), world.row(rules=ONCE)
    holder = Holder("w1", "")
    leased = leased_now(world, holder)
    hold_leases(world.shard, leased)
    decide_cancel(world.shard, world.now, [first])
    world.tick(10 * LOST_MS)
    assert ends(world) == []
    assert begin_leases(world.shard, world.now, holder, leased).count() == 3
    world.tick(LOST_MS)
    assert sorted(ends(world)) == [
        (first, JobState.CANCELLED, EndReason.CANCELLED),
        (first + 1, JobState.DEAD, EndReason.INTERRUPTED),
        (single, JobState.DEAD, EndReason.INTERRUPTED),
    ]
    assert world.now.mono_ms < LEASE_MS_MAX


def test_what_is_gone_when_its_commit_is_done_is_not_delivered(world):
    """Its queue was deleted meanwhile."""
    world.row(rules=ONCE)
    holder = Holder("w1", "")
    leased = leased_now(world, holder)
    hold_leases(world.shard, leased)
    decide_delete_queue(world.shard, world.now, "q", force=True)
    assert begin_leases(world.shard, world.now, holder, leased) == Leased()


def test_g7_a_worker_that_says_goodbye_ends_what_it_may_have_begun(world):
    """Others are given back; a lease that is over is left alone."""
    single, first, plain = world.row(rules=ONCE), a_lot(world, 2), world.row()
    asked = world.row(rules=ONCE)
    leases = leases_of(world.lease(holder=world.session()))
    decide_cancel(world.shard, world.now, [asked])
    items = [ReleaseItem(*lease) for lease in [*leases, (single, 1)]]
    assert decide_abandon(world.shard, world.now, items) == []
    assert sorted(ends(world)) == [
        (single, JobState.DEAD, EndReason.INTERRUPTED),
        (first, JobState.DEAD, EndReason.INTERRUPTED),
        (first + 1, JobState.DEAD, EndReason.INTERRUPTED),
        (asked, JobState.CANCELLED, EndReason.CANCELLED),
    ]
    assert world.state(plain) is JobState.READY
    world.check()


def test_jobs_that_may_run_again_are_told_apart(world):
    """For leases that may or may not have arrived."""
    world.row(rules=ONCE)
    a_lot(world, 1)
    plain = world.row()
    leases = leases_of(world.lease())
    items = [ReleaseItem(*lease) for lease in [*leases, (plain, 1)]]
    assert [item.id for item in not_once(world.shard, items)] == [plain]


def test_g7_an_operator_may_retry_it(world):
    """By hand it runs again: who asks for it knows what it did."""
    job_id = world.row(rules=ONCE)
    world.lease()
    world.tick(LOST_MS)
    state, record = world.ended()[job_id]
    assert decide_retry(world.shard, world.now, [(record, state)]) == []
    world.commit()
    assert world.one().id == job_id

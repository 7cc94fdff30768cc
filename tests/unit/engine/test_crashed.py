"""Jobs whose worker says that they have crashed: what a lost lease does, at once."""

from __future__ import annotations

import pytest

from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.entries import JobsStalled
from jobline_server.engine.holder import Holder
from jobline_server.engine.rules import DeliveryMode, JobRules
from jobline_server.engine.values import (
    AttemptOutcome,
    Backoff,
    EndReason,
    JobState,
    LeaseReason,
    ReleaseReason,
    SettleOutcome,
)
from tests.shard_image import image_of
from tests.unit.engine.effects_of import revoked_in

STEADY = Backoff(jitter=0.0)
LOST_MS = 60_000


def crash(world, *leases: tuple[int, int]):
    return world.release(*[ReleaseItem(*lease, why=ReleaseReason.CRASHED) for lease in leases])


@pytest.mark.parametrize("in_session", [False, True])
def test_a_crash_uses_a_stall_and_neither_an_attempt_nor_a_release(world, in_session):
    job_id = world.row(backoff=STEADY)
    job = world.one(holder=world.session() if in_session else None)
    assert crash(world, (job_id, job.delivery)) == []
    again = world.one()
    assert (again.id, again.attempt, again.reason) == (job_id, 1, LeaseReason.STALLED)
    single = world.shard.jobs[job_id]
    assert (single.stalls, single.attempts, single.releases) == (1, 0, 0)
    assert [attempt.outcome for attempt in single.details.history] == [AttemptOutcome.STALLED]
    world.check()


def test_a_crash_is_the_very_fact_of_a_lost_lease(world):
    """So whoever reads facts, events and the history cannot tell them apart."""
    world.row(), world.row(), world.plain(b"1", b"2")
    holder = world.session()
    leased = world.lease(holder=holder)
    crash(world, *[(job.id, job.delivery) for job in leased.jobs], *held_in(leased))
    (_, crashed) = world.journal[-1]
    revoked = revoked_in(world.shard)
    world.lease(holder=holder)
    world.tick(LOST_MS)
    facts = [fact for _, fact in world.journal if isinstance(fact, JobsStalled)]
    assert [sorted(fact.ids) for fact in facts] == [sorted(crashed.ids)] * 2
    assert {(fact.queue, fact.reason, fact.worker) for fact in facts} == {
        ("q", EndReason.STALLED, "w1")
    }
    assert [one[-1] for one in revoked] == [one[-1] for one in revoked_in(world.shard)[-4:]]
    assert image_of(world.recovered()) == image_of(world.shard)


def held_in(leased):
    return [
        (run.first_id + index, run.delivery)
        for run in leased.runs
        for index in range(len(run.payloads))
    ]


def test_the_second_stall_waits_for_the_backoff_and_the_last_is_the_end(world):
    job_id = world.row(max_stalls=2, backoff=STEADY)
    crash(world, (job_id, world.one().delivery))
    crash(world, (job_id, world.one().delivery))
    assert world.state(job_id) is JobState.SCHEDULED
    world.tick(1_000)
    crash(world, (job_id, world.one().delivery))
    state, record = world.ended()[job_id]
    assert (state, record.reason, record.stalls) == (JobState.DEAD, EndReason.STALLED, 3)
    world.check()


def test_a_crashed_job_that_may_run_once_is_dead(world):
    """A release would have it run again: it may have run."""
    job_id = world.row(rules=JobRules(delivery_mode=DeliveryMode.ONCE))
    crash(world, (job_id, world.one().delivery))
    state, record = world.ended()[job_id]
    assert (state, record.reason) == (JobState.DEAD, EndReason.INTERRUPTED)


def test_a_cancelled_job_that_crashes_is_cancelled_and_its_history_shows_the_stall(world):
    job_id = world.row()
    job = world.one()
    decide_cancel(world.shard, world.now, [job_id])
    assert crash(world, (job_id, job.delivery)) == [(0, SettleOutcome.CANCELLED)]
    state, record = world.ended()[job_id]
    assert (state, record.stalls) == (JobState.CANCELLED, 1)


def test_a_lease_crashes_once(world):
    job_id, other = world.row(), world.row()
    first, second = world.lease().jobs
    lost = SettleOutcome.LEASE_LOST
    lease = (job_id, first.delivery)
    assert crash(world, lease, lease) == [(1, lost)]
    assert crash(world, lease, (other, second.delivery - 1)) == [(0, lost), (1, lost)]
    release = ReleaseItem(other, second.delivery)
    assert world.release(release, ReleaseItem(*lease[:1], 1, why=ReleaseReason.CRASHED)) == [
        (1, lost)
    ]


def test_a_worker_that_has_lost_its_stream_says_it_with_a_call(world):
    """The reason is then that of a lost worker, as for a lease that ends so."""
    job_id = world.row(max_stalls=0)
    holder: Holder = world.session()
    job = world.one(holder=holder)
    holder.disconnected_ms = world.now.mono_ms
    crash(world, (job_id, job.delivery))
    assert world.ended()[job_id][1].reason is EndReason.WORKER_LOST

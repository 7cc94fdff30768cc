"""Attempts that may take only so long in all."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import ExtendItem, ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.timeouts import time_out_due
from jobline_server.engine.decide.timers import next_deadline
from jobline_server.engine.rules import DeliveryMode, JobRules
from jobline_server.engine.values import (
    AttemptOutcome,
    Backoff,
    EndReason,
    JobOptions,
    JobState,
    RevokeReason,
    SettleOutcome,
)
from tests.unit.engine.effects_of import forget_revoked, revoked_in
from tests.unit.engine.world import leases_of

TIMEOUT_MS = 5_000
RULES = JobRules(timeout_ms=TIMEOUT_MS)
PAUSE = Backoff(base_ms=1_000, jitter=0.0)
LONG = JobOptions(lease_ms=60_000, backoff=PAUSE, rules=RULES)
S = JobState


def told(world) -> list[tuple[int, int]]:
    """The leases that were ended by a timeout."""
    revoked = [one for one in revoked_in(world.shard) if one.reason is RevokeReason.TIMEOUT]
    forget_revoked(world.shard)
    return [(one.job_id, one.delivery) for one in revoked]


@pytest.mark.parametrize("lot", [False, True])
def test_an_attempt_that_takes_too_long_has_failed(world, lot):
    """However often its worker is heard: at the moment, and not before. The worker is told, and
    what it says afterwards is of a lost lease.
    """
    if lot:
        job_id = world.plain(b"x", options=LONG).first_id
    else:
        job_id = world.row(lease_ms=60_000, backoff=PAUSE, rules=RULES)
    [lease] = leases_of(world.lease(holder=world.session()))
    assert next_deadline(world.shard, world.now) == TIMEOUT_MS
    world.tick(TIMEOUT_MS - 1)
    world.extend(ExtendItem(*lease, 600_000, 50.0))
    assert world.state(job_id) is S.ACTIVE
    assert not world.tick(1)
    world.check()
    assert told(world) == [lease]
    assert world.ack([lease]) == [(0, SettleOutcome.LEASE_LOST)]
    job = world.shard.jobs[job_id]
    assert (job.state, job.attempts, job.stalls) == (S.SCHEDULED, 1, 0)
    assert job.run_at_ms == world.now.wall_ms + 1_000
    [attempt] = job.details.history
    assert (attempt.outcome, attempt.error.type) == (AttemptOutcome.FAILED, "timeout")
    assert world.queue().failed_total == 1


def test_the_last_attempt_that_times_out_is_the_end(world):
    """With a reason of its own; and a last moment for retries holds here as well."""
    until = JobRules(timeout_ms=TIMEOUT_MS, retry_until_ms=world.now.wall_ms)
    dead, late = world.row(max_attempts=1, rules=RULES), world.row(rules=until)
    leases = leases_of(world.lease())
    world.tick(TIMEOUT_MS)
    assert told(world) == leases
    ended = {job_id: (state, record.reason) for job_id, (state, record) in world.ended().items()}
    assert ended == {
        dead: (S.DEAD, EndReason.TIMEOUT),
        late: (S.DEAD, EndReason.RETRY_UNTIL_PASSED),
    }


def test_a_job_that_may_be_handed_out_once_is_interrupted(world):
    """Nobody knows how far it came."""
    rules = JobRules(timeout_ms=TIMEOUT_MS, delivery_mode=DeliveryMode.ONCE)
    job_id = world.row(max_attempts=5, rules=rules)
    leases = leases_of(world.lease())
    world.tick(TIMEOUT_MS)
    assert told(world) == leases
    state, record = world.ended()[job_id]
    assert (state, record.reason, record.attempts) == (S.DEAD, EndReason.INTERRUPTED, 1)


def test_a_type_that_is_not_retried_may_be_timeout(world):
    world.settings(non_retryable_error_types=("timeout",), timeout_ms=TIMEOUT_MS)
    job_id = world.row()
    world.lease()
    world.tick(TIMEOUT_MS)
    assert world.ended()[job_id][1].reason is EndReason.TIMEOUT


def test_the_timeout_of_a_queue_is_for_attempts_that_begin_after_it(world):
    """A job's own goes before it, 0 for none."""
    before = world.row()
    world.lease(holder=world.session())
    world.settings(timeout_ms=TIMEOUT_MS)
    lot = world.plain(b"1", b"2").first_id
    never = world.row(rules=JobRules(timeout_ms=0))
    assert len(leases_of(world.lease(holder=world.session()))) == 3
    world.settings()
    after = world.row()
    world.lease(holder=world.session())
    world.tick(TIMEOUT_MS)
    assert sorted(job_id for job_id, _ in told(world)) == [lot, lot + 1]
    assert [world.state(one) for one in (before, never, after)] == [S.ACTIVE] * 3


def test_a_new_attempt_has_its_full_time_again(world):
    """What was released, failed or lost leaves nothing behind."""
    job_id = world.row(lease_ms=60_000, rules=RULES)
    job = world.one()
    world.tick(TIMEOUT_MS - 1)
    world.release(ReleaseItem(job_id, job.delivery))
    again = world.one()
    world.tick(TIMEOUT_MS - 1)
    assert world.state(job_id) is S.ACTIVE
    assert told(world) == []
    world.tick(1)
    assert told(world) == [(job_id, again.delivery)]


def test_members_of_a_run_time_out_together_wherever_they_are(world, monkeypatch):
    """Those that left their lot while they were leased, those that are still in it, in slices; not
    those that were settled, and cancelled ones are CANCELLED.
    """
    monkeypatch.setattr(limits, "TIMEOUT_SLICE_JOBS", 2)
    lot = world.plain(*[b"x"] * 8, options=LONG).first_id
    leases = leases_of(world.lease(holder=world.session()))
    world.ack(leases[1:2])
    world.extend(ExtendItem(*leases[0], None, 10.0), ExtendItem(*leases[4], None, 10.0))
    decide_cancel(world.shard, world.now, [lot + 6])
    forget_revoked(world.shard)
    world.check()
    slices = 0
    world.advance(TIMEOUT_MS)
    while time_out_due(world.shard, world.now):
        world.check()
        slices += 1
    assert slices > 2
    assert sorted(told(world)) == [leases[i] for i in (0, 2, 3, 4, 5, 7)]
    states = {job_id - lot: state for job_id, (state, _) in world.ended().items()}
    assert states == {1: S.COMPLETED, 6: S.CANCELLED}
    assert world.counts() == (6, 0, 0)


def test_after_a_restart_attempts_have_their_full_time_again(world):
    """As leases do: nobody knows how long the server was away."""
    lot = world.plain(b"1", b"2", options=LONG).first_id
    row = world.row(lease_ms=60_000, rules=RULES)
    world.lease(holder=world.session())
    world.advance(TIMEOUT_MS - 1)
    shard = world.recovered()
    shard.restart_leases(world.now)
    world.shard = shard
    world.tick(TIMEOUT_MS - 1)
    assert told(world) == []
    world.tick(1)
    assert sorted(job_id for job_id, _ in told(world)) == [lot, lot + 1, row]


def test_entries_of_attempts_that_ended_do_not_stay(world):
    """However long the timeout, there are never many more than leases."""
    rules = JobRules(timeout_ms=limits.TIMEOUT_MS_MAX)
    for _ in range(300):
        world.row(rules=rules)
        world.plain(b"1", b"2", options=JobOptions(rules=rules))
        world.ack(leases_of(world.lease()))
    assert len(world.shard.clocks.timeouts) <= 12


def test_attempts_that_could_not_be_ended_are_tried_again(world, monkeypatch):
    """G7: no entry is lost by an exception."""
    world.row(rules=RULES)
    leases = leases_of(world.lease())
    world.advance(TIMEOUT_MS)
    with monkeypatch.context() as patched:
        patched.setattr(type(world.shard), "emit", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            time_out_due(world.shard, world.now)
    world.tick()
    assert told(world) == leases

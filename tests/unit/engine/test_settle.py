"""Settling leases: fail, release and extend, with leases that hold and leases that do not."""

from __future__ import annotations

from jobline_server.engine.commands import ExtendItem, ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import (
    AckLevel,
    AttemptOutcome,
    Backoff,
    EndReason,
    FailAction,
    JobState,
    LeaseReason,
    SettleOutcome,
)
from tests.unit.engine.world import ERROR, leases_of

DONE, LOST, NOT_FOUND = SettleOutcome.DONE, SettleOutcome.LEASE_LOST, SettleOutcome.NOT_FOUND
STEADY = Backoff(jitter=0.0)


def test_release_of_a_job_twice_in_one_call_gives_it_back_once(world):
    """The second one meets a job that is not leased any more, as it would in a call of its own."""
    job_id = world.row()
    job = world.one()
    item = ReleaseItem(job_id, job.delivery)
    assert world.release(item, item) == [(1, LOST)]
    assert world.release(item) == [(0, LOST)]


def test_wrong_delivery_of_an_ended_job_is_not_found_whether_its_run_is_open_or_not(world):
    """What a lease that is still open covered has ended all the same."""
    first_id = world.plain(b"1", b"2").first_id
    delivery = world.lease().runs[0].delivery
    assert not world.ack([(first_id, delivery)])
    assert world.ack([(first_id, delivery + 1)]) == [(0, NOT_FOUND)]
    assert world.release(ReleaseItem(first_id, delivery + 1)) == [(0, NOT_FOUND)]


def test_released_jobs_stand_at_the_front_in_the_order_of_the_list(world):
    """Also where some of them are never written, and are told of in facts of their own."""
    ids = [world.row(), world.row(level=AckLevel.MEMORY), world.row(), world.row()]
    leased = world.lease(3).jobs
    world.release(*[ReleaseItem(job.id, job.delivery) for job in leased])
    assert world.ids() == ids


def test_failed_job_waits_for_its_next_attempt(world):
    job_id = world.row(backoff=STEADY)
    result = world.fail(job_id, world.one().delivery)
    assert (result.outcome, result.state) == (DONE, JobState.SCHEDULED)
    assert result.run_at_ms == world.now.wall_ms + 1_000
    world.tick(1_000)
    job = world.one()
    assert (job.attempt, job.reason) == (2, LeaseReason.RETRY)


def test_failure_may_name_its_own_pause_or_none(world):
    job_id = world.row()
    result = world.fail(job_id, world.one().delivery, retry_after_ms=5_000)
    assert result.run_at_ms == world.now.wall_ms + 5_000
    world.tick(5_000)
    result = world.fail(job_id, world.one().delivery, retry_after_ms=0)
    assert (result.state, result.run_at_ms) == (JobState.READY, 0)
    assert world.one().attempt == 3


def test_last_attempt_that_fails_is_the_end(world):
    job_id = world.row(max_attempts=2)
    world.fail(job_id, world.one().delivery, retry_after_ms=0)
    assert world.fail(job_id, world.one().delivery).state is JobState.DEAD
    state, record = world.ended()[job_id]
    assert (state, record.reason) == (JobState.DEAD, EndReason.MAX_ATTEMPTS_EXCEEDED)
    assert (record.attempts, record.error, record.worker) == (2, ERROR, "w1")


def test_unlimited_attempts_never_end(world):
    job_id = world.row(max_attempts=0)
    for _ in range(50):
        assert world.fail(job_id, world.one().delivery, retry_after_ms=0).outcome is DONE
    assert len(world.shard.jobs[job_id].details.history) == 20


def test_worker_may_say_that_a_failure_is_final(world):
    job_id = world.plain(b"1").first_id
    delivery = world.lease().runs[0].delivery
    assert world.fail(job_id, delivery, then=FailAction.DEAD).state is JobState.DEAD
    assert world.ended()[job_id][1].reason is EndReason.EXPLICIT_FAIL


def test_errors_the_queue_does_not_retry_are_final(world):
    world.settings(non_retryable_error_types=("ValueError",))
    job_id = world.row()
    assert world.fail(job_id, world.one().delivery).state is JobState.DEAD


def test_worker_may_cancel_the_job_it_has(world):
    job_id, member = world.row(), world.plain(b"1").first_id
    leased = dict(leases_of(world.lease()))
    for one in (job_id, member):
        assert world.fail(one, leased[one], then=FailAction.CANCEL).state is JobState.CANCELLED
    ended = world.ended()
    assert {state for state, _ in ended.values()} == {JobState.CANCELLED}
    assert [ended[one][1].history[0].error for one in (job_id, member)] == [ERROR, ERROR]
    world.check()


def test_cancelled_job_that_fails_stays_cancelled(world):
    """Trial B4: what its worker said is kept in its history, and it used no attempt."""
    job_id = world.row()
    job = world.one()
    decide_cancel(world.shard, world.now, [job_id])
    result = world.fail(job_id, job.delivery)
    assert (result.outcome, result.state) == (SettleOutcome.CANCELLED, JobState.CANCELLED)
    record = world.ended()[job_id][1]
    (attempt,) = record.history
    assert (attempt.attempt, attempt.outcome) == (1, AttemptOutcome.CANCELLED)
    assert (attempt.error, record.error, record.attempts) == (ERROR, ERROR, 0)


def test_failure_with_a_lease_that_is_not_valid_changes_nothing(world):
    job_id = world.row()
    job = world.one()
    assert world.fail(job_id, job.delivery - 1).outcome is LOST
    assert world.fail(4711, job.delivery).outcome is NOT_FOUND
    world.fail(job_id, job.delivery)
    assert world.fail(job_id, job.delivery).outcome is LOST
    assert world.shard.jobs[job_id].attempts == 1


def test_release_uses_no_attempt_and_no_stall(world):
    job_id = world.plain(b"1").first_id
    delivery = world.lease().runs[0].delivery
    assert world.release(ReleaseItem(job_id, delivery)) == []
    job = world.one()
    assert (job.attempt, job.reason, job.delivery) == (1, LeaseReason.RELEASED, delivery + 1)
    single = world.shard.jobs[job_id]
    assert (single.attempts, single.stalls, single.releases) == (0, 0, 1)


def test_release_with_a_delay_waits(world):
    job_id = world.row()
    world.release(ReleaseItem(job_id, world.one().delivery, delay_ms=5_000))
    assert world.counts() == (1, 0, 0)
    world.tick(5_000)
    assert world.ids() == [job_id]


def test_cancelled_job_that_is_released_is_cancelled(world):
    job_id = world.row()
    job = world.one()
    decide_cancel(world.shard, world.now, [job_id])
    assert world.release(ReleaseItem(job_id, job.delivery)) == [(0, SettleOutcome.CANCELLED)]
    assert world.ended()[job_id][0] is JobState.CANCELLED


def test_job_that_is_always_given_back_ends_at_last(world):
    """A thousand times is a loop, not a shutdown."""
    job_id = world.row()
    job = world.one()
    world.shard.jobs[job_id].releases = 1_000
    assert world.release(ReleaseItem(job_id, job.delivery)) == []
    state, record = world.ended()[job_id]
    assert (state, record.error.type) == (JobState.DEAD, "ReleasesUsedUp")


def test_extended_lease_lasts_longer_and_never_shorter(world):
    job_id = world.row()
    job = world.one()
    world.advance(20_000)
    assert world.extend(ExtendItem(job_id, job.delivery)) == []
    assert world.shard.jobs[job_id].deadline_ms == world.now.mono_ms + 30_000
    world.extend(ExtendItem(job_id, job.delivery, lease_ms=1_000))
    assert world.shard.jobs[job_id].deadline_ms == world.now.mono_ms + 30_000


def test_extending_without_a_report_writes_nothing(world):
    first_id = world.plain(b"1").first_id
    delivery = world.lease().runs[0].delivery
    recorded = len(world.journal)
    world.extend(ExtendItem(first_id, delivery))
    assert len(world.journal) == recorded


def test_report_is_kept_and_handed_to_the_next_attempt(world):
    first_id = world.plain(b"1").first_id
    delivery = world.lease().runs[0].delivery
    report = ExtendItem(first_id, delivery, None, 40.0, "half way", b"page 7")
    assert world.extend(report) == []
    details = world.shard.jobs[first_id].details
    assert (details.progress, details.progress_message) == (40.0, "half way")
    world.fail(first_id, delivery, retry_after_ms=0)
    assert world.one().worker_checkpoint == b"page 7"


def test_checkpoint_forgives_earlier_stalls_and_progress_does_not(world):
    job_id = world.row()
    world.lease()
    world.tick(60_000)
    job = world.one()
    world.extend(ExtendItem(job_id, job.delivery, progress=1.0))
    assert world.shard.jobs[job_id].stalls == 1
    world.extend(ExtendItem(job_id, job.delivery, worker_checkpoint=b"c"))
    assert world.shard.jobs[job_id].stalls == 0


def test_extend_tells_of_lost_leases_and_cancelled_jobs(world):
    job_id = world.row()
    job = world.one()
    decide_cancel(world.shard, world.now, [job_id])
    items = [ExtendItem(job_id, job.delivery), ExtendItem(job_id, job.delivery + 1)]
    assert world.extend(*items, ExtendItem(4711, 1)) == [
        (0, SettleOutcome.CANCELLED),
        (1, LOST),
        (2, NOT_FOUND),
    ]


def test_a_retry_after_the_last_moment_for_retries_is_none(world):
    """The job is DEAD at once, and says why; one that starts at that very moment is tried."""
    until = world.now.wall_ms + 10_000
    rules, pause = JobRules(retry_until_ms=until), Backoff(base_ms=10_000, jitter=0.0)
    in_time, late = (world.row(rules=rules, backoff=pause) for _ in range(2))
    leases = dict(leases_of(world.lease()))
    assert world.fail(in_time, leases[in_time]).run_at_ms == until
    world.advance(1)
    assert world.fail(late, leases[late]).state is JobState.DEAD
    state, record = world.ended()[late]
    assert (state, record.reason) == (JobState.DEAD, EndReason.RETRY_UNTIL_PASSED)
    assert (record.error, record.attempts) == (ERROR, 1)
    assert world.shard.state_of(in_time) is JobState.SCHEDULED


def test_the_last_moment_for_retries_is_none_for_the_first_attempt(world):
    """A job may be pushed when it is over, and a release is no retry."""
    job_id = world.row(rules=JobRules(retry_until_ms=1))
    job = world.one()
    world.release(ReleaseItem(job_id, job.delivery))
    job = world.one()
    world.fail(job_id, job.delivery, retry_after_ms=0)
    assert world.ended()[job_id][1].reason is EndReason.RETRY_UNTIL_PASSED

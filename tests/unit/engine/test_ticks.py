"""What a schedule does when its times come: push, skip, wait, replace, make up for lost time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.admin import decide_delete_waiting, decide_retry
from jobline_server.engine.decide.schedules import decide_pause_schedule
from jobline_server.engine.decide.ticks import decide_tick, decide_trigger
from jobline_server.engine.rules import JobRules
from jobline_server.engine.schedule import (
    DueRuns,
    JobTemplate,
    Missed,
    Overlap,
    SkipReason,
    jitter_of,
)
from jobline_server.engine.ties import Ties
from jobline_server.engine.unique_rule import UniqueMode, UniqueRule
from jobline_server.engine.values import JobOptions, JobState, QueueSettings
from tests.shard_image import image_of
from tests.unit.engine.effects_of import take_endings
from tests.unit.engine.schedule_world import EVERY_MS, put, run
from tests.unit.engine.world import World


def test_run_pushes_the_template(world):
    options = JobOptions(name="n", headers=(("a", "b"),), priority=3)
    schedule = put(world, job=JobTemplate(options, Ties("", "u"), b"hello", 5_000))
    (fact,) = run(world)
    job = world.shard.jobs[fact.job_ids[0]]
    assert (job.payload, job.ties.unique_key, job.state) == (b"hello", "u", JobState.SCHEDULED)
    assert job.run_at_ms == fact.fired_ms[0] + 5_000
    assert dict(job.options.headers) == {
        "a": "b",
        "jobline-schedule": "s",
        "jobline-scheduled-at": "2027-01-15T08:00:10.000Z",
    }
    assert replace(job.options, headers=()) == replace(options, headers=())
    assert (schedule.count, schedule.last_job_id, schedule.last_ms) == (1, job.id, fact.at_ms)


def test_all_facts_of_a_tick_are_one_commit(world):
    put(world)
    run(world)
    offsets = {offset for offset, fact in world.journal if fact.at_ms == world.now.wall_ms}
    assert len(offsets) == 1


def test_spurious_look_leaves_no_fact(world):
    put(world)
    assert decide_tick(world.shard, world.now, "s", has_worker=True) is None


def test_paused_schedule_does_nothing(world):
    put(world)
    decide_pause_schedule(world.shard, world.now, "s", "ann", "")
    assert run(world) == []
    assert decide_tick(world.shard, world.now, "s", has_worker=True) is None


def test_unfinished_job_skips_a_run(world):
    schedule = put(world)
    (first,) = run(world)
    (second,) = run(world)
    assert second.skip_reasons == [SkipReason.OVERLAP]
    job = world.one()
    world.ack([(job.id, job.delivery)])
    assert (schedule.last_state, schedule.last_ended_ms) == (JobState.COMPLETED, second.at_ms)
    (third,) = run(world)
    assert third.job_ids != first.job_ids
    assert (schedule.count, schedule.skipped) == (2, 1)


def test_overlap_may_be_allowed(world):
    put(world, overlap=Overlap.ALLOW)
    run(world)
    (fact,) = run(world)
    assert len(fact.job_ids) == 1


def test_one_run_waits_and_others_are_skipped(world):
    schedule = put(world, overlap=Overlap.BUFFER_ONE)
    run(world)
    (waits,) = run(world)
    (skipped,) = run(world)
    assert (waits.waiting_ms, waits.skipped_ms) == (waits.at_ms, [])
    assert (skipped.waiting_ms, skipped.skip_reasons) == (waits.at_ms, [SkipReason.OVERLAP])
    job = world.one()
    world.ack([(job.id, job.delivery)])
    (fact,) = run(world, 0)
    assert (fact.fired_ms, schedule.waiting_ms) == ([waits.at_ms], 0)


def test_run_that_waits_goes_first(world):
    """The last job has ended, and the next time has come."""
    put(world, overlap=Overlap.BUFFER_ONE)
    run(world)
    (waits,) = run(world)
    job = world.one()
    world.ack([(job.id, job.delivery)])
    (fact,) = run(world)
    assert (fact.fired_ms, fact.waiting_ms) == ([waits.at_ms], fact.at_ms)


def test_waiting_job_is_replaced_at_once(world):
    put(world, overlap=Overlap.REPLACE)
    (first,) = run(world)
    (second,) = run(world)
    assert second.job_ids
    assert world.shard.state_of(first.job_ids[0]) is None
    (ended,) = take_endings(world.shard)[-1:]
    assert ended.state is JobState.CANCELLED


def test_active_job_is_told_to_stop_once_and_the_last_run_follows(world):
    schedule = put(world, overlap=Overlap.REPLACE)
    run(world)
    job = world.one(lease_ms=3_600_000)
    run(world)
    assert world.shard.jobs[job.id].cancel_requested
    before = len(world.journal)
    (third,) = run(world)
    assert third.skip_reasons == [SkipReason.REPLACED]
    assert len(world.journal) == before + 1
    world.ack([(job.id, job.delivery)])
    (fact,) = run(world, 0)
    assert fact.fired_ms == [third.at_ms]
    assert schedule.count == 2


def test_refused_push_leaves_the_job_to_replace(world):
    put(world, overlap=Overlap.REPLACE)
    (first,) = run(world)
    world.settings("q", max_waiting=1)
    (second,) = run(world)
    assert second.skip_reasons == [SkipReason.REFUSED]
    assert second.skip_message.startswith("QUEUE_FULL: ")
    assert world.shard.state_of(first.job_ids[0]) is JobState.READY


def test_held_unique_key_skips_a_run(world):
    options = JobOptions(rules=JobRules(unique=UniqueRule(mode=UniqueMode.KEEP)))
    job = JobTemplate(options, Ties("", "k"))
    put(world, job=job, overlap=Overlap.ALLOW)
    (first,) = run(world)
    (second,) = run(world)
    assert second.skip_reasons == [SkipReason.DUPLICATE]
    assert str(first.job_ids[0]) in second.skip_message


def test_run_needs_a_worker_if_it_says_so(world):
    put(world, skip_if_no_worker=True)
    (skipped,) = run(world, has_worker=False)
    assert skipped.skip_reasons == [SkipReason.NO_WORKER]
    (fact,) = run(world)
    assert fact.job_ids


@pytest.mark.parametrize(
    ("missed", "late", "fired", "left_out"),
    [
        (Missed.SKIP, False, [5], 4),
        (Missed.SKIP, True, [], 5),
        (Missed.ONCE, False, [5], 4),
        (Missed.ONCE, True, [5], 4),
        (Missed.ALL, False, [1, 2, 3, 4, 5], 0),
        (Missed.ALL, True, [1, 2, 3, 4, 5], 0),
    ],
)
def test_missedDueRuns(world, missed, late, fired, left_out):
    """The last one that is due is late after a minute; those before it always are."""
    schedule = put(world, missed=missed, overlap=Overlap.ALLOW)
    start_ms = world.now.wall_ms
    if late:
        world.shard.schedules.arm(schedule, start_ms + 5 * EVERY_MS + 60_001)
    times = tuple(start_ms + number * EVERY_MS for number in range(1, 6))
    world.advance(5 * EVERY_MS + (60_001 if late else 60_000))
    runs = (times, 0, times[-1] + EVERY_MS)
    fact = decide_tick(world.shard, world.now, "s", DueRuns(*runs), has_worker=True)
    assert fact is not None
    assert [(one - start_ms) // EVERY_MS for one in fact.fired_ms] == fired
    assert (fact.missed, schedule.missed) == (left_out, left_out)
    assert schedule.next_ms == times[-1] + EVERY_MS


def test_a_hundred_missed_runs_are_made_up_for(world):
    schedule = put(world, missed=Missed.ALL, overlap=Overlap.ALLOW)
    times = tuple(world.now.wall_ms + number * EVERY_MS for number in range(1, 102))
    world.advance(times[-1] - world.now.wall_ms)
    decide_tick(world.shard, world.now, "s", DueRuns(times, 900, 0), has_worker=True)
    assert (schedule.count, schedule.missed, schedule.next_ms) == (101, 900, 0)


def test_only_dropped_runs_are_missed(world):
    put(world, missed=Missed.ALL, overlap=Overlap.ALLOW)
    times = (world.now.wall_ms + EVERY_MS,)
    world.advance(EVERY_MS)
    fact = decide_tick(world.shard, world.now, "s", DueRuns(times, 3, 0), has_worker=True)
    assert fact is not None
    assert (fact.missed, fact.missed_ms) == (3, times[0])


def test_limit_ends_a_schedule(world):
    schedule = put(world, limit=2, overlap=Overlap.ALLOW)
    run(world)
    (fact,) = run(world)
    assert (fact.next_ms, schedule.next_start_ms()) == (0, None)
    assert run(world) == []
    # By hand it goes on.
    decide_trigger(world.shard, world.now, "s", has_worker=True)
    assert schedule.count == 3


def test_run_that_waits_counts_towards_the_limit(world):
    schedule = put(world, limit=2, overlap=Overlap.BUFFER_ONE)
    for _ in range(3):
        run(world)
    assert (schedule.count, schedule.skipped) == (1, 0)
    job = world.one()
    world.ack([(job.id, job.delivery)])
    (fact,) = run(world, 0)
    assert (schedule.count, fact.next_ms) == (2, 0)


def test_refused_run_by_hand_changes_nothing(world):
    put(world)
    world.settings("q", max_waiting=1)
    world.row()
    with pytest.raises(Refused) as refused:
        decide_trigger(world.shard, world.now, "s", has_worker=True)
    assert refused.value.kind is RefusalKind.QUEUE_FULL
    assert world.commit() == []


def test_job_that_is_deleted_or_retried_is_followed(world):
    schedule = put(world, job=JobTemplate(JobOptions(max_attempts=1)))
    (first,) = run(world)
    decide_delete_waiting(world.shard, world.now, first.job_ids)
    assert (schedule.is_running(), schedule.last_state) == (False, None)
    run(world)
    job = world.one()
    world.fail(job.id, job.delivery)
    assert schedule.last_state is JobState.DEAD
    state, record = world.ended()[job.id]
    decide_retry(world.shard, world.now, [(record, state)])
    assert schedule.is_running()
    (fact,) = run(world)
    assert fact.skip_reasons == [SkipReason.OVERLAP]


def test_jitter_is_the_same_for_a_run_and_differs_between_runs():
    found = [jitter_of("s", run_ms, 1_000) for run_ms in range(0, 60_000, 1_000)]
    assert found == [jitter_of("s", run_ms, 1_000) for run_ms in range(0, 60_000, 1_000)]
    assert 0 <= min(found) <= max(found) <= 1_000
    assert len(set(found)) > 30
    assert {jitter_of("s", run_ms, 0) for run_ms in range(9)} == {0}
    assert {jitter_of("s", run_ms, 1) for run_ms in range(99)} == {0, 1}


def test_run_starts_with_its_jitter(world):
    schedule = put(world, jitter_ms=5_000)
    first_ms = schedule.next_ms
    jitter_ms = jitter_of("s", first_ms, 5_000)
    assert jitter_ms > 0
    assert run(world, EVERY_MS + jitter_ms - 1) == []
    (fact,) = run(world, 1)
    assert fact.fired_ms == [first_ms]


def test_journal_makes_the_same_schedules(world: World):
    put(world, overlap=Overlap.BUFFER_ONE)
    put(world, "t", limit=1)
    for _ in range(3):
        run(world)
    again = world.recovered()
    assert image_of(again)["schedules"] == image_of(world.shard)["schedules"]
    assert again.schedules.first_ms() == world.shard.schedules.first_ms()


def test_default_settings_of_a_queue_hold(world):
    world.settings("q", ttl_ms=1_000)
    put(world)
    (fact,) = run(world)
    assert world.shard.jobs[fact.job_ids[0]].options.rules.ttl_ms == 1_000
    assert world.shard.queues["q"].settings == QueueSettings(ttl_ms=1_000)

"""Schedules are created, changed, paused and deleted; and found when they are due."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline_server.engine import limits, schedules
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.admin import (
    decide_delete_ended,
    decide_delete_waiting,
    decide_retry,
)
from jobline_server.engine.decide.limiters import decide_put_limiter
from jobline_server.engine.decide.queues import decide_delete_idle_queues, decide_delete_queue
from jobline_server.engine.decide.schedules import (
    decide_delete_schedule,
    decide_pause_schedule,
    decide_resume_schedule,
    existing_schedule,
)
from jobline_server.engine.rules import JobRules
from jobline_server.engine.schedule import JobTemplate, Overlap, Schedule, ScheduleSettings
from jobline_server.engine.values import JobOptions, JobState
from tests.shard_image import image_of
from tests.unit.engine.schedule_world import EVERY_MS, put, run


def refusal(call, *arguments, **more):
    with pytest.raises(Refused) as refused:
        call(*arguments, **more)
    return refused.value


def test_schedule_makes_its_queue_and_keeps_it(world):
    put(world)
    world.advance(2 * limits.EMPTY_QUEUE_MS)
    assert decide_delete_idle_queues(world.shard, world.now) == 0
    decide_delete_schedule(world.shard, world.now, "s")
    world.advance(2 * limits.EMPTY_QUEUE_MS)
    assert decide_delete_idle_queues(world.shard, world.now) == 1


def test_change_keeps_counts_and_payload_bytes_add_up(world):
    schedule = put(world, job=JobTemplate(payload=b"12345"))
    run(world)
    put(world, job=JobTemplate(payload=b"123"), overlap=Overlap.ALLOW)
    assert schedule.count == 1
    assert world.shard.schedules.payload_bytes == 3
    assert schedule.changed_ms > schedule.created_ms
    assert len(world.shard.schedules) == 1


def test_change_to_the_same_leaves_no_fact(world):
    put(world)
    before = len(world.journal)
    put(world)
    assert len(world.journal) == before


def test_queue_of_a_schedule_cannot_change(world):
    put(world)
    assert refusal(put, world, queue="other").kind is RefusalKind.SCHEDULE_EXISTS


def test_limiters_of_a_template_exist(world):
    job = JobTemplate(JobOptions(rules=JobRules(limiters=("api",))))
    found = refusal(put, world, job=job)
    assert found.kind is RefusalKind.LIMITER_NOT_FOUND
    assert found.field == "settings.job.options.limiters"
    decide_put_limiter(world.shard, world.now, "api", None, 1)
    put(world, job=job)
    assert "s" in world.shard.schedules.by_name


def test_schedules_and_their_payloads_are_bounded(world, monkeypatch):
    monkeypatch.setattr(limits, "SHARD_SCHEDULES_MAX", 2)
    monkeypatch.setattr(limits, "SCHEDULE_BYTES_MAX", 10)
    put(world, "a", job=JobTemplate(payload=b"12345"))
    put(world, "b")
    assert refusal(put, world, "c").kind is RefusalKind.SCHEDULES_FULL
    found = refusal(put, world, "b", job=JobTemplate(payload=b"123456"))
    assert (found.kind, found.field) == (RefusalKind.SCHEDULES_FULL, "settings.job")
    put(world, "a", job=JobTemplate(payload=b"1234567890"))


@pytest.mark.parametrize(
    "call",
    [
        lambda world: decide_delete_schedule(world.shard, world.now, "s"),
        lambda world: decide_pause_schedule(world.shard, world.now, "s", "", ""),
        lambda world: decide_resume_schedule(world.shard, world.now, "s", 0),
        lambda world: existing_schedule(world.shard, "s"),
    ],
)
def test_what_does_not_exist_is_refused(world, call):
    assert refusal(call, world).kind is RefusalKind.SCHEDULE_NOT_FOUND


def test_paused_schedule_is_not_due_until_it_is_resumed(world):
    schedule = put(world)
    decide_pause_schedule(world.shard, world.now, "s", "ann", "holidays")
    assert (schedule.paused_by, schedule.pause_reason) == ("ann", "holidays")
    assert world.shard.schedules.first_ms() is None
    next_ms = world.now.wall_ms + 5
    decide_resume_schedule(world.shard, world.now, "s", next_ms)
    assert world.shard.schedules.first_ms() == next_ms
    assert not schedule.pause_reason
    world.commit()
    decide_resume_schedule(world.shard, world.now, "s", next_ms)
    assert world.commit() == []


def test_schedules_go_with_their_queue(world):
    put(world)
    put(world, "t")
    put(world, "u", queue="other")
    run(world)
    decide_delete_queue(world.shard, world.now, "q", force=True)
    world.commit()
    table = world.shard.schedules
    assert ([*table.by_name], [*table.by_queue]) == (["u"], ["other"])
    assert len(table.by_job) == 1
    assert image_of(world.recovered())["schedules"].keys() == {"u"}


def test_heap_of_times_stays_small(world, monkeypatch):
    monkeypatch.setattr(schedules, "SPARE", 4)
    for _ in range(50):
        put(world)
        world.advance(1)
    assert len(world.shard.schedules._heap) <= 2 + 4
    put(world)
    assert world.shard.schedules.first_ms() == world.now.wall_ms + EVERY_MS


def test_due_schedules_come_in_order(world):
    for name in ("a", "b", "c"):
        put(world, name)
        world.advance(1)
    due = world.shard.schedules.pop_due(world.now.wall_ms + EVERY_MS - 2)
    assert [schedule.name for schedule in due] == ["a", "b"]


def test_run_that_waits_is_looked_at_after_a_restart(world):
    """Its job may be gone, although nobody said so."""
    put(world, overlap=Overlap.BUFFER_ONE)
    run(world)
    run(world)
    assert world.shard.schedules.first_ms() == world.now.wall_ms + EVERY_MS
    world.shard.schedules.restart()
    assert world.shard.schedules.first_ms() == 0
    assert run(world, 0) == []
    assert world.shard.schedules.first_ms() == world.now.wall_ms + EVERY_MS


def test_other_jobs_are_no_news_for_a_schedule(world):
    """Lots, jobs of nobody's schedule, and ended ones that are deleted together."""
    schedule = put(world, job=JobTemplate(JobOptions(max_attempts=1)))
    run(world)
    other = world.row(queue="other")
    world.plain(b"a", b"b", queue="lots")
    leased = world.lease(queue="lots")
    world.ack([(one.first_id + at, one.delivery) for one in leased.runs for at in range(2)])
    decide_delete_waiting(world.shard, world.now, [other])
    first = min(world.ended())
    decide_delete_ended(world.shard, world.now, "lots", JobState.COMPLETED, [(first, 2)])
    job = world.one()
    world.fail(job.id, job.delivery)
    state, record = world.ended()[job.id]
    run(world)
    decide_retry(world.shard, world.now, [(record, state)])
    assert schedule.last_job_id != job.id
    assert schedule.is_running()


def test_times_of_a_schedule_stay_while_only_its_job_changes():
    """The next run of one whose times are the same stays where it is."""
    settings = ScheduleSettings("q", every_ms=5)
    other_job = replace(settings, job=JobTemplate(payload=b"x"), overlap=Overlap.ALLOW)
    assert other_job.timing() == settings.timing()
    for change in (
        {"every_ms": 6},
        {"cron": "* * * * *"},
        {"time_zone": "UTC"},
        {"start_ms": 1},
        {"end_ms": 1},
        {"limit": 1},
    ):
        assert replace(settings, **change).timing() != settings.timing()


def test_schedule_that_was_loaded_is_found_by_its_last_job(world):
    """Which may be live still, and then it is to know how that ends."""
    for name, last_job_id in (("s", 7), ("t", 0)):
        schedule = Schedule(name, 1, ScheduleSettings("q", every_ms=EVERY_MS))
        schedule.last_job_id = last_job_id
        world.shard.schedules.put(schedule)
    assert {key: one.name for key, one in world.shard.schedules.by_job.items()} == {7: "s"}

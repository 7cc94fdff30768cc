"""Applies the facts of schedules, and notes how their last jobs ended.

`note_ends` is called after every fact while schedules have pushed jobs: it sees by the effects of
a fact which jobs ended. A job of a schedule has a header of its own, so it is never in a lot.
"""

from __future__ import annotations

from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.endings import JobsEnded
from jobline_server.engine.entries import Fact, JobsDeleted, JobsRetried
from jobline_server.engine.schedule import Schedule
from jobline_server.engine.schedule_entries import (
    ScheduleChanged,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleResumed,
    ScheduleTicked,
)
from jobline_server.engine.state import ShardState
from jobline_server.engine.values import JobState


def apply_schedule_changed(shard: ShardState, fact: ScheduleChanged, _offset: int) -> None:
    """Creates a schedule or changes its settings."""
    schedules = shard.schedules
    schedule = schedules.find(fact.name)
    if schedule is None:
        shard.use_ids(fact.number, 1)
        schedule = Schedule(fact.name, fact.number, fact.settings)
        schedule.created_ms = fact.at_ms
    else:
        before_bytes = len(schedule.settings.job.payload)
        schedules.payload_bytes += len(fact.settings.job.payload) - before_bytes
        schedule.settings = fact.settings
    schedule.anchor_ms = fact.anchor_ms
    schedule.next_ms = fact.next_ms
    schedule.changed_ms = fact.at_ms
    if fact.name in schedules.by_name:
        _changed(shard, schedule)
    else:
        schedules.put(schedule)
        shard.changes.schedules.to_write.add(fact.name)


def apply_schedule_deleted(shard: ShardState, fact: ScheduleDeleted, _offset: int) -> None:
    """Deletes a schedule."""
    _drop(shard, shard.schedules.by_name[fact.name])


def apply_schedule_paused(shard: ShardState, fact: SchedulePaused, _offset: int) -> None:
    """Pauses a schedule, with the principal and the reason."""
    schedule = shard.schedules.by_name[fact.name]
    schedule.paused = True
    schedule.paused_by = fact.principal
    schedule.pause_reason = fact.reason
    _changed(shard, schedule)


def apply_schedule_resumed(shard: ShardState, fact: ScheduleResumed, _offset: int) -> None:
    """Resumes a schedule."""
    schedule = shard.schedules.by_name[fact.name]
    schedule.paused = False
    schedule.paused_by = schedule.pause_reason = ""
    schedule.next_ms = fact.next_ms
    _changed(shard, schedule)


def apply_schedule_ticked(shard: ShardState, fact: ScheduleTicked, _offset: int) -> None:
    """Counts the runs of a schedule, and moves it to its next one."""
    schedule = shard.schedules.by_name[fact.name]
    if fact.job_ids:
        shard.schedules.note_job(schedule, fact.job_ids[-1])
        schedule.count += len(fact.job_ids)
        schedule.last_ms = fact.fired_ms[-1]
        schedule.last_fired_ms = fact.at_ms
        schedule.last_state, schedule.last_ended_ms = None, 0
    if fact.skipped_ms:
        schedule.skipped += len(fact.skipped_ms)
        schedule.skip_ms = fact.skipped_ms[-1]
        schedule.skip_reason = fact.skip_reasons[-1]
        schedule.skip_message = fact.skip_message
    schedule.missed += fact.missed
    schedule.waiting_ms = fact.waiting_ms
    schedule.next_ms = fact.next_ms
    _changed(shard, schedule)


def drop_schedules(shard: ShardState, queue: str) -> None:
    """Deletes the schedules of a queue that was deleted."""
    for schedule in list(shard.schedules.of_queue(queue)):
        _drop(shard, schedule)


def note_ends(shard: ShardState, fact: Fact) -> None:
    """Notes how the last jobs of schedules ended, and which of them came back."""
    for effect in shard.effects:
        if isinstance(effect, JobsEnded):
            for job in effect.jobs:
                _note_end(shard, job.id, effect.state, effect.ended_ms)
    if isinstance(fact, JobsDeleted):
        for start, count in zip(fact.starts, fact.counts, strict=True):
            # Ended ones may come as longer runs, and are no news.
            if count == 1:
                _note_end(shard, start, None, fact.at_ms)
    elif isinstance(fact, JobsRetried):
        for record in fact.jobs:
            schedule = shard.schedules.by_job.get(record.id)
            if schedule is not None:
                schedule.last_state, schedule.last_ended_ms = None, 0
                _changed(shard, schedule)


def _note_end(shard: ShardState, job_id: int, state: JobState | None, at_ms: int) -> None:
    schedule = shard.schedules.by_job.get(job_id)
    if schedule is not None and schedule.is_running():
        schedule.last_state, schedule.last_ended_ms = state, at_ms
        _changed(shard, schedule)


def _changed(shard: ShardState, schedule: Schedule) -> None:
    shard.schedules.arm(schedule)
    shard.changes.schedules.to_write.add(schedule.name)


def _drop(shard: ShardState, schedule: Schedule) -> None:
    shard.schedules.drop(schedule)
    shard.changes.schedules.to_write.discard(schedule.name)
    # It may not be in a checkpoint yet: removing nothing does no harm.
    shard.changes.schedules.to_delete.append(schedule.number)


APPLY: ApplyTable = {
    ScheduleChanged: apply_schedule_changed,
    ScheduleDeleted: apply_schedule_deleted,
    SchedulePaused: apply_schedule_paused,
    ScheduleResumed: apply_schedule_resumed,
    ScheduleTicked: apply_schedule_ticked,
}

"""Schedules: creates, changes, pauses and deletes them. Their runs are in `ticks`.

The times of a schedule are computed by the caller, who knows cron and time zones.
"""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.limiters import check_limiters_exist
from jobline_server.engine.decide.queues import known_queue
from jobline_server.engine.schedule import Schedule, ScheduleSettings
from jobline_server.engine.schedule_entries import (
    ScheduleChanged,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleResumed,
)
from jobline_server.engine.values import Now
from jobline_server.engine.view import ShardView


def existing_schedule(shard: ShardView, name: str, field: str = "schedule") -> Schedule:
    """Returns the schedule with this name; raises `Refused` with SCHEDULE_NOT_FOUND."""
    schedule = shard.schedules.find(name)
    if schedule is None:
        raise schedule_not_found(name, field)
    return schedule


def schedule_not_found(name: str, field: str = "schedule") -> Refused:
    """Returns the refusal of a call on a schedule that does not exist."""
    message = f"there is no schedule {name}"
    return Refused(RefusalKind.SCHEDULE_NOT_FOUND, message, field=field)


def decide_put_schedule(
    shard: ShardView,
    now: Now,
    name: str,
    settings: ScheduleSettings,
    *,
    anchor_ms: int,
    next_ms: int,
) -> None:
    """Creates a schedule, and its queue, or changes its settings; counts and runs stay. Raises
    `Refused` with SCHEDULES_FULL, SERVER_FULL, SCHEDULE_EXISTS if it has another queue, or
    LIMITER_NOT_FOUND.
    """
    before = shard.schedules.find(name)
    if before is not None and before.settings.queue != settings.queue:
        raise other_queue(before)
    if before is not None and (before.settings, before.anchor_ms, before.next_ms) == (
        settings,
        anchor_ms,
        next_ms,
    ):
        return
    _check_room(shard, before, settings)
    check_limiters_exist(shard.limiters, settings.job.options, "settings.job.options.limiters")
    known_queue(shard, now, settings.queue)
    number = shard.next_id() if before is None else before.number
    shard.emit(ScheduleChanged(now.wall_ms, name, number, settings, anchor_ms, next_ms))


def other_queue(schedule: Schedule) -> Refused:
    """Returns the refusal to move a schedule to another queue."""
    return Refused(
        RefusalKind.SCHEDULE_EXISTS,
        f"schedule {schedule.name} is of queue {schedule.settings.queue}, which cannot change",
        field="settings.queue",
    )


def decide_delete_schedule(shard: ShardView, now: Now, name: str) -> None:
    """Deletes a schedule; its jobs stay."""
    existing_schedule(shard, name)
    shard.emit(ScheduleDeleted(now.wall_ms, name))


def decide_pause_schedule(
    shard: ShardView, now: Now, name: str, principal: str, reason: str
) -> None:
    """Pauses a schedule. Pausing it again replaces the reason."""
    existing_schedule(shard, name)
    shard.emit(SchedulePaused(now.wall_ms, name, principal, reason))


def decide_resume_schedule(shard: ShardView, now: Now, name: str, next_ms: int) -> None:
    """Resumes a schedule with this next run; does nothing if it is not paused."""
    if existing_schedule(shard, name).paused:
        shard.emit(ScheduleResumed(now.wall_ms, name, next_ms))


def _check_room(shard: ShardView, before: Schedule | None, settings: ScheduleSettings) -> None:
    if before is None and len(shard.schedules) >= limits.SHARD_SCHEDULES_MAX:
        message = f"the shard of the queue has {limits.SHARD_SCHEDULES_MAX} schedules, the most"
        raise Refused(RefusalKind.SCHEDULES_FULL, message, field="schedule")
    size = len(settings.job.payload) - (len(before.settings.job.payload) if before else 0)
    if size > 0 and shard.schedules.payload_bytes + size > limits.SCHEDULE_BYTES_MAX:
        message = (
            f"the payloads of the shard's schedules would have over {limits.SCHEDULE_BYTES_MAX} "
            "bytes together"
        )
        raise Refused(RefusalKind.SCHEDULES_FULL, message, field="settings.job")

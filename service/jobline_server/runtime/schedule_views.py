"""Views of schedules, as operators get them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jobline_server.engine.schedule import Schedule, ScheduleSettings, SkipReason
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState

# The numbers and times of a schedule, and the framing of its fields and options.
FIXED_BYTES = 1_024


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """A schedule. Moments are wall time in milliseconds, 0 where there is none."""

    name: str
    settings: ScheduleSettings
    paused: bool
    paused_by: str
    pause_reason: str
    count: int
    skipped: int
    missed: int
    next_start_ms: int
    waiting_ms: int
    last_ms: int
    last_fired_ms: int
    last_job_id: int
    last_state: JobState | None
    last_ended_ms: int
    skip_ms: int
    skip_reason: SkipReason | None
    skip_message: str
    created_ms: int
    changed_ms: int


def view_of(shard: Shard, schedule: Schedule, *, with_payload: bool = True) -> ScheduleView:
    """Returns the view of a schedule."""
    settings = schedule.settings
    if not with_payload:
        settings = replace(settings, job=replace(settings.job, payload=b""))
    state = schedule.last_state
    if schedule.is_running():
        state = shard.state_of(schedule.last_job_id)
    return ScheduleView(
        name=schedule.name,
        settings=settings,
        paused=schedule.paused,
        paused_by=schedule.paused_by,
        pause_reason=schedule.pause_reason,
        count=schedule.count,
        skipped=schedule.skipped,
        missed=schedule.missed,
        next_start_ms=schedule.next_start_ms() or 0,
        waiting_ms=schedule.waiting_ms,
        last_ms=schedule.last_ms,
        last_fired_ms=schedule.last_fired_ms,
        last_job_id=schedule.last_job_id,
        last_state=state,
        last_ended_ms=schedule.last_ended_ms,
        skip_ms=schedule.skip_ms,
        skip_reason=schedule.skip_reason,
        skip_message=schedule.skip_message,
        created_ms=schedule.created_ms,
        changed_ms=schedule.changed_ms,
    )


def schedule_bytes(view: ScheduleView) -> int:
    """Returns about how many bytes a schedule takes in a message."""
    options = view.settings.job.options
    size = FIXED_BYTES + len(view.settings.job.payload)
    size += sum(len(key) + len(value) for key, value in options.headers)
    texts = (view.name, view.settings.queue, view.pause_reason, view.skip_message, options.name)
    return size + sum(4 * len(text) for text in texts)

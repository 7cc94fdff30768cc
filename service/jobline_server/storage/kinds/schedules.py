"""Schedules ↔ the items of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1 import store_pb2
from jobline_server.engine.schedule import Schedule, SkipReason
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState
from jobline_server.storage.codec.schedules import fill_settings, settings_of
from jobline_server.storage.kinds.by_id import by_id
from jobline_server.storage.kinds.loading import Loading
from jobline_server.storage.kinds.table import DurableKind
from jobline_server.storage.store import ItemKind, ItemRow


def encode_schedule(schedule: Schedule) -> bytes:
    """Returns the blob of a schedule."""
    message = store_pb2.StoredSchedule(
        name=schedule.name,
        number=schedule.number,
        anchor_ms=schedule.anchor_ms,
        next_ms=schedule.next_ms,
        waiting_ms=schedule.waiting_ms,
        count=schedule.count,
        skipped=schedule.skipped,
        missed=schedule.missed,
        last_ms=schedule.last_ms,
        last_fired_ms=schedule.last_fired_ms,
        last_job_id=schedule.last_job_id,
        last_state=schedule.last_state or 0,
        last_ended_ms=schedule.last_ended_ms,
        skip_ms=schedule.skip_ms,
        skip_reason=schedule.skip_reason or 0,
        skip_message=schedule.skip_message,
        paused=schedule.paused,
        paused_by=schedule.paused_by,
        pause_reason=schedule.pause_reason,
        created_ms=schedule.created_ms,
        changed_ms=schedule.changed_ms,
    )
    fill_settings(message.settings, schedule.settings)
    return message.SerializeToString()


def decode_schedule(blob: bytes) -> Schedule:
    """Returns the schedule in a blob."""
    message = store_pb2.StoredSchedule.FromString(blob)
    schedule = Schedule(message.name, message.number, settings_of(message.settings))
    schedule.anchor_ms = message.anchor_ms
    schedule.next_ms = message.next_ms
    schedule.waiting_ms = message.waiting_ms
    schedule.count = message.count
    schedule.skipped = message.skipped
    schedule.missed = message.missed
    schedule.last_ms = message.last_ms
    schedule.last_fired_ms = message.last_fired_ms
    schedule.last_job_id = message.last_job_id
    schedule.last_state = JobState(message.last_state) if message.last_state else None
    schedule.last_ended_ms = message.last_ended_ms
    schedule.skip_ms = message.skip_ms
    schedule.skip_reason = SkipReason(message.skip_reason) if message.skip_reason else None
    schedule.skip_message = message.skip_message
    schedule.paused = message.paused
    schedule.paused_by = message.paused_by
    schedule.pause_reason = message.pause_reason
    schedule.created_ms = message.created_ms
    schedule.changed_ms = message.changed_ms
    return schedule


def load_schedules(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of schedules."""
    for row in rows:
        schedule = decode_schedule(row.blob)
        # A stand-in, if the record of the queue was lost.
        loading.queue_of(schedule.settings.queue)
        loading.shard.schedules.put(schedule)
        loading.shard.use_ids(schedule.number, 1)


def _save(_shard: Shard, _name: str, schedule: Schedule) -> tuple[int, bytes]:
    return schedule.number, encode_schedule(schedule)


SCHEDULES = DurableKind(
    ItemKind.SCHEDULE,
    load=load_schedules,
    slices=by_id(
        ItemKind.SCHEDULE,
        owner=lambda shard: shard.schedules.by_name,
        changes=lambda shard: shard.changes.schedules,
        save=_save,
    ),
)

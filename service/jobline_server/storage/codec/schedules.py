"""Facts of schedules, and their settings, between value and message."""

from __future__ import annotations

from jobline.v1 import entry_pb2, store_pb2
from jobline_server.engine.schedule import (
    JobTemplate,
    Missed,
    Overlap,
    ScheduleSettings,
    SkipReason,
)
from jobline_server.engine.schedule_entries import (
    ScheduleChanged,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleResumed,
    ScheduleTicked,
)
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.storage.codec.shared import interned_options
from jobline_server.storage.codec.table import FactRow, FactTable, whole
from jobline_server.wire.options import serialized_options


def fill_settings(message: store_pb2.StoredScheduleSettings, settings: ScheduleSettings) -> None:
    """Writes the settings of a schedule."""
    job = settings.job
    message.queue = settings.queue
    message.cron = settings.cron
    message.every_ms = settings.every_ms
    message.time_zone = settings.time_zone
    message.start_ms = settings.start_ms
    message.end_ms = settings.end_ms
    message.limit = settings.limit
    message.immediately = settings.immediately
    message.jitter_ms = settings.jitter_ms
    message.skip_if_no_worker = settings.skip_if_no_worker
    message.options = serialized_options(job.options)
    message.group = job.ties.group
    message.unique_key = job.ties.unique_key
    message.payload = job.payload
    message.delay_ms = job.delay_ms
    message.overlap = settings.overlap
    message.missed = settings.missed


def settings_of(message: store_pb2.StoredScheduleSettings) -> ScheduleSettings:
    """Reads the settings of a schedule."""
    ties = Ties(message.group, message.unique_key)
    job = JobTemplate(
        interned_options(message.options),
        NO_TIES if ties == NO_TIES else ties,
        message.payload,
        message.delay_ms,
    )
    return ScheduleSettings(
        queue=message.queue,
        cron=message.cron,
        every_ms=message.every_ms,
        time_zone=message.time_zone,
        start_ms=message.start_ms,
        end_ms=message.end_ms,
        limit=message.limit,
        immediately=message.immediately,
        jitter_ms=message.jitter_ms,
        skip_if_no_worker=message.skip_if_no_worker,
        job=job,
        overlap=Overlap(message.overlap),
        missed=Missed(message.missed),
    )


def fill_schedule_changed(entry: entry_pb2.Entry, fact: ScheduleChanged) -> None:
    """Writes it into an entry."""
    message = entry.schedule_changed
    message.name = fact.name
    message.number = fact.number
    fill_settings(message.settings, fact.settings)
    message.anchor_ms = fact.anchor_ms
    message.next_ms = fact.next_ms


def schedule_changed(at_ms: int, message: entry_pb2.ScheduleChanged) -> ScheduleChanged:
    """Reads it."""
    return ScheduleChanged(
        at_ms,
        message.name,
        message.number,
        settings_of(message.settings),
        message.anchor_ms,
        message.next_ms,
    )


def fill_schedule_deleted(entry: entry_pb2.Entry, fact: ScheduleDeleted) -> None:
    """Writes it into an entry."""
    entry.schedule_deleted.name = fact.name


def schedule_deleted(at_ms: int, message: entry_pb2.ScheduleDeleted) -> ScheduleDeleted:
    """Reads it."""
    return ScheduleDeleted(at_ms, message.name)


def fill_schedule_paused(entry: entry_pb2.Entry, fact: SchedulePaused) -> None:
    """Writes it into an entry."""
    message = entry.schedule_paused
    message.name = fact.name
    message.principal = fact.principal
    message.reason = fact.reason


def schedule_paused(at_ms: int, message: entry_pb2.SchedulePaused) -> SchedulePaused:
    """Reads it."""
    return SchedulePaused(at_ms, message.name, message.principal, message.reason)


def fill_schedule_resumed(entry: entry_pb2.Entry, fact: ScheduleResumed) -> None:
    """Writes it into an entry."""
    entry.schedule_resumed.name = fact.name
    entry.schedule_resumed.next_ms = fact.next_ms


def schedule_resumed(at_ms: int, message: entry_pb2.ScheduleResumed) -> ScheduleResumed:
    """Reads it."""
    return ScheduleResumed(at_ms, message.name, message.next_ms)


def fill_schedule_ticked(entry: entry_pb2.Entry, fact: ScheduleTicked) -> None:
    """Writes it into an entry."""
    message = entry.schedule_ticked
    message.name = fact.name
    message.queue = fact.queue
    message.fired_ms.extend(fact.fired_ms)
    message.job_ids.extend(fact.job_ids)
    message.skipped_ms.extend(fact.skipped_ms)
    message.skip_reasons.extend(fact.skip_reasons)
    message.skip_message = fact.skip_message
    message.missed = fact.missed
    message.missed_ms = fact.missed_ms
    message.waiting_ms = fact.waiting_ms
    message.next_ms = fact.next_ms


def schedule_ticked(at_ms: int, message: entry_pb2.ScheduleTicked) -> ScheduleTicked:
    """Reads it."""
    return ScheduleTicked(
        at_ms,
        message.name,
        message.queue,
        fired_ms=list(message.fired_ms),
        job_ids=list(message.job_ids),
        skipped_ms=list(message.skipped_ms),
        skip_reasons=list(map(SkipReason, message.skip_reasons)),
        skip_message=message.skip_message,
        missed=message.missed,
        missed_ms=message.missed_ms,
        waiting_ms=message.waiting_ms,
        next_ms=message.next_ms,
    )


FACTS: FactTable = {
    ScheduleChanged: FactRow("schedule_changed", fill_schedule_changed, schedule_changed, whole),
    ScheduleDeleted: FactRow("schedule_deleted", fill_schedule_deleted, schedule_deleted, whole),
    SchedulePaused: FactRow("schedule_paused", fill_schedule_paused, schedule_paused, whole),
    ScheduleResumed: FactRow("schedule_resumed", fill_schedule_resumed, schedule_resumed, whole),
    ScheduleTicked: FactRow("schedule_ticked", fill_schedule_ticked, schedule_ticked, whole),
}

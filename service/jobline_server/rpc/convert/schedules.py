"""Converts schedules and their settings."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration

from jobline.v1 import job_pb2, job_service_pb2
from jobline.v1 import schedule_service_pb2 as pb
from jobline_server.engine import limits
from jobline_server.engine.commands import Refused
from jobline_server.engine.schedule import JobTemplate, Missed, Overlap, ScheduleSettings
from jobline_server.engine.ties import NO_TIES
from jobline_server.rpc.convert.jobs import fill_moment
from jobline_server.rpc.convert.masks import masked, paths_of
from jobline_server.rpc.convert.push import PushReader
from jobline_server.rpc.convert.ties import fill_ties
from jobline_server.rpc.validate import fields
from jobline_server.runtime.schedule_times import BadTiming, check_cron, zone_of
from jobline_server.runtime.schedule_views import ScheduleView
from jobline_server.wire.options import shared_message
from jobline_server.wire.times import fill_time

CRON_CHARACTERS_MAX = 256
ZONE_CHARACTERS_MAX = 64
EVERY_MS_MIN = 1_000
JITTER_MS_MAX = 24 * 3_600_000
LIMIT_MAX = 1_000_000_000
RUNS_DEFAULT = 10
RUNS_MAX = 1_000
# The latest start and end, in the year 9000: what comes after it still fits a timestamp.
MOMENT_MS_MAX = 221_845_392_000_000
PATHS = paths_of(pb.ScheduleSettings.DESCRIPTOR)
# The queue of a preview that names none.
ANY_QUEUE = "preview"
_REFUSED = frozenset({"job_key", "run_at", "depends_on_indexes"})


def schedule_name(value: str) -> str:
    """Returns the name of a schedule, which is as that of a queue."""
    return fields.queue_name(value, "schedule")


def settings_of(
    message: pb.ScheduleSettings, reader: PushReader, *, is_stored: bool = True
) -> ScheduleSettings:
    """Returns the settings of a schedule; without `is_stored` they may have no queue."""
    try:
        return _settings(message, reader, is_stored=is_stored)
    except Refused as refused:
        raise fields.within("settings", refused) from None


def _settings(
    message: pb.ScheduleSettings, reader: PushReader, *, is_stored: bool
) -> ScheduleSettings:
    queue = message.queue
    if queue or is_stored:
        fields.queue_name(queue)
    every_ms = _check_timing(message)
    start_ms, end_ms = _moment(message, "start"), _moment(message, "end")
    if start_ms and end_ms and end_ms < start_ms:
        raise fields.invalid("end", "must not be before start")
    if message.HasField("limit"):
        fields.integer(message.limit, "limit", 1, LIMIT_MAX)
    return ScheduleSettings(
        queue=queue,
        cron=" ".join(message.cron.split()),
        every_ms=every_ms,
        time_zone=message.time_zone,
        start_ms=start_ms,
        end_ms=end_ms,
        limit=message.limit,
        immediately=message.immediately,
        jitter_ms=fields.duration_ms(message.jitter, "jitter", 0, JITTER_MS_MAX),
        skip_if_no_worker=message.skip_if_no_worker,
        job=_template(message, queue or ANY_QUEUE, reader),
        overlap=fields.enum_member(message.overlap, "overlap", Overlap) or Overlap.SKIP,
        missed=fields.enum_member(message.missed, "missed", Missed) or Missed.SKIP,
    )


def _check_timing(message: pb.ScheduleSettings) -> int:
    """Checks when a schedule runs; returns the milliseconds between two runs, 0 with `cron`."""
    zone = fields.single_line(message.time_zone, "time_zone", ZONE_CHARACTERS_MAX)
    try:
        zone_of(zone)
    except BadTiming as mistake:
        raise fields.invalid("time_zone", str(mistake)) from None
    timing = message.WhichOneof("timing")
    if timing is None:
        raise fields.invalid("cron", "a schedule needs cron or every")
    if timing == "every":
        return fields.duration_ms(message.every, "every", EVERY_MS_MIN, limits.DELAY_MS_MAX)
    fields.required_line(message.cron, "cron", CRON_CHARACTERS_MAX)
    try:
        check_cron(" ".join(message.cron.split()), zone)
    except BadTiming as mistake:
        raise fields.invalid("cron", str(mistake)) from None
    return 0


def _moment(message: pb.ScheduleSettings, field: str) -> int:
    if not message.HasField(field):  # type: ignore[arg-type]  # the stub lists literals
        return 0
    moment_ms = fields.moment_ms(getattr(message, field), field)
    return fields.integer(moment_ms, field, 1, MOMENT_MS_MAX)


def _template(message: pb.ScheduleSettings, queue: str, reader: PushReader) -> JobTemplate:
    """Returns the job that a schedule pushes, checked as a push of it is."""
    if not message.HasField("job"):
        return JobTemplate()
    job = message.job
    for descriptor, _ in job.ListFields():
        if descriptor.name in _REFUSED:
            field = f"job.{descriptor.name}"
            raise fields.invalid(field, "a job that is pushed again cannot have it")
    for name in ("depends_on", "batch_id"):
        if getattr(job.options, name):
            field = f"job.options.{name}"
            raise fields.invalid(field, "a job that is pushed again cannot have it")
    delay = job.delay if job.HasField("delay") else Duration()
    delay_ms = fields.duration_ms(delay, "job.delay", 0, limits.DELAY_MS_MAX)
    row = job_pb2.NewJob()
    row.CopyFrom(job)
    row.ClearField("delay")
    try:
        command = reader.command(job_service_pb2.PushRequest(queue=queue, jobs=[row]))
    except Refused as refused:
        refused.field = refused.field.replace("jobs[0]", "job").replace("payloads[0]", "job")
        raise
    rows = command.rows
    payload = rows.payloads[0] if rows.payloads else next(iter(command.payloads))
    if len(payload) > limits.SCHEDULE_PAYLOAD_BYTES_MAX:
        most = limits.SCHEDULE_PAYLOAD_BYTES_MAX
        raise fields.too_large("job.payload", f"must be at most {most} bytes")
    options = rows.options[0] if rows.options else command.options
    return JobTemplate(options, rows.ties[0] if rows.ties else NO_TIES, payload, delay_ms)


def changed(
    request: pb.UpdateScheduleRequest, before: ScheduleSettings, reader: PushReader
) -> ScheduleSettings:
    """Returns the settings of a schedule after an update."""
    if not request.HasField("settings") and not request.update_mask.paths:
        raise fields.invalid("settings", "is required")
    named = masked(request.update_mask, PATHS)
    message = pb.ScheduleSettings()
    if named is None:
        message.CopyFrom(request.settings)
    else:
        fill_settings(message, before)
        _copy(named, request.settings, message)
    if not message.queue:
        message.queue = before.queue
    return settings_of(message, reader)


def _copy(named: frozenset[str], source: pb.ScheduleSettings, message: pb.ScheduleSettings) -> None:
    """Copies the fields that an update names."""
    for name in sorted(named):
        message.ClearField(name)  # type: ignore[arg-type]  # the stub lists literals
    part = pb.ScheduleSettings()
    part.CopyFrom(source)
    for field in pb.ScheduleSettings.DESCRIPTOR.fields:
        if field.name not in named:
            part.ClearField(field.name)  # type: ignore[arg-type]  # the stub lists literals
    # Of `cron` and `every`, the one that is set takes the place of the other.
    message.MergeFrom(part)


def runs_wanted(request: pb.PreviewScheduleRequest) -> int:
    """Returns how many runs a preview has."""
    if not request.count:
        return RUNS_DEFAULT
    return fields.integer(request.count, "count", 1, RUNS_MAX)


def fill_schedule(message: pb.Schedule, view: ScheduleView) -> None:
    """Fills a Schedule message."""
    message.name = view.name
    fill_settings(message.settings, view.settings)
    message.paused = view.paused
    message.paused_by = view.paused_by
    message.pause_reason = view.pause_reason
    message.count = view.count
    message.skipped_count = view.skipped
    message.missed_count = view.missed
    fill_moment(message.next_run_at, view.next_start_ms)
    fill_moment(message.waiting_run_at, view.waiting_ms)
    if view.last_job_id:
        fill_moment(message.last_run.scheduled_at, view.last_ms)
        fill_moment(message.last_run.fired_at, view.last_fired_ms)
        message.last_run.job_id = view.last_job_id
        if view.last_state is not None:
            message.last_run.state = job_pb2.JobState.ValueType(view.last_state)
        fill_moment(message.last_run.ended_at, view.last_ended_ms)
    if view.skip_reason is not None:
        fill_moment(message.last_skip.scheduled_at, view.skip_ms)
        message.last_skip.reason = pb.ScheduleSkipReason.ValueType(view.skip_reason)
        message.last_skip.message = view.skip_message
    fill_moment(message.created_at, view.created_ms)
    fill_moment(message.changed_at, view.changed_ms)


def fill_settings(message: pb.ScheduleSettings, settings: ScheduleSettings) -> None:
    """Fills a ScheduleSettings message."""
    message.queue = settings.queue
    if settings.every_ms:
        fill_time(message.every, settings.every_ms)
    else:
        message.cron = settings.cron
    message.time_zone = settings.time_zone
    fill_moment(message.start, settings.start_ms)
    fill_moment(message.end, settings.end_ms)
    if settings.limit:
        message.limit = settings.limit
    message.immediately = settings.immediately
    if settings.jitter_ms:
        fill_time(message.jitter, settings.jitter_ms)
    message.skip_if_no_worker = settings.skip_if_no_worker
    _fill_template(message.job, settings.job)
    message.overlap = pb.ScheduleOverlap.ValueType(settings.overlap)
    message.missed = pb.ScheduleMissed.ValueType(settings.missed)


def _fill_template(message: job_pb2.NewJob, job: JobTemplate) -> None:
    """Fills the job of a schedule; a payload that is text as text, so that people can read it."""
    message.SetInParent()
    try:
        message.text = job.payload.decode()
    except UnicodeDecodeError:
        message.data = job.payload
    message.options.CopyFrom(shared_message(job.options))
    if job.ties is not NO_TIES:
        fill_ties(message.options, job.ties)
    if job.delay_ms:
        fill_time(message.delay, job.delay_ms)

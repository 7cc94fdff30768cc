"""Messages for `ScheduleService`. Pure; both clients send what is made here."""

from __future__ import annotations

from typing import Any, TypedDict

from google.protobuf.field_mask_pb2 import FieldMask

from jobline import _codec as codec
from jobline._arguments import duration_given, member_given, message_of, moment_given
from jobline._keywords import refuse_unknown
from jobline._new_job import NewJob
from jobline._push.messages import fitting, row_of
from jobline._schedule_values import (
    ScheduleMissed,
    ScheduleMissedName,
    ScheduleOverlap,
    ScheduleOverlapName,
)
from jobline._times import Moment, Seconds
from jobline.errors import InvalidArgument
from jobline.v1 import job_pb2
from jobline.v1 import schedule_service_pb2 as pb


class TimingHow(TypedDict, total=False):
    """When a schedule runs; see `client.schedules.create`."""

    cron: str | None
    every: Seconds | None
    time_zone: str | None
    start: Moment | None
    end: Moment | None
    limit: int | None
    immediately: bool | None


class ScheduleHow(TimingHow, total=False):
    """Settings of a schedule but its queue; see `client.schedules.create`."""

    jitter: Seconds | None
    skip_if_no_worker: bool | None
    overlap: ScheduleOverlapName | None
    missed: ScheduleMissedName | None


class ScheduleChanges(ScheduleHow, total=False):
    """Settings of a schedule that may change."""

    job: Any


def create_schedule(
    schedule: str, queue: str, job: Any, how: ScheduleHow, *, upsert: bool, reason: str
) -> pb.CreateScheduleRequest:
    """Returns the request to create a schedule."""
    refuse_unknown(how, _KEYS, "create")
    settings = settings_message({**how, "job": job}, queue)
    return message_of(
        pb.CreateScheduleRequest,
        schedule=schedule,
        settings=settings,
        upsert=upsert,
        reason=reason,
    )


def update_schedule(
    schedule: str, changes: ScheduleChanges, *, reason: str
) -> pb.UpdateScheduleRequest:
    """Returns the request to change the settings in `changes`."""
    refuse_unknown(changes, {**_KEYS, "job": Any}, "update")
    if not changes:
        raise InvalidArgument("update() takes settings as keywords")
    return message_of(
        pb.UpdateScheduleRequest,
        schedule=schedule,
        settings=settings_message(changes),
        update_mask=FieldMask(paths=sorted(changes)),
        reason=reason,
    )


def preview_schedule(
    schedule: str | None, how: TimingHow, *, count: int, after: Moment | None
) -> pb.PreviewScheduleRequest:
    """Returns the request for the next runs of a stored schedule, or of the timing given."""
    refuse_unknown(how, TimingHow.__annotations__, "preview")
    if (schedule is None) is not bool(how):
        raise InvalidArgument("preview() takes the name of a schedule, or a timing as keywords")
    return message_of(
        pb.PreviewScheduleRequest,
        schedule=schedule or "",
        settings=settings_message(dict(how)) if how else None,
        count=count,
        after=moment_given("after", after),
    )


def settings_message(how: Any, queue: str = "") -> pb.ScheduleSettings:
    """Returns the message of settings; None and what is not given are unset."""
    get = how.get
    if get("cron") is not None and get("every") is not None:
        raise InvalidArgument("give cron or every, not both")
    given = {name: get(name) for name in ("cron", "limit") if get(name) is not None}
    job = get("job")
    return message_of(
        pb.ScheduleSettings,
        queue=queue,
        every=duration_given("every", get("every")),
        time_zone=get("time_zone") or "",
        start=moment_given("start", get("start")),
        end=moment_given("end", get("end")),
        immediately=get("immediately") or False,
        jitter=duration_given("jitter", get("jitter")),
        skip_if_no_worker=get("skip_if_no_worker") or False,
        job=None if job is None else job_message(job),
        overlap=member_given("overlap", ScheduleOverlap, get("overlap")),
        missed=member_given("missed", ScheduleMissed, get("missed")),
        **given,
    )


def job_message(job: Any) -> job_pb2.NewJob:
    """Returns the message of a job: a `NewJob`, or its payload."""
    new = job if isinstance(job, NewJob) else NewJob(job)
    payload, content_type = codec.encode(new.payload)
    with fitting():
        return row_of(new, payload, is_json=bool(content_type))


_KEYS = {**TimingHow.__annotations__, **ScheduleHow.__annotations__}

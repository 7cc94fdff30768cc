# Generated from jobline/_asynchronous/schedules.py by `make gen`: change that file instead.
"""The operators' calls on schedules, blocking: typed arguments in, dataclasses out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Unpack

from jobline import _schedule_requests as requests
from jobline._admin_requests import PAGE_SIZE
from jobline._arguments import message_of
from jobline._blocking.connection import Connection
from jobline._blocking.pages import pages_of
from jobline._keywords import spelled_out
from jobline._schedule_requests import ScheduleChanges, ScheduleHow, TimingHow
from jobline._schedule_values import Schedule, Triggered, runs_of
from jobline._times import Moment
from jobline.v1 import schedule_service_pb2, schedule_service_pb2_grpc


class ScheduleApi:
    """`client.schedules`: jobs that are pushed again and again, by the clock."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def _stub(self) -> schedule_service_pb2_grpc.ScheduleServiceStub:
        return self._connection.stub(schedule_service_pb2_grpc.ScheduleServiceStub)

    @spelled_out(ScheduleHow)
    def create(
        self,
        schedule: str,
        queue: str,
        job: Any = b"",
        *,
        upsert: bool = False,
        reason: str = "",
        **how: Unpack[ScheduleHow],
    ) -> Schedule:
        """Creates a schedule: `create("report", "reports", cron="0 6 * * 1-5")`.

        - `job`: what it pushes: a payload, as for `push`, or a `NewJob` with options.
        - `upsert`: changes the settings of a schedule that exists, all of them; its counts stay,
          and its next time if its timing is the same. Without: raises ScheduleExists.
        - `cron`: five fields, six with seconds, or "@daily" and the like, in `time_zone` (an IANA
          name; default UTC); or `every`: the time between runs, 1 s … 400 days.
        - `start`, `end`: no runs before and after; `limit`: how many jobs it pushes in all.
        - `immediately`: it also runs now. `jitter`: each run starts later by up to this, 0 … 24 h.
        - `skip_if_no_worker`: skips runs while no worker is connected that handles its jobs.
        - `overlap`: what it does while its last job is unfinished: "skip" (default), "allow",
          "replace" or "buffer_one". `missed`: what it does with missed runs: "skip" (default),
          "once" or "all".
        """
        request = requests.create_schedule(schedule, queue, job, how, upsert=upsert, reason=reason)
        response = self._connection.write(self._stub.CreateSchedule, request)
        return Schedule.from_message(response.schedule)

    def get(self, schedule: str) -> Schedule:
        """Returns one schedule. Raises ScheduleNotFound."""
        request = message_of(schedule_service_pb2.GetScheduleRequest, schedule=schedule)
        response = self._connection.read(self._stub.GetSchedule, request)
        return Schedule.from_message(response.schedule)

    def list(
        self, prefix: str = "", *, queue: str = "", page_size: int = PAGE_SIZE
    ) -> Iterator[Schedule]:
        """Yields schedules by name: all, or those whose name starts with `prefix`, or of a queue.
        Their jobs come without payloads.
        """
        for page in pages_of(
            lambda token: self._connection.read(
                self._stub.ListSchedules,
                message_of(
                    schedule_service_pb2.ListSchedulesRequest,
                    page_size=page_size,
                    page_token=token,
                    name_prefix=prefix,
                    queue=queue,
                ),
            )
        ):
            for schedule in page.schedules:
                yield Schedule.from_message(schedule)

    @spelled_out(ScheduleChanges)
    def update(
        self, schedule: str, *, reason: str = "", **changes: Unpack[ScheduleChanges]
    ) -> Schedule:
        """Changes the settings given as keywords, None taking one back to its default:
        `update("report", cron="@daily", limit=None)`. Raises ScheduleNotFound.
        """
        request = requests.update_schedule(schedule, changes, reason=reason)
        response = self._connection.write(self._stub.UpdateSchedule, request)
        return Schedule.from_message(response.schedule)

    def delete(self, schedule: str, *, reason: str = "") -> None:
        """Deletes a schedule; its jobs stay. Raises ScheduleNotFound."""
        request = message_of(
            schedule_service_pb2.DeleteScheduleRequest, schedule=schedule, reason=reason
        )
        self._connection.write(self._stub.DeleteSchedule, request)

    def pause(self, schedule: str, *, reason: str = "") -> Schedule:
        """Pauses a schedule: its times pass, and are not missed. Raises ScheduleNotFound."""
        request = message_of(
            schedule_service_pb2.PauseScheduleRequest, schedule=schedule, reason=reason
        )
        response = self._connection.write(self._stub.PauseSchedule, request)
        return Schedule.from_message(response.schedule)

    def resume(self, schedule: str, *, reason: str = "") -> Schedule:
        """Resumes a schedule with its next time from now. Raises ScheduleNotFound."""
        request = message_of(
            schedule_service_pb2.ResumeScheduleRequest, schedule=schedule, reason=reason
        )
        response = self._connection.write(self._stub.ResumeSchedule, request)
        return Schedule.from_message(response.schedule)

    def trigger(self, schedule: str, *, reason: str = "") -> Triggered:
        """Runs a schedule now, beside its times, also if it is paused or over. Each call is a run.
        Raises ScheduleNotFound, or as `push` does.
        """
        request = message_of(
            schedule_service_pb2.TriggerScheduleRequest, schedule=schedule, reason=reason
        )
        response = self._connection.write(self._stub.TriggerSchedule, request)
        return Triggered.from_message(response)

    @spelled_out(TimingHow)
    def preview(
        self,
        schedule: str | None = None,
        *,
        count: int = 10,
        after: Moment | None = None,
        **how: Unpack[TimingHow],
    ) -> Sequence[datetime]:
        """Returns the next runs of a schedule, or of one that is not stored:
        `preview("report")`, `preview(cron="0 2 * * *", time_zone="Europe/Berlin")`. `count`: how
        many, 1 … 1,000; `after`: after this moment instead of now.
        """
        request = requests.preview_schedule(schedule, how, count=count, after=after)
        response = self._connection.read(self._stub.PreviewSchedule, request)
        return runs_of(response)

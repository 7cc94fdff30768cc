"""ScheduleService: jobs that are pushed again and again, by the clock."""

from __future__ import annotations

from functools import partial
from typing import Any

from jobline.v1 import schedule_service_pb2 as pb
from jobline_server.rpc.convert import operations, queues, schedules, selection
from jobline_server.rpc.convert.page_tokens import cursor_of, token_of
from jobline_server.rpc.convert.push import PushReader
from jobline_server.rpc.guard import Context
from jobline_server.rpc.validate import fields
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit
from jobline_server.wire.times import fill_time


class ScheduleService:
    """Serves schedules from the runtime, and changes them through it. `reader` checks the jobs that
    they push.
    """

    def __init__(self, runtime: Runtime, reader: PushReader) -> None:
        self._runtime = runtime
        self._reader = reader

    def _audit(self, request: Any, context: Context) -> Audit:
        return operations.audit(request, context, self._runtime.operations.new_id())

    async def CreateSchedule(
        self, request: pb.CreateScheduleRequest, context: Context
    ) -> pb.CreateScheduleResponse:
        """Creates a schedule, or changes one."""
        name = schedules.schedule_name(request.schedule)
        settings = schedules.settings_of(request.settings, self._reader)
        audit = self._audit(request, context)
        response = pb.CreateScheduleResponse(operation_id=audit.operation_id)
        calls = self._runtime.schedules
        view = await calls.create_schedule(name, settings, upsert=request.upsert, audit=audit)
        schedules.fill_schedule(response.schedule, view)
        return response

    async def GetSchedule(
        self, request: pb.GetScheduleRequest, _context: Context
    ) -> pb.GetScheduleResponse:
        """Returns one schedule."""
        response = pb.GetScheduleResponse()
        view = self._runtime.schedules.get_schedule(schedules.schedule_name(request.schedule))
        schedules.fill_schedule(response.schedule, view)
        return response

    async def ListSchedules(
        self, request: pb.ListSchedulesRequest, _context: Context
    ) -> pb.ListSchedulesResponse:
        """Lists schedules by name."""
        views, token = await self._runtime.schedules.list_schedules(
            page_size=selection.page_size(request.page_size),
            page_token=cursor_of(request),
            prefix=queues.name_prefix(request.name_prefix),
            queue=selection.optional_queue(request.queue),
        )
        response = pb.ListSchedulesResponse(next_page_token=token_of(request, token))
        for view in views:
            schedules.fill_schedule(response.schedules.add(), view)
        return response

    async def UpdateSchedule(
        self, request: pb.UpdateScheduleRequest, context: Context
    ) -> pb.UpdateScheduleResponse:
        """Changes settings of a schedule."""
        name = schedules.schedule_name(request.schedule)
        audit = self._audit(request, context)
        response = pb.UpdateScheduleResponse(operation_id=audit.operation_id)
        change = partial(schedules.changed, request, reader=self._reader)
        view = await self._runtime.schedules.update_schedule(name, change, audit)
        schedules.fill_schedule(response.schedule, view)
        return response

    async def DeleteSchedule(
        self, request: pb.DeleteScheduleRequest, context: Context
    ) -> pb.DeleteScheduleResponse:
        """Deletes a schedule."""
        name = schedules.schedule_name(request.schedule)
        audit = self._audit(request, context)
        await self._runtime.schedules.delete_schedule(name, audit)
        return pb.DeleteScheduleResponse(operation_id=audit.operation_id)

    async def PauseSchedule(
        self, request: pb.PauseScheduleRequest, context: Context
    ) -> pb.PauseScheduleResponse:
        """Pauses a schedule."""
        name = schedules.schedule_name(request.schedule)
        audit = self._audit(request, context)
        response = pb.PauseScheduleResponse(operation_id=audit.operation_id)
        view = await self._runtime.schedules.pause_schedule(name, audit)
        schedules.fill_schedule(response.schedule, view)
        return response

    async def ResumeSchedule(
        self, request: pb.ResumeScheduleRequest, context: Context
    ) -> pb.ResumeScheduleResponse:
        """Resumes a schedule."""
        name = schedules.schedule_name(request.schedule)
        audit = self._audit(request, context)
        response = pb.ResumeScheduleResponse(operation_id=audit.operation_id)
        view = await self._runtime.schedules.resume_schedule(name, audit)
        schedules.fill_schedule(response.schedule, view)
        return response

    async def TriggerSchedule(
        self, request: pb.TriggerScheduleRequest, context: Context
    ) -> pb.TriggerScheduleResponse:
        """Runs a schedule now."""
        name = schedules.schedule_name(request.schedule)
        audit = self._audit(request, context)
        job_id, reason, view = await self._runtime.schedules.trigger_schedule(name, audit)
        response = pb.TriggerScheduleResponse(job_id=job_id, operation_id=audit.operation_id)
        if reason is not None:
            response.skipped = pb.ScheduleSkipReason.ValueType(reason)
        schedules.fill_schedule(response.schedule, view)
        return response

    async def PreviewSchedule(
        self, request: pb.PreviewScheduleRequest, _context: Context
    ) -> pb.PreviewScheduleResponse:
        """Computes the next runs of a schedule."""
        count = schedules.runs_wanted(request)
        after_ms = fields.moment_ms(request.after, "after") if request.HasField("after") else 0
        calls = self._runtime.schedules
        if request.HasField("settings") == bool(request.schedule):
            raise fields.invalid("schedule", "either this or settings is required")
        if request.schedule:
            name = schedules.schedule_name(request.schedule)
            runs = await calls.preview_stored(name, after_ms, count)
        else:
            settings = schedules.settings_of(request.settings, self._reader, is_stored=False)
            runs = await calls.preview(settings, after_ms, count)
        response = pb.PreviewScheduleResponse()
        for run_ms in runs:
            fill_time(response.runs.add(), run_ms)
        return response

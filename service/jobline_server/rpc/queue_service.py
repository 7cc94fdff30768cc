"""QueueService: the calls by which operators read and change queues."""

from __future__ import annotations

from typing import Any

from jobline.v1 import queue_service_pb2 as pb
from jobline_server.rpc.caller import readable
from jobline_server.rpc.convert import groups, minutes, operations, queues, selection
from jobline_server.rpc.convert.page_tokens import cursor_of, token_of
from jobline_server.rpc.guard import Context
from jobline_server.rpc.validate import fields
from jobline_server.runtime.pace import Pace
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit


class QueueService:
    """Serves queues from the runtime, and changes them through it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def _audit(self, request: Any, context: Context) -> Audit:
        return operations.audit(request, context, self._runtime.operations.new_id())

    async def ListQueues(
        self, request: pb.ListQueuesRequest, _context: Context
    ) -> pb.ListQueuesResponse:
        """Lists the queues that the caller may read."""
        views, token = await self._runtime.queues.list_queues(
            page_size=selection.page_size(request.page_size),
            page_token=cursor_of(request),
            prefix=queues.name_prefix(request.name_prefix),
            order=queues.order_of(request.order_by),
            may_read=readable(),
        )
        response = pb.ListQueuesResponse(next_page_token=token_of(request, token))
        pace = Pace()
        for view in views:
            queues.fill_queue(response.queues.add(), view)
            await pace.rest()
        return response

    async def GetQueue(self, request: pb.GetQueueRequest, _context: Context) -> pb.GetQueueResponse:
        """Returns one queue."""
        response = pb.GetQueueResponse()
        view = self._runtime.queues.get_queue(fields.queue_name(request.queue))
        queues.fill_queue(response.queue, view)
        return response

    async def GetQueueHistory(
        self, request: pb.GetQueueHistoryRequest, _context: Context
    ) -> pb.GetQueueHistoryResponse:
        """Returns what happened in a queue minute by minute."""
        queue, first, last = minutes.of_request(request, self._runtime.core.wall_ms())
        response = pb.GetQueueHistoryResponse()
        for minute in await self._runtime.minutes.find(queue, first, last):
            minutes.fill(response.minutes.add(), minute)
        return response

    async def UpdateQueue(
        self, request: pb.UpdateQueueRequest, context: Context
    ) -> pb.UpdateQueueResponse:
        """Changes settings; creates the queue if there is none."""
        queue = fields.queue_name(request.queue)
        settings, mask = queues.settings_change(request)
        audit = self._audit(request, context)
        response = pb.UpdateQueueResponse(operation_id=audit.operation_id)
        view = await self._runtime.queues.update_queue(queue, settings, mask, audit)
        queues.fill_queue(response.queue, view)
        return response

    async def PauseQueue(
        self, request: pb.PauseQueueRequest, context: Context
    ) -> pb.PauseQueueResponse:
        """Stops dispatching jobs of a queue."""
        queue, audit = fields.queue_name(request.queue), self._audit(request, context)
        response = pb.PauseQueueResponse(operation_id=audit.operation_id)
        view = await self._runtime.queues.pause_queue(queue, audit)
        queues.fill_queue(response.queue, view)
        return response

    async def ResumeQueue(
        self, request: pb.ResumeQueueRequest, context: Context
    ) -> pb.ResumeQueueResponse:
        """Resumes dispatching jobs of a queue."""
        queue, audit = fields.queue_name(request.queue), self._audit(request, context)
        response = pb.ResumeQueueResponse(operation_id=audit.operation_id)
        view = await self._runtime.queues.resume_queue(queue, audit)
        queues.fill_queue(response.queue, view)
        return response

    async def LimitQueue(
        self, request: pb.LimitQueueRequest, context: Context
    ) -> pb.LimitQueueResponse:
        """Stops dispatching jobs of a queue until a time."""
        queue = fields.queue_name(request.queue)
        until_ms = queues.limited_until_ms(request, self._runtime.core.wall_ms())
        audit = self._audit(request, context)
        response = pb.LimitQueueResponse(operation_id=audit.operation_id)
        queues.fill_queue(
            response.queue, await self._runtime.queues.limit_queue(queue, until_ms, audit)
        )
        return response

    async def DrainQueue(
        self, request: pb.DrainQueueRequest, context: Context
    ) -> pb.DrainQueueResponse:
        """Deletes the waiting jobs of a queue."""
        done = await self._runtime.queues.drain_queue(
            fields.queue_name(request.queue),
            dry_run=request.dry_run,
            audit=self._audit(request, context),
        )
        return pb.DrainQueueResponse(count=done.count, operation_id=done.operation_id)

    async def CleanQueue(
        self, request: pb.CleanQueueRequest, context: Context
    ) -> pb.CleanQueueResponse:
        """Deletes ended jobs of a queue."""
        done = await self._runtime.queues.clean_queue(
            fields.queue_name(request.queue),
            states=queues.cleaned_states(request),
            older_than_ms=queues.older_than_ms(request),
            dry_run=request.dry_run,
            audit=self._audit(request, context),
        )
        return pb.CleanQueueResponse(count=done.count, operation_id=done.operation_id)

    async def DeleteQueue(
        self, request: pb.DeleteQueueRequest, context: Context
    ) -> pb.DeleteQueueResponse:
        """Deletes a queue with all its jobs."""
        done = await self._runtime.queues.delete_queue(
            queues.confirmed_queue(request),
            force=request.force,
            dry_run=request.dry_run,
            audit=self._audit(request, context),
        )
        return pb.DeleteQueueResponse(count=done.count, operation_id=done.operation_id)

    async def ListGroups(
        self, request: pb.ListGroupsRequest, _context: Context
    ) -> pb.ListGroupsResponse:
        """Lists the groups of a queue by name."""
        views, token = await self._runtime.groups.list_groups(
            fields.queue_name(request.queue),
            page_size=selection.page_size(request.page_size),
            page_token=cursor_of(request),
            prefix=queues.name_prefix(request.name_prefix),
        )
        response = pb.ListGroupsResponse(next_page_token=token_of(request, token))
        for view in views:
            groups.fill_group(response.groups.add(), view)
        return response

    async def UpdateGroup(
        self, request: pb.UpdateGroupRequest, context: Context
    ) -> pb.UpdateGroupResponse:
        """Changes the settings of a group; creates it if it does not exist."""
        queue, group = fields.queue_name(request.queue), groups.group_name(request.group)
        settings, mask = groups.settings_change(request)
        audit = self._audit(request, context)
        response = pb.UpdateGroupResponse(operation_id=audit.operation_id)
        view = await self._runtime.groups.update_group(queue, group, settings, mask, audit)
        groups.fill_group(response.group, view)
        return response

    async def PauseGroup(
        self, request: pb.PauseGroupRequest, context: Context
    ) -> pb.PauseGroupResponse:
        """Stops dispatching jobs of a group."""
        queue, group = fields.queue_name(request.queue), groups.group_name(request.group)
        audit = self._audit(request, context)
        response = pb.PauseGroupResponse(operation_id=audit.operation_id)
        groups.fill_group(
            response.group, await self._runtime.groups.pause_group(queue, group, audit)
        )
        return response

    async def LimitGroup(
        self, request: pb.LimitGroupRequest, context: Context
    ) -> pb.LimitGroupResponse:
        """Stops dispatching jobs of a group until a time."""
        queue, group = fields.queue_name(request.queue), groups.group_name(request.group)
        until_ms = queues.limited_until_ms(request, self._runtime.core.wall_ms())
        audit = self._audit(request, context)
        view = await self._runtime.groups.limit_group(queue, group, until_ms, audit)
        response = pb.LimitGroupResponse(operation_id=audit.operation_id)
        groups.fill_group(response.group, view)
        return response

    async def ResumeGroup(
        self, request: pb.ResumeGroupRequest, context: Context
    ) -> pb.ResumeGroupResponse:
        """Resumes dispatching jobs of a group."""
        queue, group = fields.queue_name(request.queue), groups.group_name(request.group)
        audit = self._audit(request, context)
        response = pb.ResumeGroupResponse(operation_id=audit.operation_id)
        view = await self._runtime.groups.resume_group(queue, group, audit)
        groups.fill_group(response.group, view)
        return response

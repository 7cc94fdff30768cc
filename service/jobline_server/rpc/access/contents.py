"""Leaves out the contents of jobs for callers without the verb `read_payload`: payloads, results,
checkpoints, headers, and what errors and reports of progress say. This is the one place that knows
which fields those are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobline.v1 import job_admin_service_pb2, job_service_pb2
from jobline_server.auth.grants import READ, READ_PAYLOAD
from jobline_server.rpc.access.asking import Ask
from jobline_server.rpc.convert.asked import without

Show = Callable[[Ask, Any], Any]
"""Returns a reply, or its bytes, without what the caller may not see."""

# Fields by message that are contents. Of an error, its type is none.
CONTENTS: dict[str, tuple[str, ...]] = {
    "Job": ("payload", "result", "checkpoint", "progress_message"),
    "JobOptions": ("headers",),
    "JobError": ("message", "stack", "details"),
    "Phase": ("message", "result"),
    "JobRun": ("payloads", "header_columns"),
    "NewJob": ("data", "text"),
    "FlowNode": ("result",),
    "WaitResponse": ("result", "partial"),
    "Event": ("error_message", "message", "partial"),
}
# Fields of the request of an operation: headers of scheduled jobs, and conditions on contents.
CONTENTS_ASKED = ("headers", "error_contains")


def clear(message: Any) -> None:
    """Clears the contents of a message, and of those in it."""
    for name in CONTENTS.get(message.DESCRIPTOR.name, ()):
        message.ClearField(name)
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        for one in value if field.is_repeated else (value,):
            if one.DESCRIPTOR.name in _WITH_CONTENTS:
                clear(one)


_WITH_CONTENTS = frozenset({*CONTENTS, "Attempt", "ScheduleSettings", "Schedule", "EventRun"})


def show_job(ask: Ask, reply: Any) -> Any:
    """Shows one job."""
    if not ask.caller.may(READ_PAYLOAD, reply.job.queue):
        clear(reply.job)
    return reply


def show_jobs(ask: Ask, reply: Any) -> Any:
    """Shows a page of jobs, which may be bytes."""
    if ask.caller.may_all(READ_PAYLOAD):
        return reply
    if isinstance(reply, bytes):
        reply = job_admin_service_pb2.ListJobsResponse.FromString(reply)
    for job in reply.jobs:
        if not ask.caller.may(READ_PAYLOAD, job.queue):
            clear(job)
    for run in getattr(reply, "runs", ()):
        if not ask.caller.may(READ_PAYLOAD, run.shared.queue):
            clear(run)
    return reply


def show_flow(ask: Ask, reply: Any) -> Any:
    """Shows the jobs of a flow that are in queues which the caller may read."""
    seen = [node for node in reply.jobs if ask.caller.may(READ, node.queue)]
    for node in seen:
        if not ask.caller.may(READ_PAYLOAD, node.queue):
            clear(node)
    if len(seen) < len(reply.jobs):
        nodes = [type(node).FromString(node.SerializeToString()) for node in seen]
        del reply.jobs[:]
        reply.jobs.extend(nodes)
        reply.is_cut = True
    return reply


def show_waited(ask: Ask, reply: Any) -> Any:
    """Shows how a job ended, or a piece of its result. One that is left out is said to be: without
    it the caller would take the job for one that returned nothing.
    """
    if reply.id in ask.shut:
        is_hidden = bool(reply.result or reply.partial)
        clear(reply)
        reply.result_hidden = is_hidden
    return reply


def show_events(ask: Ask, reply: Any) -> Any:
    """Shows events."""
    if ask.caller.may_all(READ_PAYLOAD):
        return reply
    response = job_service_pb2.WatchResponse.FromString(reply)
    for event in response.events:
        if not ask.caller.may(READ_PAYLOAD, event.queue):
            clear(event)
    for run in response.runs:
        if not ask.caller.may(READ_PAYLOAD, run.shared.queue):
            clear(run)
    return response.SerializeToString()


def show_schedule(ask: Ask, reply: Any) -> Any:
    """Shows one schedule."""
    if not ask.caller.may(READ_PAYLOAD, reply.schedule.settings.queue):
        clear(reply.schedule)
    return reply


def show_schedules(ask: Ask, reply: Any) -> Any:
    """Shows a page of schedules."""
    for schedule in reply.schedules:
        if not ask.caller.may(READ_PAYLOAD, schedule.settings.queue):
            clear(schedule)
    return reply


def show_workers(ask: Ask, reply: Any) -> Any:
    """Shows workers, with those of their queues that the caller may read."""
    for worker in reply.workers:
        _keep(worker.queues, lambda queue: ask.caller.may(READ, queue.queue))
        _keep(worker.handlers, lambda handler: ask.caller.may(READ, handler.queue))
    return reply


def show_operations(ask: Ask, reply: Any) -> Any:
    """Shows a page of operations. Those on no queue may have been about the jobs of any."""
    if ask.caller.may_all(READ_PAYLOAD):
        return reply
    for operation in reply.operations:
        if not operation.queue or not ask.caller.may(READ_PAYLOAD, operation.queue):
            operation.request = without(operation.request, CONTENTS_ASKED)
    return reply


def show_hidden(ask: Ask, reply: Any) -> Any:
    """Adds the jobs that are none for the caller to those that were not found."""
    reply.not_found_ids.extend(ask.hidden)
    return reply


def _keep(items: Any, is_kept: Callable[[Any], bool]) -> None:
    """Removes from a repeated field what is not kept."""
    for at in reversed(range(len(items))):
        if not is_kept(items[at]):
            del items[at]

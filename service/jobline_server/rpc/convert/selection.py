"""Converts what operators send: pages, filters and selections."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TypeVar

from jobline.v1 import dead_letter_service_pb2, job_admin_service_pb2
from jobline_server.engine import limits
from jobline_server.engine.commands import Refused
from jobline_server.engine.values import EndReason, JobState
from jobline_server.rpc import limits as rpc_limits
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.options import check_headers, check_tags
from jobline_server.runtime.views import JobFilter, Selection

E = TypeVar("E", bound=IntEnum)


def page_size(value: int, limit: int = rpc_limits.PAGE_SIZE_MAX) -> int:
    """Returns the size of a page; 0 takes the default."""
    if value == 0:
        return rpc_limits.PAGE_SIZE_DEFAULT
    return fields.integer(value, "page_size", 1, limit)


def optional_queue(value: str, field: str = "queue") -> str:
    """Returns a queue's name, or ""."""
    return fields.queue_name(value, field) if value else ""


def members(values: Iterable[int], field: str, kinds: type[E]) -> frozenset[E]:
    """Returns a set of enum members; refuses unset ones too."""
    found = []
    for index, value in enumerate(values):
        known = fields.enum_member(value, f"{field}[{index}]", kinds)
        if known is None:
            raise fields.invalid(f"{field}[{index}]", "is not a known value")
        found.append(known)
    return frozenset(found)


def job_filter(message: job_admin_service_pb2.JobFilter) -> JobFilter:
    """Returns the value of a JobFilter."""
    try:
        check_headers(message.headers, "headers")
        return JobFilter(
            queue=optional_queue(message.queue),
            name=_name(message),
            states=members(message.states, "states", JobState),
            pushed_after_ms=fields.moment_ms(message.pushed_after, "pushed_after")
            if message.HasField("pushed_after")
            else None,
            pushed_before_ms=fields.moment_ms(message.pushed_before, "pushed_before")
            if message.HasField("pushed_before")
            else None,
            headers=tuple(sorted(message.headers.items())),
            error_type=_error_text(message.error_type, "error_type"),
            error_contains=_error_text(message.error_contains, "error_contains"),
            group=_group(message),
            tags=_tags(message),
            batches=frozenset([message.batch_id]) if message.batch_id else frozenset(),
        )
    except Refused as refused:
        raise fields.within("filter", refused) from None


def dead_filter(message: dead_letter_service_pb2.DeadFilter) -> JobFilter:
    """Returns the value of a DeadFilter."""
    try:
        return JobFilter(
            queue=optional_queue(message.queue),
            name=_name(message),
            states=frozenset({JobState.DEAD}),
            reasons=members(message.reasons, "reasons", EndReason),
            ended_after_ms=fields.moment_ms(message.dead_after, "dead_after")
            if message.HasField("dead_after")
            else None,
            ended_before_ms=fields.moment_ms(message.dead_before, "dead_before")
            if message.HasField("dead_before")
            else None,
            error_type=_error_text(message.error_type, "error_type"),
            error_contains=_error_text(message.error_contains, "error_contains"),
            group=_group(message),
            tags=_tags(message),
        )
    except Refused as refused:
        raise fields.within("filter", refused) from None


def dead_selection(request: dead_letter_service_pb2.PurgeDeadJobsRequest) -> Selection:
    """Returns the dead jobs to delete; all of them only with `all: true`."""
    chosen = dead_filter(request.filter)
    if chosen == ANY_DEAD and not request.all:
        raise fields.invalid("all", "a filter without conditions needs all: true")
    return Selection(filter=chosen)


ANY_DEAD = JobFilter(states=frozenset({JobState.DEAD}))


def selection(message: job_admin_service_pb2.JobSelection) -> Selection:
    """Returns the selected jobs, by id or by filter; all of them only with `all: true`."""
    try:
        if message.ids:
            if message.HasField("filter") or message.all:
                raise fields.invalid("ids", "either ids or a filter")
            return Selection(ids=tuple(message.ids))
        if not message.HasField("filter") and not message.all:
            raise fields.invalid("", "ids, a filter or all: true are required")
        chosen = job_filter(message.filter)
        if chosen.is_empty() and not message.all:
            raise fields.invalid("all", "a filter without conditions needs all: true")
        return Selection(filter=chosen)
    except Refused as refused:
        raise fields.within("jobs", refused) from None


def _group(
    message: job_admin_service_pb2.JobFilter | dead_letter_service_pb2.DeadFilter,
) -> str:
    return fields.single_line(message.group, "group", limits.NAME_CHARACTERS_MAX)


def _name(
    message: job_admin_service_pb2.JobFilter | dead_letter_service_pb2.DeadFilter,
) -> str | None:
    if not message.HasField("name"):
        return None
    return fields.single_line(message.name, "name", limits.NAME_CHARACTERS_MAX)


def _tags(
    message: job_admin_service_pb2.JobFilter | dead_letter_service_pb2.DeadFilter,
) -> frozenset[str]:
    check_tags(message.tags, "tags")
    return frozenset(message.tags)


def _error_text(value: str, field: str) -> str:
    return fields.single_line(value, field, limits.REASON_CHARACTERS_MAX)

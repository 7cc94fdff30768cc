"""Checks calls on schedules. A schedule belongs to the queue that it pushes to."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from jobline_server.auth.grants import MANAGE, READ
from jobline_server.engine.commands import Refused
from jobline_server.engine.decide.schedules import schedule_not_found
from jobline_server.rpc.access.asking import Ask, Denied
from jobline_server.rpc.access.checks import Check
from jobline_server.rpc.access.push_checks import need_ties


def create_schedule(ask: Ask, request: Any) -> Awaitable[Any] | None:
    """Checks the queue of a new schedule, and that of the one whose place it takes."""
    ask.need(MANAGE, request.settings.queue)
    queue = _queue_of_schedule(ask, request.schedule)
    if queue is not None and request.upsert and not ask.caller.may(MANAGE, queue):
        raise Denied(MANAGE, "", ask.caller.principal)
    return need_ties(ask, [request.settings.job.options])


def needs_schedule(verb: str) -> Check:
    """Returns the check of calls on one stored schedule."""

    def check(ask: Ask, request: Any) -> Awaitable[Any] | None:
        need_schedule(ask, verb, request.schedule)
        settings = getattr(request, "settings", None)
        if settings is None:
            return None
        if settings.queue:
            ask.need(verb, settings.queue)
        return need_ties(ask, [settings.job.options])

    return check


def preview(ask: Ask, request: Any) -> None:
    """Checks a preview: of a stored schedule, or of settings that the caller brings."""
    if request.schedule:
        need_schedule(ask, READ, request.schedule)


def need_schedule(ask: Ask, verb: str, name: str) -> None:
    """Raises `Refused` unless there is a schedule that the caller sees, and may do this to."""
    if ask.caller.may_all(verb):
        return
    queue = _queue_of_schedule(ask, name)
    if queue is None or not ask.sees(verb, queue):
        raise schedule_not_found(name)
    ask.need(verb, queue)


def _queue_of_schedule(ask: Ask, name: str) -> str | None:
    try:
        return ask.runtime.schedules.get_schedule(name).settings.queue
    except Refused:
        return None

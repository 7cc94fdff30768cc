"""Checks requests: what kind of request needs which verb, and for which queues.

A check runs before the handler checks the request's form, so it takes any values. It raises what
the caller gets. One that looks up stored jobs is a coroutine; what it returns, if anything, is the
reply.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from jobline_server.auth.grants import MANAGE, READ, READ_PAYLOAD
from jobline_server.rpc.access.asking import Ask
from jobline_server.rpc.convert import scaler

Check = Callable[[Ask, Any], Awaitable[Any] | None]
"""Checks a request; returns None, or what is to be awaited."""


def anybody(_ask: Ask, _request: Any) -> None:
    """Lets any authenticated caller pass."""


def needs_all(verb: str) -> Check:
    """Returns the check of calls that concern all queues, or none."""

    def check(ask: Ask, _request: Any) -> None:
        ask.need_all(verb)

    return check


def needs_queue(verb: str) -> Check:
    """Returns the check of calls on one queue."""

    def check(ask: Ask, request: Any) -> None:
        ask.need(verb, request.queue)

    return check


def needs_scaled(verb: str) -> Check:
    """Returns the check of calls by KEDA, whose metadata name the queue."""

    def check(ask: Ask, request: Any) -> None:
        scaled = getattr(request, "scaledObjectRef", request)
        ask.need(verb, scaler.given_in(scaled.scalerMetadata).get(scaler.QUEUE, ""))

    return check


def needs_filter(verb: str) -> Check:
    """Returns the check of calls on the jobs of a filter."""

    def check(ask: Ask, request: Any) -> None:
        need_filter(ask, verb, request.filter)

    return check


def need_filter(ask: Ask, verb: str, chosen: Any) -> None:
    """Checks a filter. Conditions on contents would tell them, by and by."""
    ask.need(verb, chosen.queue)
    if chosen.error_contains or getattr(chosen, "headers", None):
        ask.need(READ_PAYLOAD, chosen.queue)


def needs_job(verb: str) -> Check:
    """Returns the check of calls on one stored job."""

    async def check(ask: Ask, request: Any) -> None:
        await ask.need_job(verb, request.id)

    return check


def needs_selection(response: type[Any]) -> Check:
    """Returns the check of changes to jobs by ids or by a filter; `response` is their reply."""

    def check(ask: Ask, request: Any) -> Awaitable[Any] | None:
        selection = request.jobs
        if getattr(request, "below", False):
            # Those that wait below a job are in any queues.
            ask.need_all(MANAGE)
        if selection.ids:
            return None if ask.caller.may_all(MANAGE) else by_ids(ask, selection)
        need_filter(ask, MANAGE, selection.filter)
        return None

    async def by_ids(ask: Ask, selection: Any) -> Any:
        seen = await ask.hide(MANAGE, selection.ids)
        if not seen:
            return response(not_found_ids=ask.hidden)
        selection.ids[:] = seen
        return None

    return check


def get_job(ask: Ask, request: Any) -> Awaitable[Any] | None:
    """Checks a look-up by id or by a key."""
    kind = request.WhichOneof("job")
    if kind == "id":
        return ask.need_job(READ, request.id)
    ask.need(READ, getattr(request, kind).queue if kind else "")
    return None


def forget_key(ask: Ask, request: Any) -> None:
    """Checks the queue of a key."""
    kind = request.WhichOneof("key")
    ask.need(MANAGE, getattr(request, kind).queue if kind else "")

"""Checks requests: what kind of request needs which verb, and for which queues.

A check runs before the handler checks the request's form, so it takes any values. It raises what
the caller gets. One that looks up stored jobs is a coroutine; what it returns, if anything, is the
reply.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobline_server.auth.grants import MANAGE, PUSH, READ, READ_PAYLOAD, WORK
from jobline_server.engine.commands import Refused
from jobline_server.engine.decide.batch_members import not_found as no_batch
from jobline_server.engine.decide.schedules import schedule_not_found
from jobline_server.rpc.access.asking import Ask, Denied, check_count

Check = Callable[[Ask, Any], Awaitable[Any] | None]
"""Checks a request; returns None, or what is to be awaited."""

# The last id of a shard, which is never given out: in the place of jobs that are none for a caller.
NO_JOB = (1 << 43) - 1


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


# Pushes.


def push(ask: Ask, request: Any) -> Awaitable[Any] | None:
    """Checks a push: its queue, and the jobs and batches that its jobs name."""
    ask.need(PUSH, request.queue)
    if ask.caller.may_all(PUSH) and ask.caller.may_all(READ):
        return None
    return need_ties(ask, _options_of(request.options, request.jobs))


def _options_of(shared: Any, jobs: Iterable[Any]) -> Iterator[Any]:
    yield shared
    for job in jobs:
        if job.HasField("options"):
            yield job.options


def need_ties(ask: Ask, options: Iterable[Any]) -> Awaitable[Any] | None:
    """Checks which jobs and batches some options name."""
    parents: dict[int, None] = {}
    batches: dict[int, None] = {}
    for one in options:
        parents.update(dict.fromkeys(one.depends_on))
        if one.batch_id:
            batches[one.batch_id] = None
    for batch_id in batches:
        need_batch(ask, PUSH, batch_id, "options.batch_id")
    return ask.need_parents(parents) if parents else None


def push_flow(ask: Ask, request: Any) -> Awaitable[Any] | None:
    """Checks a flow: the queues of its jobs, and the job that it is pushed below."""
    for queue in dict.fromkeys(job.queue for job in request.jobs):
        ask.need(PUSH, queue)
    options = [flow.job.options for flow in request.jobs]
    if not request.HasField("parent"):
        return need_ties(ask, options)

    async def check() -> None:
        await ask.need_job(WORK, request.parent.id, "parent.id")
        ties = need_ties(ask, options)
        if ties is not None:
            await ties

    return check()


def create_batch(ask: Ask, request: Any) -> None:
    """Checks a batch: it belongs to the queues of its callbacks; without any it is the server's."""
    queues = [
        getattr(request, name).queue
        for name in ("on_success", "on_complete", "on_first_death")
        if request.HasField(name)
    ]
    for queue in queues or [""]:
        ask.need(PUSH, queue)
    if request.parent_id:
        need_batch(ask, PUSH, request.parent_id, "parent_id")


def needs_batch(verb: str) -> Check:
    """Returns the check of calls on one batch."""

    def check(ask: Ask, request: Any) -> None:
        need_batch(ask, verb, request.id, "id")

    return check


def need_batch(ask: Ask, verb: str, batch_id: int, field: str) -> None:
    """Raises `Refused` unless there is a batch that the caller may do this to."""
    if ask.caller.may_all(verb):
        return
    spec = ask.runtime.batches.get_batch(batch_id).spec
    callbacks = [one for one in (spec.on_success, spec.on_complete, spec.on_first_death) if one]
    if not callbacks or not all(ask.caller.may(verb, one.queue) for one in callbacks):
        raise no_batch(batch_id, field)


# Work.


def pull(ask: Ask, request: Any) -> None:
    """Checks the queues of a pull."""
    for wanted in request.queues:
        ask.need(WORK, wanted.queue)


def settle(ask: Ask, request: Any) -> Awaitable[None] | None:
    """Hides jobs of other queues from an ack, a release, a fail or an extend."""
    if ask.caller.may_all(WORK):
        return None
    ids = getattr(request, "ids", None)
    return hide_leases(ask, [] if ids is None else [ids], [request.items])


def release(ask: Ask, request: Any) -> Awaitable[None] | None:
    """Checks a release, which may name a pull."""
    if request.HasField("pull"):
        pull(ask, request.pull)
    return settle(ask, request)


def hide_leases(ask: Ask, columns: Sequence[Any], tables: Sequence[Any]) -> Awaitable[None] | None:
    """Puts an id that no job has in the place of each job whose queue the caller may not work on.
    `columns` are lists of ids, `tables` lists of items that have one. Jobs that have ended, which
    are few, have to be looked up.
    """
    live = ask.runtime.job_queues.live
    ids = {job_id for column in columns for job_id in column}
    ids.update(item.id for table in tables for item in table)
    check_count(ids)
    queues = {job_id: live(job_id) for job_id in ids}
    ended = [job_id for job_id, queue in queues.items() if queue is None]
    if not ended:
        _hide(ask, queues, columns, tables)
        return None

    async def look_up() -> None:
        _hide(ask, queues | await ask.runtime.job_queues.find(ended), columns, tables)

    return look_up()


def _hide(
    ask: Ask,
    queues: Mapping[int, str | None],
    columns: Sequence[Any],
    tables: Sequence[Any],
) -> None:
    strange = {
        job_id
        for job_id, queue in queues.items()
        if queue is not None and not ask.caller.may(WORK, queue)
    }
    if not strange:
        return
    for column in columns:
        for at, job_id in enumerate(column):
            if job_id in strange:
                column[at] = job_id | NO_JOB
    for table in tables:
        for item in table:
            if item.id in strange:
                item.id |= NO_JOB


def stream_frame(ask: Ask, request: Any) -> Awaitable[None] | None:
    """Checks a frame of a worker: its queues, and the jobs that it settles."""
    if request.HasField("open"):
        for one in (*request.open.queues, *request.open.handlers):
            ask.need(WORK, one.queue)
    if ask.caller.may_all(WORK):
        return None
    settles = request.settles
    tables = [table for one in settles for table in (one.acks, one.fails, one.releases)]
    columns = [one.ack_ids for one in settles]
    return hide_leases(ask, columns, [*tables, request.extends, request.logs])


async def wait(ask: Ask, request: Any) -> None:
    """Checks which jobs a wait is for: those that are none for the caller are not found."""
    seen = await ask.hide(READ, request.ids)
    if ask.hidden:
        ask.is_answered = not seen
        request.ids[:] = seen
    if not ask.caller.may_all(READ_PAYLOAD):
        queues = await ask.runtime.job_queues.find(seen)
        may = ask.caller.may
        ask.shut = frozenset(
            job_id for job_id in seen if not may(READ_PAYLOAD, queues.get(job_id, ""))
        )


def watch(ask: Ask, request: Any) -> Awaitable[Any] | None:
    """Checks what is watched: a job, queues, or all queues."""
    for queue in request.queues:
        ask.need(READ, queue)
    if request.job_id:
        return ask.need_job(READ, request.job_id, "job_id")
    if not request.queues:
        ask.need_all(READ)
    return None


# Schedules.


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

"""Checks the calls of workers, and of those who wait for jobs or watch them."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from jobline_server.auth.grants import READ, WORK
from jobline_server.engine import limits
from jobline_server.rpc import limits as rpc_limits
from jobline_server.rpc.access.asking import Ask, check_count
from jobline_server.rpc.validate import fields

# The last id of a shard, which is never given out: in the place of jobs that are none for a caller.
NO_JOB = (1 << 43) - 1


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
        queues = request.pull.queues
        fields.at_most(queues, "pull.queues", limits.QUEUES_PER_CONSUMER_MAX)
        pull(ask, request.pull)
    return settle(ask, request)


def hide_leases(ask: Ask, columns: Sequence[Any], tables: Sequence[Any]) -> Awaitable[None] | None:
    """Puts an id that no job has in the place of each job whose queue the caller may not work on.
    `columns` are lists of ids, `tables` lists of items that have one. Jobs that have ended, which
    are few, have to be looked up.
    """
    check_count(sum(map(len, columns)) + sum(map(len, tables)))
    live = ask.runtime.job_queues.live
    ids = {job_id for column in columns for job_id in column}
    ids.update(item.id for table in tables for item in table)
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
        opening = request.open
        fields.at_most(opening.queues, "open.queues", limits.QUEUES_PER_CONSUMER_MAX)
        fields.at_most(opening.handlers, "open.handlers", rpc_limits.HANDLERS_MAX)
        for one in (*opening.queues, *opening.handlers):
            ask.need(WORK, one.queue)
    if ask.caller.may_all(WORK):
        return None
    settles = request.settles
    fields.at_most(settles, "settles", rpc_limits.FRAME_SETTLES_MAX)
    tables = [table for one in settles for table in (one.acks, one.fails, one.releases)]
    columns = [one.ack_ids for one in settles]
    return hide_leases(ask, columns, [*tables, request.extends, request.logs])


async def wait(ask: Ask, request: Any) -> None:
    """Checks which jobs a wait is for: those that are none for the caller are not found."""
    seen = await ask.hide(READ, request.ids)
    if ask.hidden:
        ask.is_answered = not seen
        request.ids[:] = seen
    await ask.wait_for(seen)


def watch(ask: Ask, request: Any) -> Awaitable[Any] | None:
    """Checks what is watched: a job, queues, or all queues."""
    for queue in request.queues:
        ask.need(READ, queue)
    if request.job_id:
        return ask.need_job(READ, request.job_id, "job_id")
    if not request.queues:
        ask.need_all(READ)
    return None

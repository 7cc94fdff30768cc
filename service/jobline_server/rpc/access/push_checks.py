"""Checks pushes: their queues, and the jobs and batches that they name. A batch belongs to the
queues of its callbacks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator
from typing import Any

from jobline_server.auth.grants import PUSH, READ, WORK
from jobline_server.engine import limits
from jobline_server.engine.decide.batch_members import not_found as no_batch
from jobline_server.rpc import limits as rpc_limits
from jobline_server.rpc.access.asking import Ask
from jobline_server.rpc.access.checks import Check
from jobline_server.rpc.validate import fields

# All that the jobs of a push name, and its shared options once more.
TIES_MAX = limits.PUSH_PARENTS_MAX + limits.PARENTS_MAX


def push(ask: Ask, request: Any) -> Awaitable[Any] | None:
    """Checks a push: its queue, and the jobs and batches that its jobs name."""
    ask.need(PUSH, request.queue)
    if ask.caller.may_all(PUSH) and ask.caller.may_all(READ):
        return None
    fields.at_most(request.jobs, "jobs", limits.PUSH_JOBS_MAX)
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
    count = 0
    for one in options:
        fields.at_most(one.depends_on, "options.depends_on", limits.PARENTS_MAX)
        count += len(one.depends_on)
        if count > TIES_MAX:
            why = f"the jobs of a push depend on at most {limits.PUSH_PARENTS_MAX} jobs together"
            raise fields.too_large("jobs", why)
        parents.update(dict.fromkeys(one.depends_on))
        if one.batch_id:
            batches[one.batch_id] = None
    for batch_id in batches:
        need_batch(ask, PUSH, batch_id, "options.batch_id")
    return ask.need_parents(parents) if parents else None


def push_flow(ask: Ask, request: Any) -> Awaitable[Any] | None:
    """Checks a flow: the queues of its jobs, and the job that it is pushed below."""
    fields.at_most(request.jobs, "jobs", rpc_limits.FLOW_JOBS_MAX)
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

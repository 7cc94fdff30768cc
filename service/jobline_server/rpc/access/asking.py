"""Asks whether the caller of one call may do what it asks for."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Sequence

import grpc

from jobline_server.auth.grants import EVERY, READ, READ_PAYLOAD, Caller
from jobline_server.auth.refused import Reason
from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.rpc.errors import StatusError, make_status
from jobline_server.rpc.validate.fields import QUEUE_NAME
from jobline_server.runtime.runtime import Runtime

# Ids that are looked up for a caller who may not see all queues; no call takes more.
LOOKUP_IDS_MAX = max(limits.SETTLE_ITEMS_MAX, 10_000)


class Denied(StatusError):
    """The caller is known, and may not do this."""

    def __init__(self, verb: str, queue: str, principal: str) -> None:
        self.verb = verb
        # What was sent may be no name at all.
        self.queue = queue if QUEUE_NAME.fullmatch(queue) else EVERY if queue == EVERY else ""
        where = "all queues" if self.queue == EVERY else f"queue {self.queue or '(no name)'}"
        if self.queue == EVERY:
            where += "; where the call takes a queue, name one"
        super().__init__(
            make_status(
                grpc.StatusCode.PERMISSION_DENIED,
                Reason.NOT_ALLOWED,
                f"{principal} has no role with the verb {verb} for {where}",
                metadata={"verb": verb, "queue": self.queue},
            )
        )


class Ask:
    """Asks for one call. `hidden`: ids that it named of jobs that are none for its caller.
    `needed`: what a call that stays open was asked for, to ask again; None for others.
    """

    __slots__ = ("caller", "hidden", "is_answered", "needed", "runtime", "shut", "waited")

    def __init__(self, caller: Caller, runtime: Runtime, *, is_long: bool = False) -> None:
        self.caller = caller
        self.runtime = runtime
        self.hidden: list[int] = []
        self.is_answered = False
        self.needed: set[tuple[str, str]] | None = set() if is_long else None
        self.shut: frozenset[int] = frozenset()
        """Ids of jobs whose contents a call that waits for them may not show."""
        self.waited: Sequence[int] = ()
        """The ids that a call waits for."""

    async def wait_for(self, ids: Sequence[int]) -> None:
        """Notes the jobs that the call waits for, and looks whose contents it may show."""
        self.waited = array("Q", ids)
        if self.caller.may_all(READ_PAYLOAD):
            return
        queues, may = await self.runtime.job_queues.find(ids), self.caller.may
        self.shut = frozenset(
            job_id for job_id in ids if not may(READ_PAYLOAD, queues.get(job_id, ""))
        )

    def need(self, verb: str, queue: str) -> None:
        """Raises `Denied` unless the caller may do this to a queue; one without a name is all."""
        if not queue:
            self.need_all(verb)
        elif not self.caller.may(verb, queue):
            raise Denied(verb, queue, self.caller.principal)
        elif self.needed is not None:
            self.needed.add((verb, queue))

    def need_all(self, verb: str) -> None:
        """Raises `Denied` unless the caller may do this to all queues, and to the server."""
        if not self.caller.may_all(verb):
            raise Denied(verb, EVERY, self.caller.principal)
        if self.needed is not None:
            self.needed.add((verb, ""))

    def again(self, caller: Caller) -> None:
        """Asks again for what the call was asked, for its caller as it is known now."""
        self.caller = caller
        for verb, queue in self.needed or ():
            self.need(verb, queue)
        if self.waited:
            self.shut = frozenset(filter(self._is_shut, self.waited))

    def _is_shut(self, job_id: int) -> bool:
        """Returns whether the contents of a job may not be shown now. Of one that has ended, what
        was so then holds.
        """
        if self.caller.may_all(READ_PAYLOAD):
            return False
        queue = self.runtime.job_queues.live(job_id)
        return job_id in self.shut if queue is None else not self.caller.may(READ_PAYLOAD, queue)

    def sees(self, verb: str, queue: str | None) -> bool:
        """Returns whether the caller may know that something of a queue exists."""
        return queue is not None and (self.caller.may(verb, queue) or self.caller.may(READ, queue))

    async def need_job(self, verb: str, job_id: int, field: str = "id") -> None:
        """Raises `Denied` unless the caller may do this to a job's queue; `Refused` if there is no
        job, or none that it sees.
        """
        if self.caller.may_all(verb) or not job_id:
            self._note_all(verb)
            return
        queue = (await self.runtime.job_queues.find([job_id])).get(job_id)
        if queue is None or not self.sees(verb, queue):
            message = f"there is no job {job_id}"
            raise Refused(RefusalKind.JOB_NOT_FOUND, message, field=field)
        self.need(verb, queue)

    def _note_all(self, verb: str) -> None:
        if self.needed is not None:
            self.needed.add((verb, ""))

    async def hide(self, verb: str, ids: Collection[int]) -> list[int]:
        """Returns the jobs among these that the caller sees, and keeps the others as `hidden`.
        Raises `Denied` for one that it sees and may not do this to.
        """
        if self.caller.may_all(verb):
            self._note_all(verb)
            return list(ids)
        check_count(len(ids))
        queues = await self.runtime.job_queues.find(ids)
        seen = [job_id for job_id in ids if self.sees(verb, queues.get(job_id))]
        for queue in dict.fromkeys(queues[job_id] for job_id in seen):
            self.need(verb, queue)
        known = set(seen)
        self.hidden = [job_id for job_id in dict.fromkeys(ids) if job_id not in known]
        return seen

    async def need_parents(self, ids: Iterable[int]) -> None:
        """Raises `Refused` unless all of these are jobs that the caller may read: a job that
        depends on another learns how that one ends.
        """
        if self.caller.may_all(READ):
            return
        parents = dict.fromkeys(ids)
        check_count(len(parents))
        queues = await self.runtime.job_queues.find(parents)
        for job_id in parents:
            queue = queues.get(job_id)
            if queue is None or not self.caller.may(READ, queue):
                message = f"there is no job {job_id}, on which a job of this push depends"
                raise Refused(RefusalKind.JOB_NOT_FOUND, message, field="depends_on")


def check_count(ids: int) -> None:
    """Refuses more ids than any call takes, before they are read and looked up."""
    if ids > LOOKUP_IDS_MAX:
        message = f"at most {LOOKUP_IDS_MAX} ids in one call"
        raise Refused(RefusalKind.TOO_LARGE, message, field="ids")

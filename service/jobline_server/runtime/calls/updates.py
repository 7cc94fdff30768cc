"""Updates: changes of single jobs that wait, and of keys."""

from __future__ import annotations

from collections.abc import Callable

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.update import (
    JobChange,
    decide_forget_key,
    decide_forget_unique_key,
    decide_update,
    wrong_state,
)
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import Now
from jobline_server.runtime.calls.operations import Operations, Target
from jobline_server.runtime.calls.payload_checks import PayloadChecks
from jobline_server.runtime.core import Core
from jobline_server.runtime.queries.job_queries import JobQueries
from jobline_server.runtime.views import NO_AUDIT, Audit, JobView

DecideForget = Callable[[Shard, Now, str, str], int]


class Updates:
    """Changes jobs one by one, and forgets keys."""

    def __init__(
        self, core: Core, queries: JobQueries, checks: PayloadChecks, operations: Operations
    ) -> None:
        self._core = core
        self._operations = operations
        self._checks = checks
        self._queries = queries

    async def update_job(self, job_id: int, change: JobChange, audit: Audit = NO_AUDIT) -> JobView:
        """Changes a job that waits, and returns it as it was right after that, when the change is
        on disk. Raises `Refused` with JOB_NOT_FOUND, with WRONG_STATE, if there is no room for its
        larger payload, or if its queue would refuse a push of it.
        """
        slot = self._core.slots.of_id(job_id)
        if slot is None or slot.shard.state_of(job_id) is None:
            view = await self._queries.get_job(job_id)
            raise wrong_state(job_id, f"is {view.state.name}")
        if change.payload is not None:
            self._core.check_accepting(slot, 0)
            owner = slot.shard.jobs.find(job_id) or slot.shard.lots.find(job_id)
            if owner is not None:
                self._checks.check_update(owner.queue, owner.options.name, change.payload)
        decide_update(slot.shard, self._core.now(), job_id, change)
        view_now = self._queries.live(job_id)
        target = Target("" if view_now is None else view_now.queue)
        self._operations.record(slot, audit, target, count=1)
        self._core.after_decision(slot)
        await self._core.commits.wait(slot)
        if view_now is None:  # pragma: no cover  # a job that was changed is live
            raise Refused(RefusalKind.JOB_NOT_FOUND, f"there is no job {job_id}", field="id")
        return view_now

    async def forget_key(self, queue: str, key: str, audit: Audit = NO_AUDIT) -> int:
        """Forgets a job key; returns the id of the job that it named, when that is on disk. Raises
        `Refused` with JOB_NOT_FOUND.
        """
        return await self._forget(decide_forget_key, queue, key, audit)

    async def forget_unique_key(self, queue: str, key: str, audit: Audit = NO_AUDIT) -> int:
        """Takes a unique key from the job that holds it; returns its id, when that is on disk.
        Raises `Refused` with JOB_NOT_FOUND.
        """
        return await self._forget(decide_forget_unique_key, queue, key, audit)

    async def _forget(self, decide: DecideForget, queue: str, key: str, audit: Audit) -> int:
        slot = self._core.slots.of_queue(queue)
        job_id = decide(slot.shard, self._core.now(), queue, key)
        self._operations.record(slot, audit, Target(queue))
        self._core.after_decision(slot)
        await self._core.commits.wait(slot)
        return job_id

"""Finds the queues of jobs by their ids, for those who must know whether they may see them. The
queue of a job never changes.
"""

from __future__ import annotations

from collections.abc import Collection

from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.ended_jobs import EndedJobs


class JobQueues:
    """Looks up queues of live and of ended jobs."""

    def __init__(self, core: Core, ended: EndedJobs) -> None:
        self._core = core
        self._ended = ended

    def live(self, job_id: int) -> str | None:
        """Returns the queue of a live job, or None."""
        slot = self._core.slots.find_by_id(job_id)
        if slot is None or slot.shard.state_of(job_id) is None:
            return None
        owner = slot.shard.jobs.find(job_id) or slot.shard.lots.find(job_id)
        return None if owner is None else owner.queue.name

    async def find(self, ids: Collection[int]) -> dict[int, str]:
        """Returns the queues of jobs that are live, or have ended and are kept. Others are left
        out, and so are damaged ones, whose queue is not known.
        """
        found: dict[int, str] = {}
        ended: list[int] = []
        for job_id in ids:
            queue = self.live(job_id)
            if queue is None:
                ended.append(job_id)
            else:
                found[job_id] = queue
        if ended:
            # A job that ended just now is in no file, nor on its way to it, before the commit.
            await self._core.commits.wait()
            async for look in self._ended.look_up(ended):
                found.update((job_id, kept.record.queue) for job_id, kept in look.kept.items())
        # One that was retried meanwhile was in neither place.
        for job_id in ended:
            if job_id not in found and (queue := self.live(job_id)) is not None:
                found[job_id] = queue
        return found

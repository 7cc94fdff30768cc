"""Looks at flows: a job, the jobs that it waits for or has waited for, and so on.

Each job knows those that it was pushed to wait for, live or ended, so nothing else is kept of a
flow: the look goes from job to job, one level after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.values import EndReason, JobState
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.damage import damaged
from jobline_server.runtime.ended.ended_jobs import EndedJobs, view_of
from jobline_server.runtime.pace import Pace
from jobline_server.runtime.queries.job_queries import JobQueries
from jobline_server.runtime.views import JobView

# Children that a look shows in all: a message of less than a megabyte.
CHILDREN_MAX = 100_000
# Results that a look returns in all; the others are read one by one.
RESULT_BYTES_MAX = 1 << 20
# Jobs that are looked at between two looks at the time.
SLICE_JOBS = 50
# Jobs that are written in one step, some microseconds each.
WRITTEN_JOBS = 500


@dataclass(frozen=True, slots=True)
class FlowNode:
    """A job of a flow: no more of it than a look shows, for there may be ten thousand. `state` is
    None if the job is not kept any more; of a STALE one, it is how it ended.
    """

    id: int
    queue: str = ""
    name: str = ""
    state: JobState | None = None
    reason: EndReason = EndReason.NONE
    children: tuple[int, ...] = ()
    result: bytes = b""
    result_bytes: int = 0


@dataclass(slots=True)
class FlowView:
    """What a look at a flow has found: jobs by id, in its order; `is_cut` if there are more."""

    jobs: dict[int, FlowNode] = field(default_factory=dict)
    is_cut: bool = False

    async def in_slices(self) -> AsyncIterator[list[FlowNode]]:
        """Yields all jobs, some at a time, with the loop free in between."""
        nodes = list(self.jobs.values())
        for start in range(0, len(nodes), WRITTEN_JOBS):
            yield nodes[start : start + WRITTEN_JOBS]
            await asyncio.sleep(0)


class FlowQueries:
    """Reads flows."""

    def __init__(self, core: Core, jobs: JobQueries, ended: EndedJobs) -> None:
        self._core = core
        self._jobs = jobs
        self._ended = ended

    async def get_flow(
        self, job_id: int, *, jobs_max: int, depth_max: int, with_results: bool
    ) -> FlowView:
        """Returns a job and those below it, level by level. Raises `Refused` with JOB_NOT_FOUND,
        DATA_LOSS or SHARD_UNAVAILABLE.
        """
        look = _Look(RESULT_BYTES_MAX if with_results else 0)
        flow, level, children = FlowView(), [job_id], 0
        for _ in range(depth_max + 1):
            below: dict[int, None] = {}
            found = await self._nodes(level, look)
            for at, one in enumerate(level, 1):
                if at % SLICE_JOBS == 0:
                    await asyncio.sleep(0)
                node = found.get(one) or FlowNode(one)
                children += len(node.children)
                if children > CHILDREN_MAX:
                    flow.is_cut = True
                    return flow
                flow.jobs[one] = node
                below |= dict.fromkeys(node.children)
            if flow.jobs[job_id].state is None:
                raise Refused(RefusalKind.JOB_NOT_FOUND, f"there is no job {job_id}", field="id")
            level = [one for one in below if one not in flow.jobs]
            room = jobs_max - len(flow.jobs)
            if len(level) > room:
                flow.is_cut, level = True, level[:room]
            if not level:
                return flow
        flow.is_cut = True
        return flow

    async def _nodes(self, ids: Sequence[int], look: _Look) -> dict[int, FlowNode]:
        """Returns those of these jobs that are live or kept."""
        found: dict[int, FlowNode] = {}
        self._core.slots.check_here(ids)
        pace = Pace()
        for at, job_id in enumerate(ids, 1):
            live = self._jobs.live(job_id)
            if live is not None:
                found[job_id] = look.node_of(live)
            if at % SLICE_JOBS == 0:
                await pace.rest()
        rest = [job_id for job_id in ids if job_id not in found]
        if rest:
            # A job that ended just now is in no file, nor on its way to it, before the commit.
            await self._core.commits.wait()
            async for result in self._ended.look_up(rest):
                for job_id in result.damaged:
                    raise damaged(job_id)
                found |= {one: look.node_of(view_of(kept)) for one, kept in result.kept.items()}
        return found


class _Look:
    """One look, and the bytes of results that it may still return."""

    def __init__(self, room: int) -> None:
        self._room = room

    def node_of(self, view: JobView) -> FlowNode:
        """Returns what is shown of a job."""
        result = view.result if len(view.result) <= self._room else b""
        self._room -= len(result)
        return FlowNode(
            view.id,
            view.queue,
            view.options.name,
            view.stale_from or view.state,
            view.reason,
            view.ties.parents,
            result,
            len(view.result),
        )

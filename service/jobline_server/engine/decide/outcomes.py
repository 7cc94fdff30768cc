"""Outcomes: the states of jobs that are not live here, looked up before a verb decides.

The engine holds live jobs only. A verb that depends on others gets the known outcomes and raises
`OutcomesNeeded` before it emits anything if some are missing; the runtime looks them up and decides
again (`runtime/ended/outcomes.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from jobline_server.engine.values import JobState
from jobline_server.engine.view import ShardView

Outcomes = Mapping[int, JobState | None]
"""States of jobs that were looked up: ended ones, or live ones of other shards; None for a job that
is not kept or was never pushed.
"""

NO_OUTCOMES: Outcomes = MappingProxyType({})


class OutcomesNeeded(Exception):
    """Raised if a verb needs the outcomes of these jobs first. Nothing has changed."""

    def __init__(self, ids: Sequence[int]) -> None:
        super().__init__(f"what became of {len(ids)} jobs is not known")
        self.ids = ids


def states_of(
    shard: ShardView, ids: Sequence[int], outcomes: Outcomes
) -> dict[int, JobState | None]:
    """Returns the states of jobs: of live ones of this shard, otherwise from `outcomes`. Raises
    `OutcomesNeeded` for all that are in neither.
    """
    states: dict[int, JobState | None] = {}
    unknown: list[int] = []
    jobs, _ = shard.jobs.find_many(ids)
    for job_id, job in zip(ids, jobs, strict=True):
        state = shard.state_of(job_id) if job is None else job.state
        if state is None and job_id not in outcomes:
            unknown.append(job_id)
        states[job_id] = state or outcomes.get(job_id)
    if unknown:
        raise OutcomesNeeded(unknown)
    return states

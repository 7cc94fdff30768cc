"""What calls on many jobs do to a slice of them. Each verb decides and counts; the caller asks for
the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from jobline_server.engine import limits
from jobline_server.engine.decide.admin import (
    decide_cancel,
    decide_delete_ended,
    decide_delete_waiting,
    decide_promote,
    decide_retry,
)
from jobline_server.engine.decide.queues import decide_delete_active
from jobline_server.engine.room import fitting
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState
from jobline_server.runtime.calls.below import Below
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.ended_jobs import LookupResult
from jobline_server.runtime.views import BulkResult

_STALE = JobState.STALE


OnLive = Callable[[Shard, Sequence[int], BulkResult], Sequence[int]]
OnEnded = Callable[[Shard, LookupResult, BulkResult], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Verb:
    """What a call does, to jobs in these states: to live ones, and to ended ones that were looked
    up. Both return the ids that it was not done to. `below`: those below them are cancelled, too.
    """

    states: frozenset[JobState]
    on_live: OnLive | None
    on_ended: OnEnded | None
    notes_runs: bool = False
    below: Below | None = None


class BulkVerbs:
    """The verbs. Each returns the ids that it did nothing to."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def promote(self, shard: Shard, ids: Sequence[int], result: BulkResult) -> Sequence[int]:
        """Makes SCHEDULED jobs READY."""
        left = decide_promote(shard, self._core.now(), ids)
        result.count += len(ids) - len(left)
        return left

    def cancel(self, shard: Shard, ids: Sequence[int], result: BulkResult) -> Sequence[int]:
        """Cancels waiting jobs, and asks the workers of active ones to stop."""
        cancelled, requested, left = decide_cancel(shard, self._core.now(), ids, result.cancelled)
        result.count += cancelled
        result.requested += requested
        return left

    def retry(self, shard: Shard, look: LookupResult, result: BulkResult) -> Sequence[int]:
        """Puts back as many ended jobs as may wait."""
        fits, full = fitting(shard, [kept.record for kept in look.kept.values()])
        if full is not None:
            result.full = result.full or full
            room = limits.SELECTION_IDS_MAX - len(result.full_ids)
            result.full_ids += islice((i for i in look.kept if i not in fits), room)
        ended = [(look.kept[job_id].record, look.kept[job_id].state) for job_id in fits]
        stale = {one: kept.outcome for one, kept in look.kept.items() if kept.state is _STALE}
        left = decide_retry(shard, self._core.now(), ended, outcomes=stale)
        result.count += len(ended) - len(left)
        return [*left, *(one for one in look.ids if one not in fits)]

    def delete_waiting(self, shard: Shard, ids: Sequence[int], result: BulkResult) -> Sequence[int]:
        """Deletes waiting jobs."""
        count, left = decide_delete_waiting(shard, self._core.now(), ids)
        result.count += count
        return left

    def delete_live(self, shard: Shard, ids: Sequence[int], result: BulkResult) -> Sequence[int]:
        """Deletes live jobs, active ones too."""
        active = self.delete_waiting(shard, ids, result)
        result.count += decide_delete_active(shard, self._core.now(), active)
        return ()

    def delete_ended(self, shard: Shard, look: LookupResult, result: BulkResult) -> Sequence[int]:
        """Deletes ended jobs: a fact per queue and state."""
        left: list[int] = []
        chosen: dict[tuple[str, JobState], list[tuple[int, int]]] = {}
        for job_id in look.ids:
            kept = look.kept.get(job_id)
            if kept is None or shard.state_of(job_id) is not None:
                left.append(job_id)
                continue
            chosen.setdefault((kept.record.queue, kept.state), []).append((job_id, 1))
            result.count += 1
        for (queue, state), runs in chosen.items():
            decide_delete_ended(shard, self._core.now(), queue, state, runs)
        return left

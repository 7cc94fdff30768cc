"""Operators' calls on many jobs: promote, cancel, retry, delete, by id or by filter.

A filter is worked off in slices by id, each decided and committed as a whole, with the loop free
in between; a dry run walks the same way and only counts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from jobline_server.engine import limits
from jobline_server.engine.decide.admin import (
    decide_cancel,
    decide_delete_ended,
    decide_delete_waiting,
    decide_promote,
    decide_retry,
)
from jobline_server.engine.values import ENDED_STATES, JobState
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended import EndedJobs
from jobline_server.runtime.looking import Looking
from jobline_server.runtime.views import Audit, BulkResult, JobFilter, Selection

ENDED_OR_STALE = ENDED_STATES | {JobState.STALE}
LIVE = frozenset({JobState.SCHEDULED, JobState.BLOCKED, JobState.READY, JobState.ACTIVE})
DELETABLE = frozenset({JobState.SCHEDULED, JobState.BLOCKED, JobState.READY}) | ENDED_OR_STALE

Step = Callable[[Sequence[int], BulkResult], Awaitable[None]]


class Bulk:
    """Acts on many jobs."""

    def __init__(
        self, core: Core, ended: EndedJobs, looking: Looking, new_operation: Callable[[], str]
    ) -> None:
        self._core = core
        self._ended = ended
        self._looking = looking
        self._new_operation = new_operation

    async def promote_jobs(
        self, selection: Selection, *, dry_run: bool, audit: Audit
    ) -> BulkResult:
        """Makes SCHEDULED jobs ready."""
        states = frozenset({JobState.SCHEDULED})
        return await self._act(selection, states, self._promote, dry_run=dry_run)

    async def cancel_jobs(self, selection: Selection, *, dry_run: bool, audit: Audit) -> BulkResult:
        """Cancels waiting jobs and asks the workers of active ones to stop."""
        return await self._act(selection, LIVE, self._cancel, dry_run=dry_run)

    async def retry_jobs(self, selection: Selection, *, dry_run: bool, audit: Audit) -> BulkResult:
        """Puts ended jobs back."""
        return await self._act(selection, ENDED_OR_STALE, self._retry, dry_run=dry_run)

    async def delete_jobs(self, selection: Selection, *, dry_run: bool, audit: Audit) -> BulkResult:
        """Deletes jobs that wait or have ended."""
        return await self._act(selection, DELETABLE, self._delete, dry_run=dry_run)

    async def _act(
        self, selection: Selection, states: frozenset[JobState], step: Step, *, dry_run: bool
    ) -> BulkResult:
        result = BulkResult(operation_id=self._new_operation())
        if selection.filter is None:
            await self._act_on_ids(selection.ids, states, step, result, dry_run=dry_run)
        else:
            await self._act_on_filter(selection.filter, states, step, result, dry_run=dry_run)
        await self._core.commits.wait()
        return result

    async def _act_on_ids(
        self,
        ids: Sequence[int],
        states: frozenset[JobState],
        step: Step,
        result: BulkResult,
        *,
        dry_run: bool,
    ) -> None:
        await self._core.commits.wait()
        unique = list(dict.fromkeys(ids))
        if not dry_run:
            await step(unique, result)
            return
        for job_id in unique:
            state = await self._state_of(job_id)
            if state in states:
                result.count += 1
            else:
                result.skipped_ids.append(job_id)

    async def _state_of(self, job_id: int) -> JobState | None:
        shard = self._core.shard_of_id(job_id)
        if shard is None:
            return None
        live = shard.state_of(job_id)
        if live is not None:
            return live
        found = await self._ended.find(job_id)
        return None if found is None else found[0]

    async def _act_on_filter(
        self,
        wanted: JobFilter,
        states: frozenset[JobState],
        step: Step,
        result: BulkResult,
        *,
        dry_run: bool,
    ) -> None:
        """Walks by id, a slice at a time; ends when a slice is not full."""
        chosen = wanted.states & states if wanted.states else states
        if not chosen:
            return
        wanted = replace(wanted, states=chosen)
        after, full = 0, True
        while full:
            await self._core.commits.wait()
            views = await self._looking.first_after(wanted, after, limits.SLICE_ITEMS)
            full = len(views) == limits.SLICE_ITEMS
            if not views:
                return
            after = views[-1].id
            if dry_run:
                result.count += len(views)
            else:
                await step([view.id for view in views], result)
        # What a filter chose and something else changed meanwhile was not asked for by id.
        result.skipped_ids.clear()

    async def _promote(self, ids: Sequence[int], result: BulkResult) -> None:
        for number, own in self._split(ids, result).items():
            shard = self._core.shards[number]
            skipped = decide_promote(shard, self._core.now(), own)
            self._core.decided(shard)
            result.count += len(own) - len(skipped)
            result.skipped_ids += skipped

    async def _cancel(self, ids: Sequence[int], result: BulkResult) -> None:
        for number, own in self._split(ids, result).items():
            shard = self._core.shards[number]
            cancelled, requested, skipped = decide_cancel(shard, self._core.now(), own)
            self._core.decided(shard)
            result.count += cancelled
            result.requested += requested
            result.skipped_ids += skipped

    async def _retry(self, ids: Sequence[int], result: BulkResult) -> None:
        for number, own in self._split(ids, result).items():
            shard = self._core.shards[number]
            async with self._ended.changing:
                found = {job_id: await self._ended.find(job_id) for job_id in own}
                ended = [(pair[1], pair[0]) for pair in found.values() if pair is not None]
                skipped = decide_retry(shard, self._core.now(), ended)
                self._core.decided(shard)
                await self._core.commits.wait()
            result.count += len(ended) - len(skipped)
            result.skipped_ids += skipped
            result.skipped_ids += [job_id for job_id, pair in found.items() if pair is None]

    async def _delete(self, ids: Sequence[int], result: BulkResult) -> None:
        for number, own in self._split(ids, result).items():
            shard = self._core.shards[number]
            count, not_waiting = decide_delete_waiting(shard, self._core.now(), own)
            self._core.decided(shard)
            result.count += count
            async with self._ended.changing:
                for job_id in not_waiting:
                    await self._delete_ended(job_id, result)
                await self._core.commits.wait()

    async def _delete_ended(self, job_id: int, result: BulkResult) -> None:
        found = await self._ended.find(job_id)
        shard = self._core.shard_of_id(job_id)
        if found is None or shard is None or shard.state_of(job_id) is not None:
            result.skipped_ids.append(job_id)
            return
        state, record = found
        decide_delete_ended(shard, self._core.now(), record.queue, state, [(job_id, 1)])
        self._core.decided(shard)
        result.count += 1

    def _split(self, ids: Sequence[int], result: BulkResult) -> dict[int, list[int]]:
        owned, foreign = self._core.by_shard(ids)
        result.skipped_ids += [ids[index] for index in foreign]
        return {number: [ids[index] for index in indexes] for number, indexes in owned.items()}

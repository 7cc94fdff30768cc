"""Operators' calls on many jobs: promote, cancel, retry, delete, by id or by filter.

A filter is worked off in slices by id, each decided and committed as a whole, with the loop free
in between; a dry run walks the same way and only counts.
"""

from __future__ import annotations

import asyncio
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
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import KEPT_STATES, JobState
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended import EndedJobs, Look
from jobline_server.runtime.looking import Looking
from jobline_server.runtime.views import Audit, BulkResult, JobFilter, Selection

LIVE = frozenset({JobState.SCHEDULED, JobState.BLOCKED, JobState.READY, JobState.ACTIVE})
DELETABLE = frozenset({JobState.SCHEDULED, JobState.BLOCKED, JobState.READY}) | KEPT_STATES

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
        return await self._act(selection, KEPT_STATES, self._retry, dry_run=dry_run)

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
        # In order of id, whatever order they came in: neighbours are found together.
        unique = sorted(set(ids))
        for start in range(0, len(unique), limits.SLICE_ITEMS):
            await self._core.commits.wait()
            part = unique[start : start + limits.SLICE_ITEMS]
            if dry_run:
                await self._count(part, states, result)
            else:
                await step(part, result)
            await asyncio.sleep(0)

    async def _count(
        self, ids: Sequence[int], states: frozenset[JobState], result: BulkResult
    ) -> None:
        """What a step would do to these."""
        found = {job_id: self._live_state_of(job_id) for job_id in ids}
        gone = [job_id for job_id, state in found.items() if state is None]
        async for look in self._ended.look_up(gone):
            found.update((job_id, kept.state) for job_id, kept in look.kept.items())
        skipped = [job_id for job_id in ids if found[job_id] not in states]
        result.count += len(ids) - len(skipped)
        result.skipped_ids += skipped

    def _live_state_of(self, job_id: int) -> JobState | None:
        shard = self._core.shard_of_id(job_id)
        return None if shard is None else shard.state_of(job_id)

    async def _act_on_filter(
        self,
        wanted: JobFilter,
        states: frozenset[JobState],
        step: Step,
        result: BulkResult,
        *,
        dry_run: bool,
    ) -> None:
        """Walks by id, a slice at a time; ends when there are no more."""
        chosen = wanted.states & states if wanted.states else states
        if not chosen:
            return
        wanted = replace(wanted, states=chosen)
        after, is_cut = 0, True
        while is_cut:
            await self._core.commits.wait()
            views, is_cut = await self._looking.first_after(wanted, after, limits.SLICE_ITEMS)
            if not views:
                break
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
                async for look in self._ended.look_up(own):
                    ended = [(kept.record, kept.state) for kept in look.kept.values()]
                    skipped = decide_retry(shard, self._core.now(), ended)
                    self._core.decided(shard)
                    await self._core.commits.wait()
                    result.count += len(ended) - len(skipped)
                    result.skipped_ids += skipped
                    result.skipped_ids += [one for one in look.ids if one not in look.kept]

    async def _delete(self, ids: Sequence[int], result: BulkResult) -> None:
        for number, own in self._split(ids, result).items():
            shard = self._core.shards[number]
            count, not_waiting = decide_delete_waiting(shard, self._core.now(), own)
            self._core.decided(shard)
            result.count += count
            async with self._ended.changing:
                async for look in self._ended.look_up(not_waiting):
                    self._delete_ended(shard, look, result)
                    await self._core.commits.wait()

    def _delete_ended(self, shard: Shard, look: Look, result: BulkResult) -> None:
        """A fact a queue and state."""
        chosen: dict[tuple[str, JobState], list[tuple[int, int]]] = {}
        for job_id in look.ids:
            kept = look.kept.get(job_id)
            if kept is None or shard.state_of(job_id) is not None:
                result.skipped_ids.append(job_id)
                continue
            chosen.setdefault((kept.record.queue, kept.state), []).append((job_id, 1))
            result.count += 1
        for (queue, state), runs in chosen.items():
            decide_delete_ended(shard, self._core.now(), queue, state, runs)
        self._core.decided(shard)

    def _split(self, ids: Sequence[int], result: BulkResult) -> dict[int, list[int]]:
        owned, foreign = self._core.by_shard(ids)
        result.skipped_ids += [ids[index] for index in foreign]
        return {number: [ids[index] for index in indexes] for number, indexes in owned.items()}

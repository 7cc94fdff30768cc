"""Operators' calls on many jobs: promote, cancel, retry, delete, by id or by filter.

Ids and filters are worked off in slices, each decided as a whole, with the loop free in between; a
dry run walks the same way and only counts. A caller that goes away ends the call after the slice
under way: what was done stays done, and the same call again does the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from jobline_server.engine.operations import CancelledRuns
from jobline_server.engine.values import KEPT_STATES, WAITING_STATES, JobState, shard_of
from jobline_server.runtime.calls.below import Below
from jobline_server.runtime.calls.bulk_verbs import BulkVerbs, OnEnded, Verb
from jobline_server.runtime.calls.operations import NO_TARGET, Operations, Target
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.ended_jobs import EndedJobs, LookupResult
from jobline_server.runtime.pace import Pace
from jobline_server.runtime.queries import walks
from jobline_server.runtime.slots import ShardSlot
from jobline_server.runtime.views import NO_AUDIT, Audit, BulkResult, JobFilter, Selection

LIVE = WAITING_STATES | {JobState.ACTIVE}
DELETABLE = WAITING_STATES | KEPT_STATES

# Slices that are decided before one waits for the disk: a commit each would take most of the time.
SLICES_A_COMMIT = 8
# Jobs of a slice that are decided between two looks at the time: 1 ms, and 7 ms if each is split
# off its lot, or lets the next one of its group in.
DECIDED_AT_ONCE = 250

# States of jobs that were named by their ids: whatever they are.
ANY_STATE = frozenset(JobState)


class Bulk:
    """Acts on many jobs."""

    def __init__(self, core: Core, ended: EndedJobs, operations: Operations) -> None:
        self._core = core
        self._ended = ended
        self._operations = operations
        self._verbs = verbs = BulkVerbs(core)
        self._promotes = Verb(frozenset({JobState.SCHEDULED}), verbs.promote, None)
        self._cancels = Verb(LIVE, verbs.cancel, None, notes_runs=True)
        self._retries = Verb(KEPT_STATES, None, verbs.retry)
        self._deletes_live = Verb(LIVE, verbs.delete_live, None)
        self._deletes = Verb(DELETABLE, verbs.delete_waiting, verbs.delete_ended)

    async def promote_jobs(
        self, selection: Selection, *, dry_run: bool, audit: Audit
    ) -> BulkResult:
        """Makes SCHEDULED jobs ready."""
        return await self._act(self._promotes, selection, dry_run=dry_run, audit=audit)

    async def cancel_jobs(
        self, selection: Selection, *, below: bool = False, dry_run: bool, audit: Audit
    ) -> BulkResult:
        """Cancels waiting jobs and asks the workers of active ones to stop; with `below` also the
        jobs that these waited for, unless they are running or others wait for them.
        """
        verb = self._cancels
        if below:
            verb = replace(verb, below=Below(self._core.slots))
        return await self._act(verb, selection, dry_run=dry_run, audit=audit)

    async def retry_jobs(self, selection: Selection, *, dry_run: bool, audit: Audit) -> BulkResult:
        """Puts ended jobs back."""
        return await self._act(self._retries, selection, dry_run=dry_run, audit=audit)

    async def delete_jobs(self, selection: Selection, *, dry_run: bool, audit: Audit) -> BulkResult:
        """Deletes jobs that wait or have ended."""
        with self._core.commits.disk.making_room():
            return await self._act(self._deletes, selection, dry_run=dry_run, audit=audit)

    async def cancel_members(self, wanted: JobFilter, result: BulkResult, *, dry_run: bool) -> None:
        """Cancels the members of batches, as part of the cancel of these. No undo puts them back:
        their batches stay closed.
        """
        lost_before = len(self._core.slots.closed)
        await self._act_on_filter(self._cancels, wanted, result, dry_run=dry_run)
        await self._core.commits.wait()
        self._check_still_here(Selection(filter=wanted), lost_before)

    async def delete_live(self, queue: str, *, with_active: bool) -> int:
        """Deletes what lives of a queue that is being deleted; returns how many there were. What
        comes in meanwhile stays.
        """
        states = LIVE if with_active else LIVE - {JobState.ACTIVE}
        wanted, result = JobFilter(queue=queue, states=states), BulkResult()
        await self._act_on_live(self._deletes_live, wanted, result, dry_run=False)
        await self._core.commits.wait()
        return result.count

    async def _act(
        self, verb: Verb, selection: Selection, *, dry_run: bool, audit: Audit
    ) -> BulkResult:
        lost_before = len(self._core.slots.closed)
        wanted = selection.filter
        target = NO_TARGET if wanted is None else Target(wanted.queue, wanted.group)
        # A dry run changes nothing, so nobody has to know of it.
        with self._operations.running(NO_AUDIT if dry_run else audit, target) as running:
            result = running.result
            result.cancelled = CancelledRuns() if verb.notes_runs else None
            if wanted is None:
                await self._act_on_ids(verb, selection.ids, result, dry_run=dry_run)
            else:
                await self._act_on_filter(verb, wanted, result, dry_run=dry_run)
            if verb.below is not None:
                await self._act_below(verb, verb.below, result, dry_run=dry_run)
        await self._core.commits.wait()
        self._check_still_here(selection, lost_before)
        if result.full is not None and not result.count:
            # Nothing was changed, and this is why.
            raise result.full
        return result

    def _check_still_here(self, selection: Selection, lost_before: int) -> None:
        """Raises `Refused` if a shard was lost meanwhile that the call may have changed."""
        slots = self._core.slots
        if selection.filter is None:
            slots.check_here(selection.ids)
        elif selection.filter.queue:
            slots.of_queue(selection.filter.queue)
        elif len(slots.closed) > lost_before:
            raise slots.refusal(next(reversed(slots.closed)))

    async def _act_on_ids(
        self, verb: Verb, ids: Sequence[int], result: BulkResult, *, dry_run: bool
    ) -> None:
        act = self._count if dry_run else self._change
        # In order of id, whatever order they came in: neighbours are found together.
        unique = sorted(set(ids))
        self._core.slots.check_here(unique)
        for part in walks.id_slices(self._core.slots, unique):
            await self._core.commits.wait()
            await act(verb, part, result)
            await asyncio.sleep(0)

    async def _act_below(
        self, verb: Verb, below: Below, result: BulkResult, *, dry_run: bool
    ) -> None:
        """Does it to the jobs below, which nobody has named: none is skipped."""
        skipped, not_found = len(result.skipped_ids), len(result.not_found_ids)
        while not below.is_empty():
            await self._act_on_ids(verb, below.take(walks.SLICE_JOBS), result, dry_run=dry_run)
            await asyncio.sleep(0)
        del result.skipped_ids[skipped:], result.not_found_ids[not_found:]

    async def _count(self, verb: Verb, ids: Sequence[int], result: BulkResult) -> None:
        """Counts what `_change` would do to these jobs."""
        found = {job_id: self._live_state_of(job_id) for job_id in ids}
        async for look in self._ended.look_up([i for i in ids if found[i] is None]):
            found.update((job_id, kept.state) for job_id, kept in look.kept.items())
            self._note_not_found(look, result)
        chosen = [state for state in found.values() if state in verb.states]
        if verb.below is not None:
            verb.below.note(ids)
        active = chosen.count(JobState.ACTIVE)
        result.requested += active
        result.count += len(chosen) - active
        result.skipped_ids += [one for one in ids if found[one] not in verb.states]

    def _live_state_of(self, job_id: int) -> JobState | None:
        slot = self._core.slots.of_id(job_id)
        return None if slot is None else slot.shard.state_of(job_id)

    async def _change(self, verb: Verb, ids: Sequence[int], result: BulkResult) -> None:
        self._core.slots.check_here(ids)
        owners = self._core.slots.owners_of(ids)
        skipped = result.skipped_ids
        for slot, indexes in owners.here.items():
            shard = slot.shard
            left = await self._change_live(verb, slot, [ids[index] for index in indexes], result)
            skipped += [job_id for job_id in left if shard.state_of(job_id) is not None]
            gone = [job_id for job_id in left if shard.state_of(job_id) is None]
            if gone and verb.on_ended is not None:
                await self._change_ended(verb.on_ended, slot, gone, result)
            elif gone:
                skipped += gone
                async for look in self._ended.look_up(gone):
                    self._note_not_found(look, result)
        nowhere = [ids[index] for index in owners.nowhere]
        skipped += nowhere
        result.not_found_ids += nowhere

    async def _change_live(
        self,
        verb: Verb,
        slot: ShardSlot,
        ids: Sequence[int],
        result: BulkResult,
        states: frozenset[JobState] = ANY_STATE,
    ) -> list[int]:
        """Changes the jobs of a slice, a few milliseconds at a time; returns the ids that it was
        not done to. They may change in between: each is decided as it is then, and one that left
        the states of the filter that chose it is not meant any more.
        """
        if verb.on_live is None:
            return list(ids)
        left: list[int] = []
        pace = Pace()
        for at in range(0, len(ids), DECIDED_AT_ONCE):
            part = ids[at : at + DECIDED_AT_ONCE]
            if states is not ANY_STATE:
                part = [job_id for job_id in part if slot.shard.state_of(job_id) in states]
            if verb.below is not None:
                verb.below.note(part)
            left += verb.on_live(slot.shard, part, result)
            self._core.after_decision(slot)
            await pace.rest()
        return left

    async def _change_ended(
        self, change: OnEnded, slot: ShardSlot, ids: Sequence[int], result: BulkResult
    ) -> None:
        """Holds `changing` from the first look to the commit, which all looks share."""
        async with self._ended.changing:
            async for look in self._ended.look_up(ids):
                result.skipped_ids += change(slot.shard, look, result)
                self._core.after_decision(slot)
                self._note_not_found(look, result)
            await self._core.commits.wait()

    async def _act_on_filter(
        self, verb: Verb, wanted: JobFilter, result: BulkResult, *, dry_run: bool
    ) -> None:
        """Walks by id, a slice at a time; ends when there are no more."""
        chosen = wanted.states & verb.states if wanted.states else verb.states
        live, ended = chosen - KEPT_STATES, chosen & KEPT_STATES
        if live:
            await self._act_on_live(verb, replace(wanted, states=live), result, dry_run=dry_run)
        if ended:
            await self._core.commits.wait()
            walk = walks.EndedWalk(self._core, self._ended, replace(wanted, states=ended))
            act = self._delete_page if verb is self._deletes else self._retry_page
            while not walk.is_over:
                await (_count_page if dry_run else act)(walk, result)
                await asyncio.sleep(0)
        # What a filter chose and something else changed meanwhile was not asked for by id.
        result.skipped_ids[:] = result.full_ids
        result.not_found_ids.clear()

    async def _act_on_live(
        self, verb: Verb, wanted: JobFilter, result: BulkResult, *, dry_run: bool
    ) -> None:
        slices = 0
        for slot in walks.slots_of(self._core, wanted):
            async for found in walks.live_slices(slot.shard, wanted):
                if dry_run:
                    if verb.below is not None:
                        verb.below.note(found)
                    active = sum(state is JobState.ACTIVE for state in found.values())
                    result.requested += active
                    result.count += len(found) - active
                elif verb.on_live is not None and found:
                    await self._change_live(verb, slot, list(found), result, wanted.states)
                    slices += 1
                    if slices % SLICES_A_COMMIT == 0:
                        await self._core.commits.wait()
                        # Or what ended would pile up in memory, and be put in order in one step.
                        await self._ended.write()

    async def _delete_page(self, walk: walks.EndedWalk, result: BulkResult) -> None:
        async with self._ended.changing:
            result.count += await self._ended.delete(await walk.next_spans())

    async def _retry_page(self, walk: walks.EndedWalk, result: BulkResult) -> None:
        """Retries the jobs of a page. Several look-ups share a commit, which costs as much as the
        retries of one."""
        async with self._ended.changing:
            decided = 0
            async for found in walk.next_records():
                slot = self._core.slots[shard_of(found.ids[0])]
                result.skipped_ids += self._verbs.retry(slot.shard, found, result)
                self._core.after_decision(slot)
                decided += len(found.ids)
                if decided >= walks.SLICE_JOBS:
                    decided = 0
                    await self._core.commits.wait()
            await self._core.commits.wait()

    def _note_not_found(self, look: LookupResult, result: BulkResult) -> None:
        """Notes which of the jobs that were looked up do not exist."""
        missing = [i for i in look.ids if i not in look.kept and i not in look.damaged]
        # One that somebody else put back meanwhile is live.
        result.not_found_ids += [i for i in missing if self._live_state_of(i) is None]


async def _count_page(walk: walks.EndedWalk, result: BulkResult) -> None:
    result.count += sum(span.count for span in await walk.next_spans())

"""Calls on batches."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import count

from jobline_server.engine.batches import Batch, BatchSpec, Callback
from jobline_server.engine.decide.batch_members import not_found
from jobline_server.engine.decide.batches import (
    decide_cancel_batch,
    decide_close_batch,
    decide_create_batch,
    existing_batch,
)
from jobline_server.runtime.calls.bulk import Bulk
from jobline_server.runtime.calls.operations import Operations, Target
from jobline_server.runtime.core import Core
from jobline_server.runtime.slots import ShardSlot
from jobline_server.runtime.views import NO_AUDIT, Audit, BulkResult, JobFilter

# Batches that a step of a list looks at, and that are cancelled in a step.
STEP_BATCHES = 4_000
CANCEL_BATCHES = 500


@dataclass(frozen=True, slots=True)
class BatchFilter:
    """Conditions on batches; an empty one accepts all. `states`: whether they are (closed,
    complete).
    """

    states: frozenset[tuple[bool, bool]] = frozenset()
    name: str = ""
    tags: frozenset[str] = frozenset()
    parent: int = 0

    def accepts(self, batch: Batch) -> bool:
        """Returns whether a batch meets all conditions."""
        spec, state = batch.spec, (bool(batch.closed_ms), bool(batch.completed_ms))
        return (
            (not self.states or state in self.states)
            and (not self.name or spec.name == self.name)
            and self.tags.issubset(spec.tags)
            and (not self.parent or spec.parent == self.parent)
        )


class BatchCalls:
    """Creates, reads, closes and cancels batches."""

    def __init__(self, core: Core, bulk: Bulk, operations: Operations) -> None:
        self._core = core
        self._bulk = bulk
        self._operations = operations
        self._created = count()

    async def create_batch(self, spec: BatchSpec) -> Batch:
        """Creates a batch, or returns that of the same request. One that is in another batch is in
        its shard; others are where their first callback goes, which saves a message.
        """
        core = self._core
        spec = replace(
            spec,
            on_success=self._routed(spec.on_success),
            on_complete=self._routed(spec.on_complete),
            on_first_death=self._routed(spec.on_first_death),
        )
        slot = self._home_of(spec)
        core.check_accepting(slot, 1)
        batch = decide_create_batch(slot.shard, core.now(), spec)
        return await self._changed(slot, batch)

    def _routed(self, callback: Callback | None) -> Callback | None:
        if callback is None:
            return None
        return replace(callback, shard=self._core.slots.number_of(callback.queue))

    def _home_of(self, spec: BatchSpec) -> ShardSlot:
        slots = self._core.slots
        if spec.parent:
            return self._slot_of(spec.parent, "parent_id")
        for callback in (spec.on_complete, spec.on_success, spec.on_first_death):
            if callback is not None:
                return slots[callback.shard]
        if spec.request_id:
            return slots.of_queue(spec.request_id)
        every = list(slots)
        return every[next(self._created) % len(every)]

    def get_batch(self, batch_id: int) -> Batch:
        """Returns one batch. Raises `Refused` with BATCH_NOT_FOUND."""
        return existing_batch(self._slot_of(batch_id).shard, batch_id)

    async def close_batch(self, batch_id: int) -> Batch:
        """Closes a batch. Raises `Refused` with BATCH_NOT_FOUND."""
        slot = self._slot_of(batch_id)
        batch = decide_close_batch(slot.shard, self._core.now(), batch_id)
        return await self._changed(slot, batch)

    async def list_batches(
        self, wanted: BatchFilter, *, page_size: int, after: int
    ) -> tuple[list[Batch], int]:
        """Returns a page of batches by id, and the last id of it; 0 on the last page."""
        found: list[Batch] = []
        for slot in sorted(self._core.slots, key=lambda one: one.number):
            records = slot.shard.batches.records
            # Ids rise, and a dictionary is in the order of additions.
            ids = list(records)
            for at in range(bisect_right(ids, after), len(ids), STEP_BATCHES):
                some = [records.get(one) for one in ids[at : at + STEP_BATCHES]]
                found += [one for one in some if one is not None and wanted.accepts(one)]
                if len(found) > page_size:
                    return found[:page_size], found[page_size - 1].id
                await asyncio.sleep(0)
        return found, 0

    async def cancel_batch(
        self, batch_id: int, *, dry_run: bool, audit: Audit
    ) -> tuple[BulkResult, Batch]:
        """Cancels a batch, those in it, and the members of all of them. Each is closed for good
        before its members are looked for, so none is missed. A call that ends half-way can be
        made again. Raises `Refused` with BATCH_NOT_FOUND.
        """
        slot = self._slot_of(batch_id)
        batch = existing_batch(slot.shard, batch_id)
        asked = NO_AUDIT if dry_run else audit
        with self._operations.running(asked, Target(batch_id=batch_id)) as running:
            every = await self._close_for_good(slot, batch_id, audit, dry_run=dry_run)
            wanted = JobFilter(batches=frozenset(every))
            await self._bulk.cancel_members(wanted, running.result, dry_run=dry_run)
        await self._core.commits.wait()
        return running.result, batch

    async def _close_for_good(
        self, slot: ShardSlot, batch_id: int, audit: Audit, *, dry_run: bool
    ) -> list[int]:
        """Closes a batch and those in it; returns all of them."""
        every = [batch_id]
        for at, one in enumerate(every, 1):
            if not dry_run:
                now = self._core.now()
                decide_cancel_batch(slot.shard, now, one, audit.principal, audit.reason)
            every += slot.shard.batches.children.get(one, ())
            if at % CANCEL_BATCHES == 0:
                self._core.after_decision(slot)
                await self._core.commits.wait(slot)
        self._core.after_decision(slot)
        return every

    def _slot_of(self, batch_id: int, field: str = "id") -> ShardSlot:
        slot = self._core.slots.of_id(batch_id)
        if slot is None:
            raise not_found(batch_id, field)
        return slot

    async def _changed(self, slot: ShardSlot, batch: Batch) -> Batch:
        self._core.after_decision(slot)
        await self._core.commits.wait(slot)
        return batch

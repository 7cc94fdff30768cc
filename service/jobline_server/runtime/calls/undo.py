"""Undoes operations: sets back what one changed, or puts the jobs back that it cancelled.

Settings, pauses and limits are set back only if they still are as the operation left them: what
somebody changed since is theirs. Jobs are put back as `RetryJobs` does it, a slice at a time, and
wait for their time again; those that were changed since stay as they are. An undo is an operation
too, and one is undone at a time, so no operation is undone twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.update import JobChange, decide_update
from jobline_server.engine.operations import CancelledJobs, Operation
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import EndReason, JobState, shard_of
from jobline_server.runtime.calls.bulk_verbs import BulkVerbs
from jobline_server.runtime.calls.operations import NO_TARGET, Operations, Running, Target
from jobline_server.runtime.calls.set_back import SetBack
from jobline_server.runtime.calls.undoable import why_not
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.ended_jobs import (
    LOOKUP_JOBS,
    EndedJobs,
    Kept,
    LookupResult,
)
from jobline_server.runtime.views import NO_AUDIT, Audit


@dataclass(slots=True)
class Undone:
    """What an undo did: how many jobs were put back, and how many were not."""

    operation_id: str = ""
    count: int = 0
    skipped: int = 0


class Undo:
    """Undoes operations, one at a time."""

    def __init__(self, core: Core, ended: EndedJobs, operations: Operations) -> None:
        self._core = core
        self._ended = ended
        self._operations = operations
        self._verbs = BulkVerbs(core)
        self._undoing = asyncio.Lock()
        self._set_back = SetBack(core, ended, operations)

    async def undo(self, operation_id: str, *, dry_run: bool, audit: Audit) -> Undone:
        """Undoes an operation. Raises `Refused` with OPERATION_NOT_FOUND, NOT_UNDOABLE,
        ALREADY_UNDONE, CHANGED_SINCE, or QUEUE_NOT_FOUND.
        """
        async with self._undoing:
            view = await self._operations.get(operation_id)
            if view is None:
                message = f"there is no operation {operation_id}"
                raise Refused(RefusalKind.OPERATION_NOT_FOUND, message, field="operation_id")
            why = why_not(view)
            if why:
                kind = RefusalKind.NOT_UNDOABLE
                if view.undone_by:
                    kind = RefusalKind.ALREADY_UNDONE
                message = f"operation {operation_id} cannot be undone: {why}"
                raise Refused(kind, message, field="operation_id")
            operation, change = view.operation, view.operation.change
            if isinstance(change, CancelledJobs):
                return await self._put_back(operation, change, dry_run=dry_run, audit=audit)
            done = await self._set_back.set_back(operation, dry_run=dry_run, audit=audit)
            return Undone(done)

    async def _put_back(
        self, operation: Operation, change: CancelledJobs, *, dry_run: bool, audit: Audit
    ) -> Undone:
        target = Target(operation.queue, operation.group) if operation.queue else NO_TARGET
        undone = Undone()
        asked = NO_AUDIT if dry_run else audit
        with self._operations.running(asked, target, undoes=operation.id) as running:
            for part in _parts(change):
                found = await self._put_back_part(operation, part, running, dry_run=dry_run)
                undone.skipped += len(part) - found
                await asyncio.sleep(0)
            result = running.result
            if result.full is not None:
                # Once there is room, another undo puts the others back.
                running.is_whole = False
                if not result.count:
                    raise result.full
        await self._core.commits.wait()
        undone.operation_id, undone.count = running.id, result.count
        return undone

    async def _put_back_part(
        self, operation: Operation, part: dict[int, int], running: Running, *, dry_run: bool
    ) -> int:
        """Puts jobs of one shard back, given with their times; returns how many."""
        slot = self._core.slots.of_id(next(iter(part)))
        before = running.result.count
        async with self._ended.changing:
            async for look in self._ended.look_up(list(part)):
                chosen = {
                    job_id: kept for job_id, kept in look.kept.items() if _is_of(kept, operation)
                }
                if dry_run or slot is None:
                    running.result.count += len(chosen)
                    continue
                found = LookupResult(list(chosen), chosen, frozenset())
                left = set(self._verbs.retry(slot.shard, found, running.result))
                times = {job_id: part[job_id] for job_id in chosen if job_id not in left}
                self._postpone(slot.shard, times)
                self._core.after_decision(slot)
            await self._core.commits.wait()
        return running.result.count - before

    def _postpone(self, shard: Shard, times: dict[int, int]) -> None:
        """Has jobs that were put back wait for their time, in the same commit."""
        now = self._core.now()
        for job_id, run_at_ms in times.items():
            if run_at_ms > now.wall_ms:
                decide_update(shard, now, job_id, JobChange(delay_ms=run_at_ms - now.wall_ms))


def _is_of(kept: Kept, operation: Operation) -> bool:
    """Returns whether a job was cancelled by this operation, and not by another one since."""
    record = kept.record
    return (
        kept.outcome is JobState.CANCELLED
        and record.reason is EndReason.CANCELLED
        and operation.began_ms <= record.ended_ms <= operation.ended_ms
    )


def _parts(change: CancelledJobs) -> Iterator[dict[int, int]]:
    """Yields the jobs of a cancel in slices of one shard, each with its time."""
    part: dict[int, int] = {}
    shard = -1
    for first_id, count, run_at_ms in change.runs:
        for job_id in range(first_id, first_id + count):
            if part and (len(part) == LOOKUP_JOBS or shard_of(job_id) != shard):
                yield part
                part = {}
            shard = shard_of(job_id)
            part[job_id] = run_at_ms
    if part:
        yield part

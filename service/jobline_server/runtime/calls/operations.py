"""Operations: records what operators do, and finds it.

An operation is one fact in the journal, emitted in the step that decides its change, so one commit
holds both: there is no change without its operation, and none is recorded that did not happen. A
call that goes in slices is recorded before its first one, and again as it ends: an operation
without an end that no call works on was cut short by a stop of the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from jobline_server.engine.decide.operations import decide_record_operation
from jobline_server.engine.operations import Change, Operation, OperationQuery, OperationState
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.ended_jobs import EndedJobs
from jobline_server.runtime.slots import ShardSlot
from jobline_server.runtime.views import Audit, BulkResult
from jobline_server.storage.codec import decode_operation
from jobline_server.storage.operations import FoundOperation, OperationStore
from jobline_server.wire.operations import change_as_json

# Operations of one read. Most have 500 bytes, some 60 KiB: those take 3 ms.
READ_OPERATIONS = 100
STEP_BYTES = 128 << 10
# Those that are shown count as this much more: their changes as JSON take 0.2 ms.
SHOWN_BYTES = 8 << 10
PAGE_BYTES_MAX = 3 << 20


class Target(NamedTuple):
    """What an operation is about."""

    queue: str = ""
    group: str = ""
    limiter: str = ""
    schedule: str = ""
    batch_id: int = 0


NO_TARGET = Target()


class OperationView(NamedTuple):
    """An operation, its number in the order of commits, and the id of the one that undid it, or "".
    `is_running`: a call works on it. `change` is what it changed, as JSON.
    """

    operation: Operation
    number: int
    undone_by: str
    is_running: bool
    change: str


@dataclass(slots=True)
class Running:
    """An operation that goes in slices; `result` counts what it did. Unless it `is_whole` as it
    ends, it counts as interrupted.
    """

    id: str
    result: BulkResult = field(default_factory=BulkResult)
    is_whole: bool = True


class Operations:
    """Records and finds operations."""

    def __init__(
        self, core: Core, ended: EndedJobs, store: OperationStore, new_name: Callable[[], str]
    ) -> None:
        self._core = core
        self._ended = ended
        self._store = store
        self.new_id = new_name
        self._running: set[str] = set()

    def record(
        self,
        slot: ShardSlot,
        audit: Audit,
        target: Target,
        change: Change | None = None,
        *,
        count: int = 0,
        undoes: str = "",
    ) -> str:
        """Records an operation that was just decided, for the same commit; returns its id, "" if
        nobody asked for it. Call `Core.after_decision` next.
        """
        if not audit.verb:
            return ""
        now = self._core.now()
        operation_id = audit.operation_id or self.new_id()
        operation = _begun(operation_id, audit, target, now.wall_ms)
        done = replace(
            operation,
            state=OperationState.DONE,
            ended_ms=now.wall_ms,
            count=count,
            change=change,
            undoes=undoes,
        )
        decide_record_operation(slot.shard, now, done)
        return done.id

    @contextmanager
    def running(
        self,
        audit: Audit,
        target: Target,
        *,
        undoes: str = "",
    ) -> Iterator[Running]:
        """Records the begin of an operation, for the commit of its first slice, and its end when
        the block ends, however it does. Wait for the commits after that. It is about a queue, or
        any number of jobs.
        """
        running = Running((audit.operation_id or self.new_id()) if audit.verb else "")
        running.result.operation_id = running.id
        if not running.id:
            yield running
            return
        begun = _begun(running.id, audit, target, self._core.wall_ms())
        begun = replace(begun, undoes=undoes)
        self._running.add(running.id)
        try:
            self._note(begun)
            yield running
        except BaseException:
            # Also when the caller goes away: what was done stays done.
            self._note_end(begun, running, OperationState.INTERRUPTED)
            raise
        else:
            is_whole = running.is_whole
            state = OperationState.DONE if is_whole else OperationState.INTERRUPTED
            self._note_end(begun, running, state)
        finally:
            self._running.discard(running.id)

    def _note_end(self, begun: Operation, running: Running, state: OperationState) -> None:
        result, cancelled = running.result, running.result.cancelled
        self._note(
            replace(
                begun,
                state=state,
                # Above 0, and never before its begin: the wall clock may be set back.
                ended_ms=max(self._core.wall_ms(), begun.began_ms),
                count=result.count,
                requested=result.requested,
                change=None if cancelled is None else cancelled.jobs(),
            )
        )

    def _note(self, operation: Operation) -> None:
        """Emits the fact in the shard of its queue, or the first one that is here."""
        slots = self._core.slots
        slot = slots.find_by_queue(operation.queue) if operation.queue else None
        slot = slot or next(iter(slots), None)
        if slot is not None:
            decide_record_operation(slot.shard, self._core.now(), operation)
            self._core.after_decision(slot)

    async def find(self, query: OperationQuery) -> tuple[list[OperationView], bool]:
        """Returns a page of operations, the newest first, and whether there are more. A page cut
        short by its size holds at least one. While the disk is full, those that wait for room are
        not among them.
        """
        await self._ended.write()
        views: list[OperationView] = []
        size = step = 0
        while len(views) <= query.limit:
            part = replace(query, limit=min(READ_OPERATIONS, query.limit + 1 - len(views)))
            found = await self._store.find(part)
            for one in found:
                size, step = size + len(one.blob), step + len(one.blob) + SHOWN_BYTES
                if views and (len(views) == query.limit or size > PAGE_BYTES_MAX):
                    return views, True
                views.append(self._view(one))
                if step >= STEP_BYTES:
                    step = 0
                    await asyncio.sleep(0)
            if len(found) < part.limit:
                break
            query = replace(query, before=found[-1].number)
        return views, False

    def _view(self, found: FoundOperation) -> OperationView:
        operation = decode_operation(found.blob)
        is_running = operation.id in self._running
        return OperationView(
            operation, found.number, found.undone_by, is_running, change_as_json(operation)
        )

    async def get(self, operation_id: str) -> OperationView | None:
        """Returns an operation; None if it is not kept."""
        found, _ = await self.find(OperationQuery(id=operation_id, limit=1))
        return found[0] if found else None

    async def delete_old(self, before_ms: int, kept_max: int, limit: int) -> int:
        """Deletes up to `limit` old operations; returns how many."""
        return await self._store.delete_old(before_ms, kept_max, limit)


def _begun(operation_id: str, audit: Audit, target: Target, now_ms: int) -> Operation:
    return Operation(
        operation_id,
        audit.verb,
        audit.principal,
        now_ms,
        state=OperationState.STARTED,
        reason=audit.reason,
        queue=target.queue,
        group=target.group,
        limiter=target.limiter,
        schedule=target.schedule,
        batch_id=target.batch_id,
        request=audit.request,
    )

"""Operators' calls on queues."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import islice

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.queues import (
    decide_delete_queue,
    decide_limit_queue,
    decide_pause_queue,
    decide_resume_queue,
    decide_update_queue,
    existing_queue,
)
from jobline_server.engine.operations import Pause, PauseChange, QueueChange, TimeLimitChange
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import WAITING_STATES, JobState, Now, QueueSettings
from jobline_server.runtime.calls.bulk import Bulk
from jobline_server.runtime.calls.changes import limit_of, pause_of, settings_of
from jobline_server.runtime.calls.demands import Demands
from jobline_server.runtime.calls.operations import Operations, Target
from jobline_server.runtime.calls.webhooks import WebhookCalls
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.ended_jobs import EndedJobs
from jobline_server.runtime.minutes import Minutes
from jobline_server.runtime.pace import Pace
from jobline_server.runtime.queries.paging import first_names, page_by_name, queue_bytes
from jobline_server.runtime.queries.queue_order import QueueOrder, QueuePlace
from jobline_server.runtime.queries.walks import SLICE_JOBS
from jobline_server.runtime.slots import ShardSlot
from jobline_server.runtime.views import Audit, BulkResult, JobFilter, QueueView, Selection
from jobline_server.runtime.workload import oldest_ready_ms

# Priorities that a view lists.
PRIORITIES_SHOWN_MAX = 100
# The most queues that a step of a list looks at.
STEP_QUEUES = 2_000
# How often what came in while a queue was emptied is deleted in slices, before it goes in one step.
DELETE_ROUNDS = 10
CLEANED = frozenset({JobState.COMPLETED, JobState.CANCELLED, JobState.EXPIRED, JobState.STALE})


class Queues:
    """Reads and changes queues."""

    def __init__(
        self,
        core: Core,
        ended: EndedJobs,
        bulk: Bulk,
        operations: Operations,
        webhooks: WebhookCalls,
        demands: Demands,
        minutes: Minutes,
    ) -> None:
        self._core = core
        self._ended = ended
        self._bulk = bulk
        self._operations = operations
        self._webhooks = webhooks
        self._demands = demands
        self._minutes = minutes
        # Queues that are being deleted, and when that is over.
        self._deletes: dict[str, asyncio.Event] = {}

    async def list_queues(
        self,
        *,
        page_size: int,
        page_token: str,
        prefix: str,
        order: QueueOrder = QueueOrder.NAME,
        may_read: Callable[[str], bool] | None = None,
    ) -> tuple[list[QueueView], str]:
        """Returns a page of the queues that the caller `may_read`; the token is the place of the
        last one. A page cut short by its size holds at least one queue. Raises `Refused` with
        INVALID_PAGE_TOKEN.
        """
        after = order.place_at(page_token)
        places = await first_names(self._places(order, after, prefix, may_read), page_size + 1)
        by_name = {place[-1]: place for place in places}
        views, last = await page_by_name([*by_name], page_size, self._shown, queue_bytes)
        return views, order.cursor_of(by_name[last]) if last else ""

    def _places(
        self,
        order: QueueOrder,
        after: QueuePlace,
        prefix: str,
        may_read: Callable[[str], bool] | None,
    ) -> Iterator[list[QueuePlace]]:
        """Yields the places of queues behind one, in slices: also by the clock, as `may_read` may
        compare each name with thousands of globs.
        """
        activity = self._minutes.activity
        for slot in self._core.slots:
            queues = iter(list(slot.shard.queues.values()))
            while step := list(islice(queues, STEP_QUEUES)):
                found: list[QueuePlace] = []
                pace = Pace()
                for queue in step:
                    if pace.is_over():
                        yield found
                        found, pace = [], Pace()
                    if queue.name.startswith(prefix):
                        place = order.place_of(queue, activity)
                        if place > after and (may_read is None or may_read(queue.name)):
                            found.append(place)
                yield found

    def _shown(self, name: str) -> QueueView | None:
        queue = self._core.slots.find_queue(name)
        return None if queue is None else self._view(queue)

    def get_queue(self, queue: str) -> QueueView:
        """Returns one queue. Raises `Refused` with QUEUE_NOT_FOUND."""
        return self._view(existing_queue(self._core.slots.of_queue(queue).shard, queue))

    async def update_queue(
        self, queue: str, settings: QueueSettings, mask: frozenset[str] | None, audit: Audit
    ) -> QueueView:
        """Changes settings; creates the queue if it does not exist."""
        slot = self._core.slots.of_queue(queue)
        queues = slot.shard.queues
        before = settings_of(queues.get(queue))
        decide_update_queue(slot.shard, self._core.now(), queue, settings, mask)
        change = QueueChange(before, settings_of(queues.get(queue)))
        self._operations.record(slot, audit, Target(queue), change)
        self._ended.hints.note_queue(queue)
        return await self._changed(slot, queue)

    async def pause_queue(self, queue: str, audit: Audit) -> QueueView:
        """Stops hand-outs."""
        slot = self._core.slots.of_queue(queue)
        before = pause_of(slot.shard.queues.get(queue))
        decide_pause_queue(slot.shard, self._core.now(), queue, audit.principal, audit.reason)
        return await self._pause_changed(slot, queue, before, audit)

    async def resume_queue(self, queue: str, audit: Audit) -> QueueView:
        """Resumes hand-outs."""
        slot = self._core.slots.of_queue(queue)
        before = pause_of(slot.shard.queues.get(queue))
        decide_resume_queue(slot.shard, self._core.now(), queue)
        return await self._pause_changed(slot, queue, before, audit)

    async def _pause_changed(
        self, slot: ShardSlot, queue: str, before: Pause, audit: Audit
    ) -> QueueView:
        change = PauseChange(before, pause_of(slot.shard.queues.get(queue)))
        self._operations.record(slot, audit, Target(queue), change)
        return await self._changed(slot, queue)

    async def limit_queue(self, queue: str, until_ms: int, audit: Audit) -> QueueView:
        """Stops hand-outs until a time; one that has passed lifts the limit."""
        slot = self._core.slots.of_queue(queue)
        queues = slot.shard.queues
        before = limit_of(queues.get(queue))
        decide_limit_queue(
            slot.shard, self._core.now(), queue, until_ms, audit.principal, audit.reason
        )
        change = TimeLimitChange(before, limit_of(queues.get(queue)))
        self._operations.record(slot, audit, Target(queue), change)
        return await self._changed(slot, queue)

    async def _changed(self, slot: ShardSlot, queue: str) -> QueueView:
        self._core.after_decision(slot)
        await self._core.commits.wait(slot)
        return self.get_queue(queue)

    async def drain_queue(self, queue: str, *, dry_run: bool, audit: Audit) -> BulkResult:
        """Deletes waiting jobs."""
        existing_queue(self._core.slots.of_queue(queue).shard, queue)
        selection = Selection(filter=JobFilter(queue=queue, states=WAITING_STATES))
        return await self._bulk.delete_jobs(selection, dry_run=dry_run, audit=audit)

    async def clean_queue(
        self,
        queue: str,
        *,
        states: frozenset[JobState],
        older_than_ms: int,
        dry_run: bool,
        audit: Audit,
    ) -> BulkResult:
        """Deletes ended jobs in these states; none: all but DEAD ones."""
        existing_queue(self._core.slots.of_queue(queue).shard, queue)
        before_ms = self._core.now().wall_ms - older_than_ms if older_than_ms else None
        wanted = JobFilter(queue=queue, states=states or CLEANED, ended_before_ms=before_ms)
        selection = Selection(filter=wanted)
        return await self._bulk.delete_jobs(selection, dry_run=dry_run, audit=audit)

    async def delete_queue(
        self, queue: str, *, force: bool, dry_run: bool, audit: Audit
    ) -> BulkResult:
        """Deletes a queue with all its jobs: live ones in slices, then the rest in one fact. It
        hands out nothing meanwhile, so that no job becomes active. A second call waits for the
        first, and then finds no queue.
        """
        while (under_way := self._deletes.get(queue)) is not None:
            await under_way.wait()
        slot = self._core.slots.of_queue(queue)
        found = existing_queue(slot.shard, queue)
        active = found.counts[JobState.ACTIVE]
        if active and not force:
            message = f"queue {queue} has {active} active jobs; set force to delete it"
            raise Refused(RefusalKind.QUEUE_ACTIVE, message, field="force")
        if dry_run:
            return BulkResult(count=sum(found.counts))
        found.deleting = True
        over = self._deletes[queue] = asyncio.Event()
        try:
            with (
                self._core.commits.disk.making_room(),
                self._operations.running(audit, Target(queue)) as running,
            ):
                await self._delete(slot, found, running.result, force=force)
        finally:
            # It is there still if the caller went away, or the disk failed.
            found.deleting = False
            del self._deletes[queue]
            over.set()
            slot.woken[found] = None
            self._core.serve(slot)
        await self._core.commits.wait(slot)
        await self._webhooks.drop_queue(queue)
        return running.result

    async def _delete(
        self, slot: ShardSlot, queue: Queue, result: BulkResult, *, force: bool
    ) -> None:
        for _ in range(DELETE_ROUNDS):
            result.count += await self._bulk.delete_live(queue.name, with_active=force)
            if queue.live() <= SLICE_JOBS:
                break
        result.count += decide_delete_queue(slot.shard, self._core.now(), queue.name, force=force)
        self._core.after_decision(slot)

    def _view(self, queue: Queue) -> QueueView:
        now, limited = self._core.now(), queue.limited
        return QueueView(
            name=queue.name,
            shard=self._core.slots.of_queue(queue.name).number,
            settings=queue.settings,
            counts={state: queue.counts[state] for state in JobState},
            unhandled=self._unhandled(queue),
            priorities=[*islice(queue.ready.priorities(), PRIORITIES_SHOWN_MAX)],
            paused=queue.paused,
            paused_by=queue.paused_by,
            pause_reason=queue.pause_reason,
            oldest_ready_ms=oldest_ready_ms(queue),
            created_ms=queue.created_ms,
            pushed_total=queue.pushed_total,
            completed_total=queue.completed_total,
            failed_total=queue.failed_total,
            tokens=_tokens(queue, now),
            limited=limited if limited is not None and limited.until_ms > now.wall_ms else None,
            workers_needed=self._demands.of(queue),
            worker_time_ms=None if queue.fair is None else queue.fair.used_ms,
        )

    def _unhandled(self, queue: Queue) -> int:
        """Returns the number of READY jobs with a name that no connected worker handles; 0 while
        none is connected.
        """
        rings = self._core.rings
        handled = rings.names(queue.name)
        if handled is None or not rings.consumers(queue.name):
            return 0
        return queue.counts[JobState.READY] - queue.ready.of_names(handled)


def _tokens(queue: Queue, now: Now) -> int | None:
    bucket = None if queue.allowance is None else queue.allowance.bucket
    return None if bucket is None else bucket.tokens(now.mono_ms)

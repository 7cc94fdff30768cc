"""The core of the runtime: the shards, the clock, and the steps from a decision to its effects.

Everything that decides follows the same steps: read the time, find the slot, decide, then
`after_decision`, which requests a commit and dispatches what is ready. `Core.listen` keeps the one
list of listeners. A listener that fails after a commit is counted; other listeners and waiting
callers are not affected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence, Sized
from enum import Enum

from jobline_server.dispatch.consumer import Consumer
from jobline_server.dispatch.rings import ConsumerRings
from jobline_server.engine import entry_bytes, limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.awaiting import note_awaited
from jobline_server.engine.decide.batches import settle_batches
from jobline_server.engine.decide.dependencies import release_dependents
from jobline_server.engine.load import Load
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import JobState, Now
from jobline_server.runtime.batch_homes import join_homes
from jobline_server.runtime.clock import Clock
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.commits.commits import Commits
from jobline_server.runtime.durations import Durations
from jobline_server.runtime.heartbeat import Heartbeat
from jobline_server.runtime.loops import Loops, Record
from jobline_server.runtime.slots import ShardSlot, ShardSlots
from jobline_server.storage.space import NO_SPACE, Space
from jobline_server.storage.store import Store

Listener = Callable[[Sequence[CommittedBatch]], None]


class Wants(Enum):
    """Which commits a listener is notified of: all, or those with such effects."""

    COMMITS = 1
    ENDINGS = 2
    REVOKED = 3


# Enum attribute access is slow before Python 3.12.
_ENDINGS, _REVOKED = Wants.ENDINGS, Wants.REVOKED


class Core:
    """What all parts of the runtime share."""

    def __init__(
        self,
        store: Store,
        slots: ShardSlots,
        clock: Clock,
        load: Load,
        space: Space = NO_SPACE,
    ) -> None:
        self.store = store
        self.space = space
        self.slots = slots
        self.clock = clock
        self.load = load
        self.rings: ConsumerRings[Consumer] = ConsumerRings()
        self.commits = Commits(store, space, slots, self.on_committed)
        self.started_ms = clock.now().wall_ms
        self.durations = Durations()
        self.heartbeat = Heartbeat(clock, self._may_rest)
        self.loops = Loops()
        self.timers = asyncio.Event()
        self.next_tick, self.timers_rest = Now(0, 0), False
        """When the timers are looked at next: set `timers` for what is earlier, or in a rest."""
        self.draining = False
        self.open_streams: Sized = ()
        """Of workers, by session; set by those who keep them."""
        self.dispatch_ready: Callable[[ShardSlot, Queue], bool] = _nobody
        """Serves those who wait at a queue; returns whether somebody there wants more of what is
        left. Set by the dispatcher.
        """
        self.wants_events: Callable[[], bool] = lambda: False
        """Returns whether anybody watches; set by those who make the events."""
        self.look_up_parents: Callable[[ShardSlot], None] = _looks_up_nothing
        """Looks up what became of jobs that others wait for. Set by those who do."""
        self._listeners: list[tuple[Record, Listener, Wants]] = []
        self._closed_listeners: list[tuple[Record, Callable[[ShardSlot], None]]] = []
        slots.on_closed = self._on_closed
        self._dispatches = self.loops.record("hand_outs")
        self._failing: ShardSlot | None = None

    def listen(
        self, name: str, listener: Listener, wants: Wants = Wants.COMMITS, *, is_vital: bool = True
    ) -> None:
        """Adds a listener behind the others. One that raises is not notified again of that
        commit. `is_vital`: see `runtime.loops`.
        """
        self._listeners.append((self.loops.record(name, is_vital=is_vital), listener, wants))

    def listen_closed(self, name: str, listener: Callable[[ShardSlot], None]) -> None:
        """Adds a listener for shards that are closed."""
        self._closed_listeners.append((self.loops.record(name), listener))

    def _on_closed(self, slot: ShardSlot) -> None:
        for record, listener in self._closed_listeners:
            with record:  # the others are told all the same
                listener(slot)
        self.loops.changed()

    def now(self) -> Now:
        """Returns both times, which advance with the loop: wakes the heartbeat if it rests."""
        if self.heartbeat.resting:
            self.heartbeat.wake()
        return self.clock.now()

    def wall_ms(self) -> int:
        """Returns wall time in milliseconds since 1970."""
        return self.now().wall_ms

    def _may_rest(self) -> bool:
        return not self.load.active_jobs and not self.open_streams

    def check_accepting(self, slot: ShardSlot, count: int) -> None:
        """Refuses a push that cannot be kept: the disk is full, or the shard's ids are used up."""
        if self.commits.failed.done():
            raise Refused(RefusalKind.STORAGE_FAILED, "the disk failed; the server stops")
        if self.commits.disk_full:
            raise Refused(
                RefusalKind.DISK_FULL,
                "the server's disk is full; jobs that are stored go on",
                retry_after_ms=1_000,
            )
        if slot.shard.next_sequence + count >= slot.position.id_ceiling:
            raise Refused(RefusalKind.SERVER_FULL, "ids are being set aside", retry_after_ms=100)

    def after_decision(self, slot: ShardSlot) -> None:
        """Requests a commit of a shard's new facts; facts that need none take effect at once.
        Raises `Refused` if the shard is closed: its facts are void.
        """
        if slot.is_closed:
            raise self.slots.refusal(slot.number)
        dependencies = slot.shard.dependencies
        if dependencies.pending or dependencies.unawaited:
            self._release_dependents(slot)
        batches = slot.shard.batches
        if batches.due or batches.unsent or batches.joining:
            self._settle_batches(slot)
        if slot.shard.entries:
            if slot.shard.entry_bytes > entry_bytes.ENTRY_BYTES_MAX:
                slot.shard.end_entry()
            self.commits.request_commit()
        else:
            self.on_committed([self._volatile_batch(slot)])
        self._hasten_timers(slot)

    def _release_dependents(self, slot: ShardSlot) -> None:
        """Tells the first jobs that wait for those that ended just now, in the same commit; the
        timers tell the others.
        """
        with self.loops.record("dependents"):  # else the timers tell them
            release_dependents(slot.shard, self.now(), limits.DEPENDENTS_AT_ONCE)

    def _settle_batches(self, slot: ShardSlot) -> None:
        """Counts new members at home, pushes callbacks, and sends what became of members, in the
        same commit; the timers push more than a few.
        """
        batches = slot.shard.batches
        with self.loops.record("batches"):  # else the timers try again
            for home in join_homes(self.slots, batches.take_joining(), self.now()):
                self.after_decision(home)
            settle_batches(slot.shard, self.now(), limits.BATCHES_AT_ONCE)
        if batches.due:
            self.timers.set()

    def note_awaited(self, slot: ShardSlot, parents: Sequence[int]) -> None:
        """Notes in other shards of this process that jobs of a shard wait for theirs, before the
        messages arrive that say so: what ends until then leaves its end.
        """
        if not parents or self.slots.single_owner(parents) is slot:
            return
        is_awaited = slot.shard.dependencies.awaited.find
        for other, ids in self.slots.owners(parents):
            if other is slot:
                continue
            live = [one for one in ids if is_awaited(one) and other.shard.state_of(one) is not None]
            if live:
                note_awaited(other.shard, self.now(), slot.number, live)
                self.after_decision(other)

    def leased(self, slot: ShardSlot) -> None:
        """Requests a commit of hand-outs. Listeners are notified of volatile jobs in the next
        iteration of the loop, because this is called while they are being notified.
        """
        if slot.shard.entries:
            self.commits.request_commit()
        elif slot.shard.applied:
            asyncio.get_running_loop().call_soon(self._notify_of_volatile, slot)
        self._hasten_timers(slot)

    def _hasten_timers(self, slot: ShardSlot) -> None:
        """Wakes the timer loop if it rests, or if anything is due before its next look."""
        shard = slot.shard
        due_ms, opens_ms = shard.delayed.first_ms(), shard.gates.first_ms()
        if shard.dependencies.has_any:
            self._hasten_dependents(slot)
        limiter_ms = shard.limiters.first_ms() if shard.limiters else None
        schedule_ms = shard.schedules.first_ms() if shard.schedules.by_name else None
        if (
            self.timers_rest
            or (due_ms is not None and due_ms < self.next_tick.wall_ms)
            or (opens_ms is not None and opens_ms < self.next_tick.mono_ms)
            or (limiter_ms is not None and limiter_ms < self.next_tick.mono_ms)
            or (schedule_ms is not None and schedule_ms < self.next_tick.wall_ms)
            or (shard.closed_groups.has_any and shard.closed_groups.is_due_before(self.next_tick))
        ):
            self.timers.set()

    def _hasten_dependents(self, slot: ShardSlot) -> None:
        dependencies = slot.shard.dependencies
        if dependencies.to_look_up:
            self.look_up_parents(slot)
        until_ms = dependencies.timeouts.first_ms()
        has_work = dependencies.pending or dependencies.unawaited
        if has_work or (until_ms is not None and until_ms < self.next_tick.wall_ms):
            self.timers.set()

    def _notify_of_volatile(self, slot: ShardSlot) -> None:
        if slot.shard.applied and not slot.shard.entries:
            self._notify([self._volatile_batch(slot)])

    @staticmethod
    def _volatile_batch(slot: ShardSlot) -> CommittedBatch:
        """Returns the facts that need no commit, as a batch."""
        shard = slot.shard
        return CommittedBatch(slot, shard.committed, shard.take_applied(), is_commit=False)

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Notifies listeners of a commit that is on disk, then dispatches jobs."""
        self._notify(batches)
        for batch in batches:
            self.serve(batch.slot)

    def _notify(self, batches: Sequence[CommittedBatch]) -> None:
        has_endings = has_revoked = False
        for batch in batches:
            has_endings |= bool(batch.endings)
            has_revoked |= bool(batch.revoked)
            if batch.woken:
                batch.slot.woken.update(batch.woken)
        for record, listener, wants in self._listeners:
            if (wants is _ENDINGS and not has_endings) or (wants is _REVOKED and not has_revoked):
                continue
            try:
                listener(batches)
            except Exception as error:  # noqa: BLE001  # the others are told all the same
                record.failed(error)
                continue
            if record.failures_in_a_row:
                record.worked()

    def serve(self, slot: ShardSlot) -> None:
        """Dispatches jobs at the woken queues of a slot. A queue whose dispatch fails is tried
        again after the next commit, or at the next look of the timer loop.
        """
        if slot.is_closed:
            return
        failed, shard = False, slot.shard
        woken, slot.woken = slot.woken, {}
        for queue in woken:
            if (
                not queue.counts[JobState.READY]
                or queue.paused
                or shard.queues.get(queue.name) is not queue
            ):
                continue
            try:
                wanted = self.dispatch_ready(slot, queue)
            except Exception as error:  # noqa: BLE001  # other queues are served all the same
                self._dispatches.failed(error)
                failed, wanted = True, False
                slot.woken[queue] = None
            if wanted and shard.has_uncommitted():
                # What is left may only wait for its commit: the one under way, or the next.
                slot.woken[queue] = None
        if failed:
            self._failing = slot
        elif slot is self._failing:
            self._failing = None
            self._dispatches.worked()


def _looks_up_nothing(_slot: ShardSlot) -> None:
    """Stands in until the look-ups are there."""


def _nobody(_slot: ShardSlot, _queue: Queue) -> bool:
    """Stands in until the dispatcher is there."""
    return False

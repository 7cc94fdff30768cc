"""The dispatcher: leases ready jobs to consumers.

A woken queue serves its consumers in turn; a consumer that has room again is served from its queues
by weight. Both end in `give`, the only caller of `decide_lease`.

One iteration of the loop hands out a bounded amount. The rest follows in the next one, to the
consumer that is next then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from jobline_server.dispatch.consumer import Consumer, Kind, Room, is_some, kind_of
from jobline_server.dispatch.rings import shares
from jobline_server.engine import limits
from jobline_server.engine.decide.lease import decide_lease, has_for, lets_out
from jobline_server.engine.decide.once import take_once
from jobline_server.engine.queue import Queue
from jobline_server.engine.sticky import has_own
from jobline_server.runtime.core import Core
from jobline_server.runtime.held_back import HeldBack
from jobline_server.runtime.owners import Owners
from jobline_server.runtime.slots import ShardSlot

# Single jobs and runs that go out in one iteration of the loop. A hand-out that cannot take more of
# a queue has used it up.
ITERATION_ITEMS = limits.LEASE_SLICE_ITEMS
# A hand-out costs what so many items do, however few it brings: it is a frame of its own too, which
# is made and written before the next iteration.
HAND_OUT_ITEMS = 20
# Hand-outs of one pull, from as many queues, in an iteration of the loop: some 35 µs each.
SLICE_HAND_OUTS = 200
# Below this it is not worth a call of the loop to begin anew.
LITTLE_ITEMS = 100
# Up to this number of jobs it is not worth a look whether anybody handles them before shares of
# them are cut, for which as many consumers are counted.
FEW_JOBS = 100


class Dispatcher:
    """Dispatches jobs."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.held_back = HeldBack(core)
        self._owners = Owners(core)
        self._used = 0
        self._renews = False
        self._late: dict[ShardSlot, None] = {}
        """Slots with queues that had to wait for the next iteration of the loop."""
        core.dispatch_ready = self.serve_queue

    def join(self, consumer: Consumer) -> None:
        """Adds a consumer to the rings of its queues."""
        self._core.rings.join(consumer)

    def leave(self, consumer: Consumer) -> None:
        """Removes a consumer from the rings."""
        self._core.rings.leave(consumer)
        if consumer.session_id:
            self._owners.leave(consumer)

    def welcome(self, consumer: Consumer) -> None:
        """Serves a consumer that may have room again, some of it in later iterations of the
        loop.
        """
        self._core.rings.wake(consumer)
        self._serve_bounded(consumer)

    def serve_queue(self, slot: ShardSlot, queue: Queue) -> bool:
        """Leases the ready jobs of a queue to its consumers, in equal shares, until nobody takes
        any. Returns whether jobs are left that may go out after a commit, to a consumer with room.
        """
        rings = self._core.rings
        most, given = 0, 1
        if queue.gates.woken:
            for owner in self._owners.woken(slot, queue):
                self._give_own(slot, queue, owner)
        while given and queue.in_reach():
            if self._used >= ITERATION_ITEMS:
                self._put_off(slot, queue)
                return False
            if queue.allowance is not None and self._is_shut(slot, queue):
                break
            most = rings.share_of(queue.name, self._wanted(queue))
            given = self._serve_round(slot, queue, most) if most else 0
        return bool(queue.in_reach() and most)

    def _wanted(self, queue: Queue) -> int:
        """Returns how many jobs of a queue may be handed out, about."""
        in_reach = queue.in_reach()
        names = self._core.rings.names(queue.name) if in_reach > FEW_JOBS else None
        return in_reach if names is None else min(in_reach, queue.ready.of_names(names))

    def _serve_round(self, slot: ShardSlot, queue: Queue, most: int) -> int:
        """Offers the jobs of a queue to each consumer with room, `most` of them at most; returns
        how many were taken. Where one finds none, others of its kind are not asked.
        """
        given = 0
        missed: set[Kind] = set()
        for consumer, room in self._core.rings.round(queue.name, missed, queue.ready.named()):
            count = self.give(slot, queue, consumer, most, room)
            given += count
            if not count and self._note_miss(slot, queue, consumer, missed):
                return given
            if not queue.in_reach() or self._used >= ITERATION_ITEMS:
                return given
        if missed and queue.gates.own:
            for owner in self._owners.all(queue):
                self._give_own(slot, queue, owner)
        return given

    def _note_miss(
        self, slot: ShardSlot, queue: Queue, consumer: Consumer, missed: set[Kind]
    ) -> bool:
        """Notes the kind of a consumer that got nothing, if no other of it would get any; returns
        whether nobody would.
        """
        kind = kind_of(consumer, queue.name)
        is_shut = self._is_shut(slot, queue)
        if is_shut or not has_for(slot.shard, self._core.now(), queue, *kind):
            missed.add(kind)
        return is_shut

    def _is_shut(self, slot: ShardSlot, queue: Queue) -> bool:
        """Returns whether a queue lets nothing out now."""
        if lets_out(slot.shard, self._core.now(), queue):
            return False
        if self._core.timers_rest:
            # No decision says when it opens.
            self._core.timers.set()
        return True

    def _give_own(self, slot: ShardSlot, queue: Queue, owner: Consumer) -> None:
        """Offers a session what is reserved for it, if it has room; else it asks when it has."""
        room = owner.room()
        if self._used >= ITERATION_ITEMS:
            self._owners.put_off(slot, queue, owner)
            self._put_off(slot, queue)
        elif is_some(room):
            self.give(slot, queue, owner, room[0], room)

    def serve_slices(self, consumer: Consumer) -> Iterator[None]:
        """Leases ready jobs to a pull, from each of its queues. Yields after `SLICE_HAND_OUTS`
        hand-outs, so that the loop can go on, and never before a first one.
        """
        given = 0
        for slot, queue, most, room in self._ready_for(consumer):
            count = self.give(slot, queue, consumer, most, room)
            if count == room[0]:
                return
            given += bool(count)
            self._wake_uncommitted(slot, queue)
            if given == SLICE_HAND_OUTS:
                given = 0
                yield

    def _serve_bounded(self, consumer: Consumer) -> None:
        """Leases ready jobs to a stream with room. Its queues wait for the next iteration where
        this one is used up.
        """
        for slot, queue, most, room in self._ready_for(consumer):
            if (
                self._used < ITERATION_ITEMS
                and self.give(slot, queue, consumer, most, room) == room[0]
            ):
                return
            if self._used >= ITERATION_ITEMS:
                self._put_off(slot, queue)
            else:
                self._wake_uncommitted(slot, queue)

    def _ready_for(self, consumer: Consumer) -> Iterator[tuple[ShardSlot, Queue, int, Room]]:
        """Yields the queues where jobs are ready for a consumer, how many it may take there, and
        the room it has.
        """
        jobs, payload_bytes = consumer.room()
        if jobs <= 0:
            return
        room: Room | None = (jobs, payload_bytes)
        session = consumer.session_id
        for name, most in shares(consumer.queues, jobs):
            slot = self._core.slots.find_by_queue(name)
            queue = slot.shard.queues.get(name) if slot is not None else None
            if slot is not None and queue is not None and _has_some(queue, session):
                yield slot, queue, most, room or consumer.room()
                room = None

    def _wake_uncommitted(self, slot: ShardSlot, queue: Queue) -> None:
        """Wakes a queue after the next commit if jobs of it wait for that."""
        if queue.in_reach() and slot.shard.has_uncommitted():
            slot.woken[queue] = None

    def give(self, slot: ShardSlot, queue: Queue, consumer: Consumer, most: int, room: Room) -> int:
        """Leases at most `most` jobs of a queue to a consumer with this room; returns how many."""
        shard = slot.shard
        jobs, payload_bytes = room
        holder = consumer.holder_on(shard)
        now = self._core.now()
        leased = decide_lease(
            shard,
            now,
            queue,
            holder,
            max_jobs=min(jobs, most),
            max_slots=jobs,
            max_bytes=payload_bytes,
            names=consumer.names_for(queue.name),
            lease_ms=consumer.lease_ms,
            payload_bytes_max=consumer.payload_bytes_max,
        )
        count = leased.count()
        if count:
            self._use(HAND_OUT_ITEMS + len(leased.runs) + len(leased.jobs))
            self._core.durations.waited(queue.name, leased, now.wall_ms)
            shard.clocks.arm(holder)
            if leased.has_once:
                once, leased = take_once(leased)
                self.held_back.hold(slot, consumer, once)
            if leased.jobs or leased.runs:
                consumer.take(leased)
            self._core.leased(slot)
        elif self._core.timers_rest:
            # A limit may have closed a gate, and no decision says when it opens.
            self._core.timers.set()
        return count

    def _use(self, items: int) -> None:
        """Counts items against this iteration of the loop."""
        self._used += items
        if self._used > LITTLE_ITEMS and not self._renews:
            self._renews = True
            asyncio.get_running_loop().call_soon(self._renew)

    def _put_off(self, slot: ShardSlot, queue: Queue) -> None:
        """Has a queue served in the next iteration of the loop."""
        slot.woken[queue] = None
        self._late[slot] = None

    def _renew(self) -> None:
        """Begins another iteration: serves the queues that had to wait for it."""
        self._used, self._renews = 0, False
        late, self._late = self._late, {}
        for slot in late:
            self._core.serve(slot)


def _has_some(queue: Queue, session: str) -> bool:
    """Returns whether a queue has READY jobs in lanes that a session reads, and is not paused."""
    return (queue.in_reach() > 0 or has_own(queue, session)) and not queue.paused

"""Owners: sessions with jobs that are reserved for them (`engine/sticky`).

A commit that makes such jobs durable wakes their queue, and their owners are offered them before
all others are served; no other consumer is asked in vain. Once an owner takes no jobs of a queue
any more, or none of a name, what is reserved for it is given away.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobline_server.dispatch.consumer import Consumer
from jobline_server.engine.queue import Queue
from jobline_server.engine.sticky import own_names, take_woken
from jobline_server.runtime.core import Core
from jobline_server.runtime.slots import ShardSlot


class Owners:
    """Finds the owners of reserved jobs, and has those given away that nobody comes for."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def woken(self, slot: ShardSlot, queue: Queue) -> Iterator[Consumer]:
        """Yields the consumers that have new reserved jobs in a queue; gives those away whose owner
        is not here, or handles none of their names.
        """
        for session in take_woken(queue, slot.shard.committed):
            owner = self._core.rings.owner(queue.name, session)
            if owner is None or not _handles_all(owner, queue, session):
                self._give_away(slot, queue, session)
            else:
                yield owner

    def all(self, queue: Queue) -> Iterator[Consumer]:
        """Yields the consumers that are here and have reserved jobs in a queue."""
        for session in list(queue.gates.own):
            owner = self._core.rings.owner(queue.name, session)
            if owner is not None:
                yield owner

    def put_off(self, slot: ShardSlot, queue: Queue, owner: Consumer) -> None:
        """Has an owner offered its jobs the next time that the queue is served."""
        queue.gates.woken[owner.session_id] = slot.shard.committed

    def leave(self, consumer: Consumer) -> None:
        """Has all given away that is reserved for a consumer which takes no more jobs."""
        for name, _ in consumer.queues:
            slot = self._core.slots.find_by_queue(name)
            queue = None if slot is None else slot.shard.queues.get(name)
            if slot is None or queue is None or not queue.gates.own:
                continue
            if self._core.rings.owner(name, consumer.session_id) is None:
                self._give_away(slot, queue, consumer.session_id)

    def _give_away(self, slot: ShardSlot, queue: Queue, session: str) -> None:
        slot.shard.sticky.leave(queue, session)
        self._core.timers.set()


def _handles_all(owner: Consumer, queue: Queue, session: str) -> bool:
    names = owner.names_for(queue.name)
    return names is None or own_names(queue, session) <= names

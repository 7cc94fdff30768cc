"""Rings: which consumers wait for which queue, and which of them is next.

The consumers of a queue form a ring; each hand-out moves the ring on, so no consumer is served
twice while another with room waits. A backlog is first cut into equal shares, so that one wide
window does not take the jobs that three idle workers wait for.

A ring holds only consumers with room. One found without room is parked, and returns when one of its
jobs is settled: a thousand workers with full windows cost nothing. Nor do a thousand idle ones that
a job is not for: consumers of the same names, version and payload size miss it together.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator
from functools import partial
from typing import Generic, TypeVar

from jobline_server.dispatch.consumer import Consumer, Kind, Room, kind_of
from jobline_server.dispatch.ring import Ring

C = TypeVar("C", bound=Consumer)


class ConsumerRings(Generic[C]):
    """The rings of all queues."""

    def __init__(self) -> None:
        self._rings: dict[str, Ring[C]] = {}
        # Queues whose rings a consumer has left for lack of room.
        self._parked: dict[C, list[str]] = {}
        self._owners: dict[str, C] = {}

    def join(self, consumer: C) -> None:
        """Adds a consumer to its queues, behind those that wait already."""
        if consumer.session_id:
            self._owners[consumer.session_id] = consumer
        for queue, _ in consumer.queues:
            ring = self._rings.get(queue)
            if ring is None:
                ring = self._rings[queue] = Ring(partial(self._note_full, queue))
            ring.join(consumer, kind_of(consumer, queue))

    def leave(self, consumer: C) -> None:
        """Removes a consumer from its queues; leaving twice does nothing."""
        self._unpark(consumer)
        if self._owners.get(consumer.session_id) is consumer:
            del self._owners[consumer.session_id]
        for queue, _ in consumer.queues:
            ring = self._rings.get(queue)
            if ring is not None:
                ring.leave(consumer)
                if not ring.waiting:
                    del self._rings[queue]

    def wake(self, consumer: C) -> None:
        """Puts a parked consumer back into its rings, behind the others. A settle does this by
        itself; call it when a window grew.
        """
        for queue in self._unpark(consumer):
            self._rings[queue].put(consumer)

    def consumers(self, queue: str) -> tuple[C, ...]:
        """Returns all consumers that wait at a queue, with room or without."""
        ring = self._rings.get(queue)
        return () if ring is None else tuple(ring.waiting)

    def owner(self, queue: str, session: str) -> C | None:
        """Returns the consumer of a session if it waits at a queue; None if it does not."""
        consumer, ring = self._owners.get(session), self._rings.get(queue)
        return consumer if ring is not None and consumer in ring.waiting else None

    def handles(self, queue: str, name: str) -> bool:
        """Returns whether a consumer that waits at a queue handles this name."""
        ring = self._rings.get(queue)
        return ring is not None and ring.handles(name)

    def names(self, queue: str) -> frozenset[str] | None:
        """Returns all names that consumers waiting at a queue handle; None: any."""
        ring = self._rings.get(queue)
        return frozenset() if ring is None else ring.names()

    def queues(self) -> list[str]:
        """Returns the queues with a waiting consumer."""
        return list(self._rings)

    def round(
        self, queue: str, missed: Container[Kind] = (), ready: Collection[str] | None = None
    ) -> Iterator[tuple[C, Room]]:
        """Returns the consumers with room, and the room they have, the next one first; see
        `Ring.round`.
        """
        ring = self._rings.get(queue)
        return iter(()) if ring is None else ring.round(missed, ready)

    def share_of(self, queue: str, ready: int) -> int:
        """Returns the equal share of `ready` jobs for each consumer with room, at least 1; 0 if
        none has room.
        """
        ring = self._rings.get(queue)
        return 0 if ring is None else ring.share_of(ready)

    def _note_full(self, queue: str, consumer: C) -> None:
        self._parked.setdefault(consumer, []).append(queue)
        consumer.in_flight.freed = partial(self.wake, consumer)

    def _unpark(self, consumer: C) -> list[str]:
        # `in_flight` holds the consumer no longer than needed.
        consumer.in_flight.freed = None
        return self._parked.pop(consumer, [])


def shares(queues: tuple[tuple[str, int], ...], room: int) -> Iterator[tuple[str, int]]:
    """Yields (queue, limit): how many jobs a consumer with `room` may take from each queue. A first
    pass gives each queue its part by weight, a second offers the rest to queues with more jobs. The
    caller subtracts what was taken.
    """
    total = sum(weight for _, weight in queues)
    if len(queues) > 1:
        for queue, weight in queues:
            yield queue, max(room * weight // total, 1)
    for queue, _ in queues:
        yield queue, room

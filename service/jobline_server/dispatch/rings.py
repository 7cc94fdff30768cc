"""Rings: which consumers wait for which queue, and which of them is next.

The consumers of a queue form a ring; each hand-out moves the ring on, so no consumer is served
twice while another with room waits. A backlog is first cut into equal shares, so that one wide
window does not take the jobs that three idle workers wait for.

A ring holds only consumers with room. One found without room is parked, and returns when one of its
jobs is settled: a thousand workers with full windows cost nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from jobline_server.engine.commands import Leased
from jobline_server.engine.holder import Holder, InFlight
from jobline_server.engine.shard import Shard

Room = tuple[int, int]
"""How many places for jobs, and payload bytes, a consumer has free."""


class Consumer(Protocol):
    """A worker stream or a long poll, which waits for jobs of its queues."""

    @property
    def lease_ms(self) -> int:
        """The length of its leases; 0: as each job or its queue has it."""

    @property
    def queues(self) -> tuple[tuple[str, int], ...]:
        """Its queues, as (name, weight)."""

    @property
    def in_flight(self) -> InFlight:
        """The jobs it holds unfinished."""

    @property
    def version(self) -> str:
        """The version of the worker; "" if it has none."""

    @property
    def session_id(self) -> str:
        """The session of a worker; "" for a pull."""

    @property
    def held_back(self) -> list[Any]:
        """Hand-outs to it that wait for their commit; whoever keeps them adds and removes them."""

    def room(self) -> Room:
        """Returns what it can take now."""

    @property
    def payload_bytes_max(self) -> int:
        """The largest payload it takes."""

    def names_for(self, queue: str) -> frozenset[str] | None:
        """Returns the names it handles in a queue; None: any."""

    def holder_on(self, shard: Shard) -> Holder:
        """Returns the holder of its leases on a shard."""

    def take(self, leased: Leased) -> None:
        """Takes jobs that were leased to it."""


C = TypeVar("C", bound=Consumer)


class ConsumerRings(Generic[C]):
    """The rings of all queues."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[C, None]] = {}
        self._rings: dict[str, OrderedDict[C, None]] = {}
        # Queues whose rings a consumer has left for lack of room.
        self._parked: dict[C, list[str]] = {}
        self._owners: dict[str, C] = {}

    def join(self, consumer: C) -> None:
        """Adds a consumer to its queues, behind those that wait already."""
        if consumer.session_id:
            self._owners[consumer.session_id] = consumer
        for queue, _ in consumer.queues:
            self._waiting.setdefault(queue, {})[consumer] = None
            self._rings.setdefault(queue, OrderedDict())[consumer] = None

    def leave(self, consumer: C) -> None:
        """Removes a consumer from its queues; leaving twice does nothing."""
        self._unpark(consumer)
        if self._owners.get(consumer.session_id) is consumer:
            del self._owners[consumer.session_id]
        for queue, _ in consumer.queues:
            waiting = self._waiting.get(queue, {})
            if consumer not in waiting:
                continue
            del waiting[consumer]
            self._rings[queue].pop(consumer, None)
            if not waiting:
                del self._waiting[queue], self._rings[queue]

    def wake(self, consumer: C) -> None:
        """Puts a parked consumer back into its rings, behind the others. A settle does this by
        itself; call it when a window grew.
        """
        for queue in self._unpark(consumer):
            self._rings[queue][consumer] = None

    def consumers(self, queue: str) -> tuple[C, ...]:
        """Returns all consumers that wait at a queue, with room or without."""
        return tuple(self._waiting.get(queue, ()))

    def owner(self, queue: str, session: str) -> C | None:
        """Returns the consumer of a session if it waits at a queue; None if it does not."""
        consumer = self._owners.get(session)
        return consumer if consumer in self._waiting.get(queue, ()) else None

    def handles(self, queue: str, name: str) -> bool:
        """Returns whether a consumer that waits at a queue handles this name."""
        for consumer in self._waiting.get(queue, ()):
            names = consumer.names_for(queue)
            if names is None or name in names:
                return True
        return False

    def names(self, queue: str) -> frozenset[str] | None:
        """Returns all names that consumers waiting at a queue handle; None: any."""
        handled: set[str] = set()
        for consumer in self._waiting.get(queue, ()):
            names = consumer.names_for(queue)
            if names is None:
                return None
            handled |= names
        return frozenset(handled)

    def queues(self) -> list[str]:
        """Returns the queues with a waiting consumer."""
        return list(self._waiting)

    def round(self, queue: str) -> Iterator[tuple[C, Room]]:
        """Yields the consumers with room, and the room they have, the next one first; each moves
        behind the others.
        """
        for _ in range(len(self._rings.get(queue, ()))):
            ring = self._rings.get(queue)
            if not ring:
                return
            consumer = next(iter(ring))
            room = consumer.room()
            if is_some(room):
                ring.move_to_end(consumer)
                yield consumer, room
            else:
                self._park(queue, consumer)

    def share_of(self, queue: str, ready: int) -> int:
        """Returns the equal share of `ready` jobs for each consumer with room, at least 1."""
        with_room, full = 0, []
        for consumer in self._rings.get(queue, ()):
            if is_some(consumer.room()):
                with_room += 1
            else:
                full.append(consumer)
            if with_room >= ready:
                break
        for consumer in full:
            self._park(queue, consumer)
        return max(-(-ready // with_room), 1) if with_room else 0

    def _park(self, queue: str, consumer: C) -> None:
        del self._rings[queue][consumer]
        self._parked.setdefault(consumer, []).append(queue)
        consumer.in_flight.freed = partial(self.wake, consumer)

    def _unpark(self, consumer: C) -> list[str]:
        # `in_flight` holds the consumer no longer than needed.
        consumer.in_flight.freed = None
        return self._parked.pop(consumer, [])


def has_room(consumer: Consumer) -> bool:
    """Returns whether a consumer can take a job now."""
    return is_some(consumer.room())


def is_some(room: Room) -> bool:
    """Returns whether a consumer with this room can take a job."""
    return room[0] > 0 and room[1] > 0


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

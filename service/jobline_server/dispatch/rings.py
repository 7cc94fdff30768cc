"""Rings: which consumers wait for which queue, and who is next.

Consumers of a queue stand in a ring; each hand-out moves the ring on, so that nobody is served
twice while another with room waits. What many share out is cut into equal parts first, so that one
wide window does not swallow a backlog that three idle workers wait for.

Only those with room stand in a ring. Who is found without leaves it, and comes back when something
of what it has is settled: a thousand workers with full windows are not looked at.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from typing import Generic, Protocol, TypeVar

from jobline_server.engine.commands import Leased
from jobline_server.engine.holder import Holder, InFlight
from jobline_server.engine.shard import Shard


class Consumer(Protocol):
    """A worker stream or a long poll: it waits at queues, and leases are given to it. `lease_ms` 0
    leaves each job its own.
    """

    @property
    def lease_ms(self) -> int:
        """Length of its leases."""

    @property
    def queues(self) -> tuple[tuple[str, int], ...]:
        """Queues and their weights."""

    @property
    def in_flight(self) -> InFlight:
        """What it has unfinished."""

    def room(self) -> tuple[int, int]:
        """Jobs and payload bytes that it can take now."""

    @property
    def payload_bytes_max(self) -> int:
        """The largest payload that it takes."""

    def names_for(self, queue: str) -> frozenset[str] | None:
        """The names it handles in a queue; None: any."""

    def holder_on(self, shard: Shard) -> Holder:
        """The holder of its leases on a shard."""

    def take(self, leased: Leased) -> None:
        """Receives jobs that were leased to it."""


C = TypeVar("C", bound=Consumer)


class ConsumerRings(Generic[C]):
    """The rings of all queues."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[C, None]] = {}
        self._rings: dict[str, OrderedDict[C, None]] = {}
        # The queues whose rings a consumer without room has left.
        self._parked: dict[C, list[str]] = {}

    def join(self, consumer: C) -> None:
        """A consumer waits at each of its queues, behind those who wait already."""
        for queue, _ in consumer.queues:
            self._waiting.setdefault(queue, {})[consumer] = None
            self._rings.setdefault(queue, OrderedDict())[consumer] = None

    def leave(self, consumer: C) -> None:
        """A consumer waits no more; leaving twice does nothing."""
        self._unpark(consumer)
        for queue, _ in consumer.queues:
            waiting = self._waiting.get(queue, {})
            if consumer not in waiting:
                continue
            del waiting[consumer]
            self._rings[queue].pop(consumer, None)
            if not waiting:
                del self._waiting[queue], self._rings[queue]

    def wake(self, consumer: C) -> None:
        """A consumer may have room again, and stands behind the others; what it has settled says so
        by itself, a window that grew does not.
        """
        for queue in self._unpark(consumer):
            self._rings[queue][consumer] = None

    def consumers(self, queue: str) -> tuple[C, ...]:
        """Everybody who waits at a queue."""
        return tuple(self._waiting.get(queue, ()))

    def handles(self, queue: str, name: str) -> bool:
        """Whether anybody who waits at a queue handles this name."""
        for consumer in self._waiting.get(queue, ()):
            names = consumer.names_for(queue)
            if names is None or name in names:
                return True
        return False

    def names(self, queue: str) -> frozenset[str] | None:
        """The names that those who wait at a queue handle, all together; None: any."""
        handled: set[str] = set()
        for consumer in self._waiting.get(queue, ()):
            names = consumer.names_for(queue)
            if names is None:
                return None
            handled |= names
        return frozenset(handled)

    def queues(self) -> list[str]:
        """The queues where anybody waits."""
        return list(self._waiting)

    def round(self, queue: str) -> Iterator[C]:
        """Those with room, beginning with whose turn it is; each one given moves behind the
        others.
        """
        for _ in range(len(self._rings.get(queue, ()))):
            ring = self._rings.get(queue)
            if not ring:
                return
            consumer = next(iter(ring))
            if self._has_room(queue, consumer):
                ring.move_to_end(consumer)
                yield consumer

    def share_of(self, queue: str, ready: int) -> int:
        """An equal part of what is ready for each who has room; at least one."""
        takers, full = 0, []
        for consumer in self._rings.get(queue, ()):
            if has_room(consumer):
                takers += 1
            else:
                full.append(consumer)
            if takers >= ready:
                break
        for consumer in full:
            self._park(queue, consumer)
        return max(-(-ready // takers), 1) if takers else 0

    def _has_room(self, queue: str, consumer: C) -> bool:
        if has_room(consumer):
            return True
        self._park(queue, consumer)
        return False

    def _park(self, queue: str, consumer: C) -> None:
        del self._rings[queue][consumer]
        self._parked.setdefault(consumer, []).append(queue)
        consumer.in_flight.freed = partial(self.wake, consumer)

    def _unpark(self, consumer: C) -> list[str]:
        # Its tally holds it no longer than needed.
        consumer.in_flight.freed = None
        return self._parked.pop(consumer, [])


def has_room(consumer: Consumer) -> bool:
    """Whether a consumer takes a job now."""
    jobs, payload_bytes = consumer.room()
    return jobs > 0 and payload_bytes > 0


def shares(queues: tuple[tuple[str, int], ...], room: int) -> Iterator[tuple[str, int]]:
    """How a consumer's room is cut over its queues: first to each its part by weight, then what
    was left to whoever has more. Yields (queue, most); the caller subtracts what was taken.
    """
    total = sum(weight for _, weight in queues)
    if len(queues) > 1:
        for queue, weight in queues:
            yield queue, max(room * weight // total, 1)
    for queue, _ in queues:
        yield queue, room

"""Turns: who waits for which queue, and whose turn it is.

Consumers of a queue stand in a ring; each hand-out moves the ring on, so that nobody is served
twice while another with room waits. What many share out is cut into equal parts first, so that one
wide window does not swallow a backlog that three idle workers wait for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar


class Consumer(Protocol):
    """Somebody who wants jobs: a stream or a long poll."""

    @property
    def queues(self) -> tuple[tuple[str, int], ...]:
        """Queues and their weights."""

    def room(self) -> tuple[int, int]:
        """Jobs and payload bytes that it can take now."""

    def names_for(self, queue: str) -> frozenset[str] | None:
        """The names it handles in a queue; None: any."""


C = TypeVar("C", bound=Consumer)


class Turns(Generic[C]):
    """The rings of all queues."""

    def __init__(self) -> None:
        self._rings: dict[str, deque[C]] = {}

    def join(self, consumer: C) -> None:
        """A consumer waits at each of its queues, behind those who wait already."""
        for queue, _ in consumer.queues:
            self._rings.setdefault(queue, deque()).append(consumer)

    def leave(self, consumer: C) -> None:
        """A consumer waits no more; leaving twice does nothing."""
        for queue, _ in consumer.queues:
            ring = self._rings.get(queue)
            if ring is None or consumer not in ring:
                continue
            ring.remove(consumer)
            if not ring:
                del self._rings[queue]

    def consumers(self, queue: str) -> tuple[C, ...]:
        """Everybody who waits at a queue."""
        return tuple(self._rings.get(queue, ()))

    def handles(self, queue: str, name: str) -> bool:
        """Whether anybody who waits at a queue handles this name."""
        for consumer in self._rings.get(queue, ()):
            names = consumer.names_for(queue)
            if names is None or name in names:
                return True
        return False

    def round(self, queue: str) -> Iterator[C]:
        """Those with room, beginning with whose turn it is; each one given moves behind the
        others.
        """
        ring = self._rings.get(queue)
        if ring is None:
            return
        for consumer in tuple(ring):
            if consumer.room()[0] > 0:
                ring.remove(consumer)
                ring.append(consumer)
                yield consumer

    def share_of(self, queue: str, ready: int) -> int:
        """An equal part of what is ready for each who has room; at least one."""
        takers = 0
        for consumer in self._rings.get(queue, ()):
            takers += consumer.room()[0] > 0
            if takers >= ready:
                break
        return max(-(-ready // takers), 1) if takers else 0


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

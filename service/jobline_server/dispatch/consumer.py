"""Consumers: whoever takes jobs, and what decides which jobs it may have."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

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


class Kind(NamedTuple):
    """What decides which jobs of a queue a consumer may have, but for its room and for what is
    reserved for its session.
    """

    names: frozenset[str] | None
    version: str
    payload_bytes_max: int


def kind_of(consumer: Consumer, queue: str) -> Kind:
    """Returns the kind of a consumer at a queue; it never changes."""
    return Kind(consumer.names_for(queue), consumer.version, consumer.payload_bytes_max)


def has_room(consumer: Consumer) -> bool:
    """Returns whether a consumer can take a job now."""
    return is_some(consumer.room())


def is_some(room: Room) -> bool:
    """Returns whether a consumer with this room can take a job."""
    return room[0] > 0 and room[1] > 0

"""Holders: the leases of each worker, and when they end. All of it is bookkeeping that starts
afresh after a restart.

A holder is one worker session on a shard, or one pull. A heartbeat extends all its leases at once,
so it costs one assignment; and the wheel checks holders, not leases, so a job that is leased and
acked within a second never needs a timer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Protocol
from weakref import ReferenceType, ref

from jobline_server.engine import limits
from jobline_server.engine.queue import Queue

# The graces of a holder whose queues have none of their own.
NO_GRACES: Mapping[str, int] = MappingProxyType({})


def graces_in(queues: Mapping[str, Queue], weights: Iterable[tuple[str, int]]) -> Mapping[str, int]:
    """Returns how long jobs wait for a worker whose stream broke, for those of its queues, given as
    (name, weight), that have a time of their own.
    """
    found = [queues[name] for name, _ in weights if name in queues]
    graces = ((queue.name, queue.settings.disconnect_grace_ms) for queue in found)
    return {name: grace_ms for name, grace_ms in graces if grace_ms is not None} or NO_GRACES


class Lease(Protocol):
    """A lease of a holder: on a run of a lot, or on a single job."""

    delivery: int
    lease_ms: int
    deadline_ms: int

    @property
    def queue(self) -> Queue:
        """The queue of its jobs."""

    def open_totals(self) -> tuple[int, int]:
        """Returns the number of jobs that are still leased, and their payload bytes."""

    @property
    def slots(self) -> int:
        """How many places of a window each of its jobs takes."""

    def open_ids(self) -> list[int]:
        """Returns the ids that are still leased."""


class InFlight:
    """The jobs that one consumer holds on all shards, which its window limits. `extra_slots` are
    the places that they take beyond one each. `freed`, if set, is called once, at the next settle.
    """

    __slots__ = ("extra_slots", "freed", "jobs", "payload_bytes")

    def __init__(self) -> None:
        self.jobs = 0
        self.extra_slots = 0
        self.payload_bytes = 0
        self.freed: Callable[[], None] | None = None

    def settle(self, jobs: int, payload_bytes: int) -> None:
        """Subtracts settled jobs and calls `freed`."""
        self.jobs -= jobs
        self.payload_bytes -= payload_bytes
        if self.freed is not None:
            freed, self.freed = self.freed, None
            freed()


class Holder:
    """The leases of one session on one shard, or of one pull.

    `last_seen_ms` is when the session last sent anything (monotonic); leases of a pull are extended
    one by one. `disconnected_ms` is when its stream broke; its leases end `grace_ms` later at the
    latest, or after the time of their queue in `graces`.
    """

    __slots__ = (
        "__weakref__",
        "armed",
        "grace_ms",
        "graces",
        "last_seen_ms",
        "lease_ms_min",
        "leases",
        "disconnected_ms",
        "session_id",
        "in_flight",
        "version",
        "worker",
    )

    def __init__(
        self, worker: str, session: str, version: str = "", *, in_flight: InFlight | None = None
    ) -> None:
        self.worker = worker
        self.version = version
        self.session_id = session
        self.in_flight = in_flight or InFlight()
        self.leases: dict[int, Lease] = {}
        self.last_seen_ms = 0
        self.disconnected_ms: int | None = None
        self.grace_ms = limits.DISCONNECT_GRACE_MS
        self.graces: Mapping[str, int] = NO_GRACES
        self.lease_ms_min = limits.LEASE_MS_MAX
        self.armed: int | None = None

    def add(self, lease: Lease, first_id: int, jobs: int, payload_bytes: int) -> None:
        """Adds a lease."""
        self.leases[first_id] = lease
        self.in_flight.jobs += jobs
        self.in_flight.extra_slots += jobs * (lease.slots - 1)
        self.in_flight.payload_bytes += payload_bytes
        self.lease_ms_min = min(self.lease_ms_min, lease.lease_ms)

    def renew(self, mono_ms: int) -> None:
        """Gives all leases their full time again, as the worker sent something."""
        self.last_seen_ms = mono_ms

    def settle(self, jobs: int, payload_bytes: int) -> None:
        """Frees the room that settled jobs took in the window."""
        self.in_flight.settle(jobs, payload_bytes)

    def free_slots(self, lease: Lease, jobs: int) -> None:
        """Frees the places beyond one that settled jobs of a lease took; call it before `settle`,
        if any job in flight takes more than one.
        """
        self.in_flight.extra_slots -= jobs * (lease.slots - 1)

    def deadline_of(self, lease: Lease) -> int:
        """Returns a time before which no job of this lease expires even if the worker sends nothing
        more, in monotonic milliseconds.
        """
        return self.ends_ms(lease, lease.deadline_ms)

    def ends_ms(self, lease: Lease, ends_ms: int) -> int:
        """Returns when a lease ends whose own end is `ends_ms`: a session's last message may extend
        it, and a broken stream cuts it short.
        """
        if self.session_id:
            ends_ms = max(ends_ms, self.last_seen_ms + lease.lease_ms)
        if self.disconnected_ms is None:
            return ends_ms
        grace_ms = self.grace_ms
        if self.graces:
            grace_ms = self.graces.get(lease.queue.name, grace_ms)
        return min(ends_ms, self.disconnected_ms + grace_ms)

    def count_with(self, in_flight: InFlight) -> None:
        """Moves its leases to the `InFlight` of the stream on which its worker returned."""
        if in_flight is self.in_flight:
            return
        self.in_flight = in_flight
        for lease in self.leases.values():
            jobs, payload_bytes = lease.open_totals()
            in_flight.jobs += jobs
            in_flight.extra_slots += jobs * (lease.slots - 1)
            in_flight.payload_bytes += payload_bytes

    def held(self) -> Iterator[tuple[int, int]]:
        """Yields (id, delivery) of every job it holds."""
        for ids, deliveries in self.held_slices():
            yield from zip(ids, deliveries, strict=True)

    def held_slices(self) -> Iterator[tuple[list[int], list[int]]]:
        """Yields the same as lists of ids and deliveries, in slices: a worker may hold a hundred
        thousand. A job that is settled between two slices is left out of the later ones.
        """
        ids: list[int] = []
        deliveries: list[int] = []
        for first_id in list(self.leases):
            lease = self.leases.get(first_id)
            if lease is None:
                continue
            open_ids = lease.open_ids()
            ids += open_ids
            deliveries += [lease.delivery] * len(open_ids)
            if len(ids) >= limits.HELD_SLICE_LEASES:
                yield ids, deliveries
                ids, deliveries = [], []
        yield ids, deliveries

    def next_check(self) -> int | None:
        """Returns a time before which no lease of this holder can end; None without leases. The
        leases of a session, which may be many, are not examined.
        """
        if not self.leases:
            return None
        if not self.session_id:
            return min(map(self.deadline_of, self.leases.values()))
        ends_ms = self.last_seen_ms + self.lease_ms_min
        if self.disconnected_ms is None:
            return ends_ms
        return min(ends_ms, self.disconnected_ms + min([self.grace_ms, *self.graces.values()]))


class LeaseWheel:
    """Holders by the second in which one of their leases may end. Extending a lease moves no entry:
    a holder that comes up too early is armed again. References are weak, so a holder without leases
    goes away.
    """

    __slots__ = ("_buckets", "_next")

    def __init__(self) -> None:
        self._buckets: dict[int, deque[ReferenceType[Holder]]] = {}
        self._next: int | None = None

    def arm(self, holder: Holder, check_ms: int) -> None:
        """Schedules a check of `holder` within a second after `check_ms`, or earlier."""
        self._put(holder, check_ms // limits.WHEEL_MS + 1)

    def arm_now(self, holder: Holder, mono_ms: int) -> None:
        """Schedules a check of `holder` now."""
        self._put(holder, mono_ms // limits.WHEEL_MS)

    def _put(self, holder: Holder, bucket: int) -> None:
        if holder.armed is not None and holder.armed <= bucket:
            return
        holder.armed = bucket
        self._buckets.setdefault(bucket, deque()).append(ref(holder))
        if self._next is None or bucket < self._next:
            self._next = bucket

    def next_deadline(self) -> int | None:
        """Returns when the next bucket is due; None if the wheel is empty."""
        return None if self._next is None else self._next * limits.WHEEL_MS

    def pop_due(self, mono_ms: int) -> Holder | None:
        """Removes and returns a holder whose bucket is due, the earliest first; None without."""
        now = mono_ms // limits.WHEEL_MS
        while self._next is not None and self._next <= now:
            bucket = self._buckets[self._next]
            while bucket:
                holder = bucket.popleft()()
                # A holder that was armed for an earlier bucket since has another entry.
                if holder is not None and holder.armed == self._next:
                    holder.armed = None
                    return holder
            del self._buckets[self._next]
            self._next = min(self._buckets, default=None)
        return None

"""Holders: who has leases, and until when. All of it is bookkeeping: after a restart it starts
afresh.

A holder is one worker session on a shard, or one pull. It is heard of, or not, as a whole, so a
heartbeat costs one assignment however many leases it keeps alive; and the wheel looks at holders,
not at leases, so a job that is leased and acked within a second never meets a timer at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol
from weakref import ReferenceType, ref

from jobline_server.engine import limits


class Lease(Protocol):
    """What a holder has: a run of a lot's jobs, or a single job."""

    delivery: int
    lease_ms: int
    deadline_ms: int

    def unfinished(self) -> tuple[int, int]:
        """Jobs and payload bytes that are still leased."""

    def open_ids(self) -> list[int]:
        """Ids that are still leased."""


class InFlight:
    """What one consumer has unfinished, over all shards: the other side of its window. `freed` is
    called once, when something of it is settled, if somebody waits for that.
    """

    __slots__ = ("freed", "jobs", "payload_bytes")

    def __init__(self) -> None:
        self.jobs = 0
        self.payload_bytes = 0
        self.freed: Callable[[], None] | None = None

    def settle(self, jobs: int, payload_bytes: int) -> None:
        """Jobs are finished."""
        self.jobs -= jobs
        self.payload_bytes -= payload_bytes
        if self.freed is not None:
            freed, self.freed = self.freed, None
            freed()


class Holder:
    """One session's leases on one shard, or those of one pull.

    `last_seen_ms` is when the worker last sent anything (monotonic); a pull is never heard, its
    leases are extended one by one. `disconnected_ms` is when its stream broke, and `grace_ms` how
    long its leases outlive that.
    """

    __slots__ = (
        "__weakref__",
        "armed",
        "grace_ms",
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
        self.lease_ms_min = limits.LEASE_MS_MAX
        self.armed: int | None = None

    def add(self, lease: Lease, first_id: int, jobs: int, payload_bytes: int) -> None:
        """Takes a lease into its hands."""
        self.leases[first_id] = lease
        self.in_flight.jobs += jobs
        self.in_flight.payload_bytes += payload_bytes
        self.lease_ms_min = min(self.lease_ms_min, lease.lease_ms)

    def hear(self, mono_ms: int) -> None:
        """Notes that the worker sent something: all leases run their length from now."""
        self.last_seen_ms = mono_ms

    def settle(self, jobs: int, payload_bytes: int) -> None:
        """Jobs of a lease are settled: their place in the window is free."""
        self.in_flight.settle(jobs, payload_bytes)

    def deadline_of(self, lease: Lease) -> int:
        """A moment before which this lease does not end if nothing more is heard, in monotonic
        milliseconds.
        """
        return self.ends_ms(lease, lease.deadline_ms)

    def ends_ms(self, lease: Lease, ends_ms: int) -> int:
        """When a lease ends that would end at `ends_ms` by itself: what is heard of a session
        extends all its leases, and a broken stream cuts them short.
        """
        if self.session_id:
            ends_ms = max(ends_ms, self.last_seen_ms + lease.lease_ms)
        return self._cut_short(ends_ms)

    def _cut_short(self, ends_ms: int) -> int:
        if self.disconnected_ms is None:
            return ends_ms
        return min(ends_ms, self.disconnected_ms + self.grace_ms)

    def count_with(self, in_flight: InFlight) -> None:
        """Counts its leases as those of the stream its worker came back on."""
        if in_flight is self.in_flight:
            return
        self.in_flight = in_flight
        for lease in self.leases.values():
            jobs, payload_bytes = lease.unfinished()
            in_flight.jobs += jobs
            in_flight.payload_bytes += payload_bytes

    def held(self) -> Iterator[tuple[int, int]]:
        """(id, delivery) of every lease it holds, listed as they are asked for."""
        for ids, deliveries in self.held_slices():
            yield from zip(ids, deliveries, strict=True)

    def held_slices(self) -> Iterator[tuple[list[int], list[int]]]:
        """The same as ids and deliveries, some at a time: a worker may hold a hundred thousand.
        What is settled between two slices is in none of those that follow.
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
        """A moment before which no lease of this holder can end; None without leases. Of a session,
        which may hold many, they are not looked at.
        """
        if not self.leases:
            return None
        if not self.session_id:
            return min(map(self.deadline_of, self.leases.values()))
        return self._cut_short(self.last_seen_ms + self.lease_ms_min)


class LeaseWheel:
    """Holders by the second in which one of their leases may end, each in one place. Who is taken
    out too early goes back in, so nothing is ever moved when a lease is extended; and who has
    nothing left is forgotten, as the wheel alone keeps nobody alive.
    """

    __slots__ = ("_buckets", "_next")

    def __init__(self) -> None:
        self._buckets: dict[int, deque[ReferenceType[Holder]]] = {}
        self._next: int | None = None

    def arm(self, holder: Holder, check_ms: int) -> None:
        """Has `holder` looked at within a second after `check_ms`, or earlier."""
        self._put(holder, check_ms // limits.WHEEL_MS + 1)

    def arm_now(self, holder: Holder, mono_ms: int) -> None:
        """Has `holder` looked at at once."""
        self._put(holder, mono_ms // limits.WHEEL_MS)

    def _put(self, holder: Holder, bucket: int) -> None:
        if holder.armed is not None and holder.armed <= bucket:
            return
        holder.armed = bucket
        self._buckets.setdefault(bucket, deque()).append(ref(holder))
        if self._next is None or bucket < self._next:
            self._next = bucket

    def next_deadline(self) -> int | None:
        """When the next bucket is due."""
        return None if self._next is None else self._next * limits.WHEEL_MS

    def pop_due(self, mono_ms: int) -> Holder | None:
        """Takes out a holder whose bucket has come, the earliest first; None if there is none."""
        now = mono_ms // limits.WHEEL_MS
        while self._next is not None and self._next <= now:
            bucket = self._buckets[self._next]
            while bucket:
                holder = bucket.popleft()()
                # One that was armed for an earlier bucket since is not here any more.
                if holder is not None and holder.armed == self._next:
                    holder.armed = None
                    return holder
            del self._buckets[self._next]
            self._next = min(self._buckets, default=None)
        return None

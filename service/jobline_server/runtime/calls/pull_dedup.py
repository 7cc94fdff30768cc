"""Replies to pulls by request id, so that a repeated call gets the same leases.

An id belongs to one worker and the queues it asked for: others may use the same one. Only leases
are kept; their jobs are read from the engine again, if they are still held. A repeat that arrives
while the first call waits for jobs waits for its outcome.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from jobline_server.engine.commands import Leased, Pull, RefusalKind, Refused

# Replies that are remembered, and single jobs and runs in them: about 250 and 100 bytes of memory
# each.
REMEMBERED_PULLS_MAX = 10_000
REMEMBERED_LEASES_MAX = 500_000


class Run(NamedTuple):
    """Leases on neighbours under one delivery."""

    first_id: int
    jobs: int
    delivery: int


class PullKey(NamedTuple):
    """Identifies a repeated pull. `scope` hashes worker, queues and request id; `digest` hashes the
    rest of the request except how long it waits, because a repeat has less time left.
    """

    scope: bytes
    digest: bytes

    @classmethod
    def of(cls, pull: Pull) -> PullKey:
        """Returns the key of a pull that has a request id."""
        who = (pull.worker, sorted(name for name, _ in pull.queues), pull.request_id)
        names = sorted(pull.names)
        most = (pull.max_jobs, pull.message_bytes_max)
        how = (pull.queues, most, pull.lease_ms, pull.accepts_runs, names)
        return cls(_hash(who), _hash(how))


@dataclass(slots=True)
class _Told:
    """A reply that was given; `callers` have it, as each repeat gets the same leases."""

    digest: bytes
    runs: list[Run]
    callers: int = 1


@dataclass(slots=True)
class _InFlight:
    """A pull that waits. `give_up` ends it without jobs."""

    digest: bytes
    ended: asyncio.Event
    give_up: Callable[[], None]


class PullDedup:
    """The replies of recent pulls, of which the oldest are forgotten first, and the pulls in
    flight.
    """

    def __init__(self) -> None:
        self._told: OrderedDict[bytes, _Told] = OrderedDict()
        self._leases = 0
        self._in_flight: dict[bytes, _InFlight] = {}

    async def of(self, key: PullKey, until: float) -> list[Run]:
        """Returns the leases of the reply to this pull, once none like it is in flight; none if
        there was no reply: the caller is the first then, and enters `asking` before it waits for
        anything else. Raises `TimeoutError` if one is still in flight at `until`, a time of the
        loop, and `Refused` with IDEMPOTENCY_MISMATCH if another request had the same id.
        """
        if key.scope in self._in_flight:
            async with asyncio.timeout_at(until):
                # If that call was cancelled, the first who wakes asks, and the others wait for it.
                while (asking := self._in_flight.get(key.scope)) is not None:
                    _check_same(asking.digest, key)
                    await asking.ended.wait()
        told = self._told.get(key.scope)
        if told is None:
            return []
        _check_same(told.digest, key)
        return told.runs

    @contextmanager
    def asking(self, key: PullKey, give_up: Callable[[], None]) -> Iterator[None]:
        """Marks this pull as in flight for the length of the block; repeats that wait for it go on
        after that.
        """
        asking = self._in_flight[key.scope] = _InFlight(key.digest, asyncio.Event(), give_up)
        try:
            yield
        finally:
            del self._in_flight[key.scope]
            asking.ended.set()

    def remember(self, key: PullKey, leased: Leased) -> None:
        """Keeps the leases of a reply that is about to be sent; one without leases is not kept."""
        self._forget(key)
        runs = runs_of(leased)
        if not runs:
            return
        self._told[key.scope] = _Told(key.digest, runs)
        self._leases += len(runs)
        while len(self._told) > REMEMBERED_PULLS_MAX or self._leases > REMEMBERED_LEASES_MAX:
            self._leases -= len(self._told.popitem(last=False)[1].runs)

    def tell_again(self, key: PullKey) -> None:
        """Counts another caller that gets the same leases."""
        self._told[key.scope].callers += 1

    def lose(self, key: PullKey) -> bool:
        """Counts off a caller that did not take its reply; returns whether no other has these
        leases. The next repeat leases anew then.
        """
        told = self._told.get(key.scope)
        if told is None:
            return True
        told.callers -= 1
        if told.callers:
            return False
        self._forget(key)
        return True

    def give_up(self, key: PullKey) -> list[Run]:
        """Ends this pull if it is in flight, and forgets its reply; returns the leases of that.
        Raises `Refused` with IDEMPOTENCY_MISMATCH if another request had the same id.
        """
        asking = self._in_flight.get(key.scope)
        if asking is not None:
            _check_same(asking.digest, key)
            asking.give_up()
        told = self._told.get(key.scope)
        if told is None:
            return []
        _check_same(told.digest, key)
        self._forget(key)
        return told.runs

    def _forget(self, key: PullKey) -> None:
        told = self._told.pop(key.scope, None)
        if told is not None:
            self._leases -= len(told.runs)


def _check_same(digest: bytes, key: PullKey) -> None:
    if digest != key.digest:
        message = "another pull of this worker from these queues had this id"
        raise Refused(RefusalKind.IDEMPOTENCY_MISMATCH, message, field="request_id")


def _hash(value: object) -> bytes:
    return blake2b(repr(value).encode(), digest_size=16).digest()


def runs_of(leased: Leased) -> list[Run]:
    """Returns the leases of a reply as runs."""
    runs = [Run(job.id, 1, job.delivery) for job in leased.jobs]
    return runs + [Run(run.first_id, len(run.payloads), run.delivery) for run in leased.runs]


def leases_of(runs: Iterable[Run]) -> Iterator[tuple[int, int]]:
    """Yields (id, delivery) of every job."""
    for first_id, count, delivery in runs:
        for job_id in range(first_id, first_id + count):
            yield job_id, delivery

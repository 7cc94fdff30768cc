"""Replies to pulls, by request id: what a call that is made again is told.

Leases only are kept: what they are on is read again from the engine, if they are still held. A call
that is made again while the first is still waiting for jobs waits for what becomes of that one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from jobline_server.engine.commands import Leased

# Replies that are remembered, and single jobs and runs in them: about 100 bytes of memory each.
REMEMBERED_PULLS_MAX = 10_000
REMEMBERED_LEASES_MAX = 500_000


class Run(NamedTuple):
    """Leases on neighbours under one delivery."""

    first_id: int
    jobs: int
    delivery: int


class Replies:
    """What pulls were told, the oldest forgotten first, and which are still in flight."""

    def __init__(self) -> None:
        self._told: OrderedDict[bytes, list[Run]] = OrderedDict()
        self._leases = 0
        self._in_flight: dict[bytes, asyncio.Event] = {}

    async def of(self, request_id: bytes, until: float) -> list[Run] | None:
        """What a pull with this id was told, as soon as none is in flight; None if none was: the
        caller is the first, and enters `asking` before it waits for anything else. Raises
        `TimeoutError` if one is still in flight at `until`, a time of the loop.
        """
        if request_id in self._in_flight:
            async with asyncio.timeout_at(until):
                # If that call was cancelled, the first who wakes asks, and the others wait for it.
                while request_id in self._in_flight:
                    await self._in_flight[request_id].wait()
        return self._told.get(request_id)

    @contextmanager
    def asking(self, request_id: bytes) -> Iterator[None]:
        """A pull with this id is in flight; however it ends, those who wait for it go on."""
        ended = self._in_flight[request_id] = asyncio.Event()
        try:
            yield
        finally:
            del self._in_flight[request_id]
            ended.set()

    def remember(self, request_id: bytes, leased: Leased) -> None:
        """A pull with this id is about to be told so."""
        self._leases -= len(self._told.pop(request_id, ()))
        runs = self._told[request_id] = runs_of(leased)
        self._leases += len(runs)
        while len(self._told) > REMEMBERED_PULLS_MAX or self._leases > REMEMBERED_LEASES_MAX:
            self._leases -= len(self._told.popitem(last=False)[1])


def runs_of(leased: Leased) -> list[Run]:
    """What was leased, without what it is on."""
    runs = [Run(job.id, 1, job.delivery) for job in leased.jobs]
    return runs + [Run(run.first_id, len(run.payloads), run.delivery) for run in leased.runs]


def leases_of(runs: Iterable[Run]) -> Iterator[tuple[int, int]]:
    """(id, delivery) of every job."""
    for first_id, count, delivery in runs:
        for job_id in range(first_id, first_id + count):
            yield job_id, delivery

"""Confirms: the settles of a stream's frames, each answered after the commit that holds it.

The settles of one frame share one wait, however many they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import NamedTuple

from jobline_server.dispatch.frames import Settle
from jobline_server.dispatch.session import Phase, Session, entries_of
from jobline_server.engine.commands import NotDone, Refused
from jobline_server.engine.values import JobState, SettleOutcome
from jobline_server.runtime.calls.settles import (
    ACKED,
    ACKS_AT_ONCE,
    FAILED,
    ITEMS_AT_ONCE,
    NEVER,
    NOT_FOUND,
    Settles,
)
from jobline_server.runtime.core import Core

# Settles of a frame are decided for so long at a time, and then up to a slice of them more. By the
# clock, for acks may cost nothing or as much as fails do, and each iteration of the loop costs as
# well.
SLICE_SECONDS = 0.005


class Leases(NamedTuple):
    """(id, delivery) of what a settle named: acks, then fails, then releases."""

    leases: list[tuple[int, int]]
    fails_from: int
    releases_from: int


Decided = tuple[int, Leases | None, NotDone, list[int]]
"""The number of a settle; its leases, if the finished file may know more of them; the outcomes that
are not DONE; and the indexes of jobs that it made DEAD. Results and errors are not kept."""


class Confirms:
    """Settles for one session. `ready` is called when confirms wait to be sent, or when it
    `has_failed`: a settle cannot be answered, and the worker must not take silence for an answer.

    `pending` counts what is decided and not confirmed: settles, and outcomes that are not DONE.
    """

    def __init__(
        self,
        core: Core,
        settles: Settles,
        session: Session,
        *,
        ready: Callable[[], None],
    ) -> None:
        self._core = core
        self._settles = settles
        self._session = session
        self._ready = ready
        self.has_failed = False
        self.pending = 0
        self._explaining: set[asyncio.Task[None]] = set()

    def handle(self, settles: Sequence[Settle]) -> Iterator[None]:
        """Decides the settles of a frame. Yields between two slices of many. A session that ended
        meanwhile gets no answer to what is left: its worker says that again on its next stream.
        """
        decided: list[Decided] = []
        due: float | None = None
        for settle in settles:
            self._session.handle_settle()
            exceptions: NotDone = []
            dead: list[int] = []
            for offset, part, in_order in _parts(settle, self._settles):
                if due is None or perf_counter() > due:
                    if due is not None:
                        yield
                    due = perf_counter() + SLICE_SECONDS
                if self._session.phase is Phase.ENDED:
                    return
                outcomes, died = self._decide(part, in_order=in_order)
                exceptions += [(offset + index, outcome) for index, outcome in outcomes]
                dead += [offset + index for index in died]
            self.pending += entries_of(exceptions, dead)
            decided.append((settle.seq, _unknown(settle, exceptions), exceptions, dead))
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.add_done_callback(partial(self._handle_committed, decided))
        self._core.commits.resolve_after_commit([(future, None)])

    def _decide(self, settle: Settle, *, in_order: bool) -> tuple[NotDone, list[int]]:
        exceptions: NotDone = []
        dead: list[int] = []
        offset = len(settle.ack_ids)
        if settle.ack_ids:
            exceptions += self._settles.ack(
                settle.ack_ids, settle.ack_deliveries, settle.results, in_order=in_order
            )
        if settle.fails:
            results = self._settles.fail(settle.fails)
            exceptions += [
                (offset + index, result.outcome)
                for index, result in enumerate(results)
                if result.outcome is not SettleOutcome.DONE
            ]
            dead = [
                offset + index
                for index, result in enumerate(results)
                if result.state is JobState.DEAD
            ]
            offset += len(settle.fails)
        if settle.releases:
            part = self._settles.release(settle.releases)
            exceptions += [(offset + index, outcome) for index, outcome in part]
        return exceptions, dead

    def _handle_committed(self, decided: Sequence[Decided], future: asyncio.Future[None]) -> None:
        if future.exception() is not None:
            self._fail()
            return
        unknown: list[Decided] = []
        for one in decided:
            seq, leases, exceptions, dead = one
            if leases is None:
                self._confirm(seq, exceptions, dead)
            else:
                unknown.append(one)
        if unknown:
            task = asyncio.get_running_loop().create_task(self._explain(unknown))
            self._explaining.add(task)
            task.add_done_callback(self._explaining.discard)
        self._ready()

    async def _explain(self, decided: Sequence[Decided]) -> None:
        """Answers settles of which the finished file may know more."""
        try:
            for seq, leases, exceptions, dead in decided:
                explained = await self._explained(leases, exceptions) if leases else exceptions
                self._confirm(seq, explained, dead)
                self._ready()
        except Exception as error:
            self._fail()
            if not isinstance(error, Refused):
                raise

    def _confirm(self, seq: int, exceptions: NotDone, dead: Sequence[int]) -> None:
        self.pending -= entries_of(exceptions, dead)
        self._session.confirm(seq, exceptions, dead)

    def _fail(self) -> None:
        self.has_failed = True
        self._ready()

    async def _explained(self, settled: Leases, exceptions: NotDone) -> NotDone:
        """What came again is told so, by what it asked for: acks, then fails, then releases."""
        leases, fails_from, releases_from = settled
        explained: NotDone = []
        for start, end, repeated in (
            (0, fails_from, ACKED),
            (fails_from, releases_from, FAILED),
            (releases_from, len(leases), NEVER),
        ):
            part = [(index, outcome) for index, outcome in exceptions if start <= index < end]
            explained += await self._settles.explain_missing(leases, part, repeated=repeated)
        return explained


def _unknown(settle: Settle, exceptions: NotDone) -> Leases | None:
    if not any(outcome is NOT_FOUND for _, outcome in exceptions):
        return None
    acks = list(zip(settle.ack_ids, settle.ack_deliveries, strict=True))
    fails = [(item.id, item.delivery) for item in settle.fails]
    releases = [(item.id, item.delivery) for item in settle.releases]
    return Leases([*acks, *fails, *releases], len(acks), len(acks) + len(fails))


def _parts(settle: Settle, settles: Settles) -> Iterator[tuple[int, Settle, bool]]:
    """A settle in slices: the index of its first item, the slice, and whether its acks are known to
    be in order. Acks that cost little stay together: what is told of them by the stretch is told
    once.
    """
    is_small = _cost(settle) <= ACKS_AT_ONCE
    if is_small or _costs_little(settle, settles):
        yield 0, settle, not is_small
        return
    for start in range(0, len(settle.ack_ids), ACKS_AT_ONCE):
        stop = start + ACKS_AT_ONCE
        ids, deliveries = settle.ack_ids[start:stop], settle.ack_deliveries[start:stop]
        yield start, Settle(0, ids, deliveries, settle.results), False
    offset = len(settle.ack_ids)
    for start in range(0, len(settle.fails), ITEMS_AT_ONCE):
        yield offset + start, Settle(fails=settle.fails[start : start + ITEMS_AT_ONCE]), False
    offset += len(settle.fails)
    for start in range(0, len(settle.releases), ITEMS_AT_ONCE):
        releases = settle.releases[start : start + ITEMS_AT_ONCE]
        yield offset + start, Settle(releases=releases), False


def _costs_little(settle: Settle, settles: Settles) -> bool:
    if settle.fails or settle.releases or settle.results:
        return False
    return settles.cost_little(settle.ack_ids, settle.ack_deliveries)


def _cost(settle: Settle) -> int:
    """As if it were acks alone."""
    items = len(settle.fails) + len(settle.releases)
    return len(settle.ack_ids) + items * ACKS_AT_ONCE // ITEMS_AT_ONCE

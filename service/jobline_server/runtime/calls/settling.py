"""Settling: decides what workers settle, in slices, for calls and for streams alike.

Acks may cost nothing or as much as fails do, so slices are measured by the clock. The time that
settles take of one iteration of the loop is one for all of them: a hundred workers that settle much
hold up others no longer than one does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple

from jobline_server.dispatch.frames import Settle
from jobline_server.engine.commands import FailResult, NotDone
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

# How long settles are decided in one iteration of the loop; each goes on with the slice it is at.
SLICE_SECONDS = 0.005


class Leases(NamedTuple):
    """(id, delivery) of what a settle named: acks, then fails, then releases."""

    leases: list[tuple[int, int]]
    fails_from: int
    releases_from: int


@dataclass(slots=True)
class Settled:
    """What came of a settle. `exceptions` are the outcomes that are not DONE, and `dead` the jobs
    that it made DEAD, by index. `results` has one for each fail, where they are kept. `unknown` are
    its leases, if the ended store may know more of them.
    """

    seq: int
    exceptions: NotDone = field(default_factory=list)
    dead: list[int] = field(default_factory=list)
    results: list[FailResult] = field(default_factory=list)
    unknown: Leases | None = None


class Settling:
    """Decides settles. One for all callers; `settles` decides without slices."""

    def __init__(self, settles: Settles) -> None:
        self.settles = settles
        self._due: float | None = None

    def decide(
        self,
        settles: Sequence[Settle],
        on_settled: Callable[[Settled], None],
        *,
        keeps_results: bool = False,
    ) -> Iterator[None]:
        """Decides settles in their order and calls `on_settled` with what came of each. Yields
        where others are to run; a caller may stop there, and what is left is not decided.
        """
        is_first = True
        for settle in settles:
            settled = Settled(settle.seq)
            for offset, part, in_order in self._parts(settle):
                # Most callers have one slice, which needs no look at the clock.
                if not is_first:
                    yield from self._pauses()
                elif len(settles) > 1 or _cost(settle) > ACKS_AT_ONCE:
                    self._start_time(perf_counter())
                is_first = False
                self._decide(settled, offset, part, in_order=in_order, keeps_results=keeps_results)
            if any(outcome is NOT_FOUND for _, outcome in settled.exceptions):
                settled.unknown = _leases_of(settle)
            on_settled(settled)

    def note_lost(self, settle: Settle, settled: Settled) -> None:
        """Corrects outcomes after the commit: jobs whose shard is not here are LEASE_LOST. What was
        decided on them before their shard was lost may never be stored.
        """
        settled.exceptions = self.settles.with_lost(ids_of(settle), settled.exceptions)
        not_done = {index for index, _ in settled.exceptions}
        settled.dead = [index for index in settled.dead if index not in not_done]

    async def explain(self, settled: Settled) -> NotDone:
        """Returns its exceptions as the ended store knows them: what was settled so before under
        the same lease is ALREADY_DONE.
        """
        if settled.unknown is None:
            return settled.exceptions
        leases, fails_from, releases_from = settled.unknown
        explained: NotDone = []
        for start, end, repeated in (
            (0, fails_from, ACKED),
            (fails_from, releases_from, FAILED),
            (releases_from, len(leases), NEVER),
        ):
            part = [one for one in settled.exceptions if start <= one[0] < end]
            explained += await self.settles.explain_missing(leases, part, repeated=repeated)
        return explained

    def _pauses(self) -> Iterator[None]:
        """Yields until settles have time again. A caller that resumes at once, in the same
        iteration of the loop, is not asked to wait again.
        """
        waited_for = None
        while self._is_time_up() and self._due != waited_for:
            waited_for = self._due
            yield

    def _is_time_up(self) -> bool:
        """Returns whether settles had their time in this iteration of the loop."""
        now = perf_counter()
        return now > self._start_time(now)

    def _start_time(self, now: float) -> float:
        """Begins the time of this iteration, if nobody has; returns when it is over."""
        if self._due is None:
            self._due = now + SLICE_SECONDS
            asyncio.get_running_loop().call_soon(self._renew)
        return self._due

    def _renew(self) -> None:
        self._due = None

    def _decide(
        self, settled: Settled, offset: int, part: Settle, *, in_order: bool, keeps_results: bool
    ) -> None:
        settles, exceptions = self.settles, settled.exceptions
        if part.ack_ids:
            outcomes = settles.ack(
                part.ack_ids, part.ack_deliveries, part.results, in_order=in_order
            )
            exceptions += [(offset + index, outcome) for index, outcome in outcomes]
            offset += len(part.ack_ids)
        if part.fails:
            results = settles.fail(part.fails)
            if keeps_results:
                settled.results += results
            for index, result in enumerate(results, offset):
                if result.outcome is not SettleOutcome.DONE:
                    exceptions.append((index, result.outcome))
                if result.state is JobState.DEAD:
                    settled.dead.append(index)
            offset += len(part.fails)
        if part.releases:
            outcomes = settles.release(part.releases)
            exceptions += [(offset + index, outcome) for index, outcome in outcomes]

    def _parts(self, settle: Settle) -> Iterator[tuple[int, Settle, bool]]:
        """Yields a settle in slices: the index of its first item, the slice, and whether its acks
        are known to be in order. Acks that cost little stay together.
        """
        is_small = _cost(settle) <= ACKS_AT_ONCE
        if is_small or self._costs_little(settle):
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

    def _costs_little(self, settle: Settle) -> bool:
        if settle.fails or settle.releases or settle.results:
            return False
        return self.settles.cost_little(settle.ack_ids, settle.ack_deliveries)


def ids_of(settle: Settle) -> list[int]:
    """Returns the ids of acks, then fails, then releases."""
    fails, releases = (item.id for item in settle.fails), (item.id for item in settle.releases)
    return [*settle.ack_ids, *fails, *releases]


def _leases_of(settle: Settle) -> Leases:
    acks = list(zip(settle.ack_ids, settle.ack_deliveries, strict=True))
    fails = [(item.id, item.delivery) for item in settle.fails]
    releases = [(item.id, item.delivery) for item in settle.releases]
    return Leases([*acks, *fails, *releases], len(acks), len(acks) + len(fails))


def _cost(settle: Settle) -> int:
    """Returns what a settle costs, in acks."""
    items = len(settle.fails) + len(settle.releases)
    return len(settle.ack_ids) + items * ACKS_AT_ONCE // ITEMS_AT_ONCE

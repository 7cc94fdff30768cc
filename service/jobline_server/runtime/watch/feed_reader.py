"""The reader: one watcher's way through the feed, an answer at a time.

An answer holds events up to a size that every client takes, whole batches or parts of one; its
token names exactly what was sent until then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

from jobline_server.engine.values import shard_of
from jobline_server.runtime.watch.position import Position
from jobline_server.runtime.watch.watch_filter import WatchFilter
from jobline_server.wire.event_runs import EventRun

# Batches and runs that are looked at in one iteration of the loop, however few of them are wanted.
RUNS_AT_ONCE = 2_000
# What an event with a text takes in an answer, as so many others: it may be 4 KiB long.
TEXT_EVENTS = 4
# Events of a run that are told one by one are cut at multiples of this: all watchers alike.
EVENTS_TOGETHER = 500
# What a run of events takes beside its runs of ids, as so many of those.
RUN_IDS = 32


class Room(IntEnum):
    """What an answer holds so that it is below the 4 MiB that clients take, with the longest names:
    events one by one, or runs of ids.
    """

    EVENTS = 2_000
    RUNS = 4_000


@dataclass(slots=True)
class Part:
    """Events of a run that are told together: `count` of them, after `skip`. `key` names the run
    among all since the start, and `begun` is the token of the position before its first event.
    """

    key: tuple[int, int]
    run: EventRun
    skip: int
    count: int
    begun: str


class Answer(NamedTuple):
    """Events in order, and where to resume after them."""

    parts: Sequence[Part]
    token: str


class Batch(Protocol):
    """What the reader asks of a batch."""

    @property
    def shard(self) -> int:
        """The number of its shard."""

    @property
    def offset(self) -> int:
        """Its journal row, or the one before if it is not `written`."""

    @property
    def written(self) -> bool:
        """Whether it is in the journal."""

    @property
    def runs(self) -> Sequence[EventRun]:
        """Its events."""


class Batches(Protocol):
    """What the reader asks of the feed."""

    @property
    def end(self) -> int:
        """The number that the next batch will have."""

    def batch(self, number: int) -> Batch | None:
        """A batch; None if it has not happened yet. Raises `Refused` if it is gone."""


class Reader:
    """Call `read` for each answer."""

    def __init__(
        self, batches: Batches, wanted: WatchFilter, position: Position, room: Room
    ) -> None:
        self._batches = batches
        self._wanted = wanted
        self._position = position
        self._room = room
        self._shard = shard_of(wanted.job_id) if wanted.job_id else None
        # How many events of the next batch were told, or passed over.
        self._told = 0

    @property
    def is_at_end(self) -> bool:
        """Whether all that has happened was looked at."""
        return self._position.number == self._batches.end

    def token(self) -> str:
        """Where to resume."""
        position, batch = self._position, self._batches.batch(self._position.number)
        if batch is None:
            return position.token()
        told = max(self._told, position.told_of(batch.shard, written=batch.written))
        if not told:
            return position.token()
        return position.token_within(batch.shard, told, written=batch.written)

    def read(self) -> Answer:
        """The next events that are wanted, none perhaps. Raises `Refused` if they are gone."""
        position = self._position
        parts: list[Part] = []
        room: int = self._room
        looked = 0
        while room > 0 and looked < RUNS_AT_ONCE:
            batch = self._batches.batch(position.number)
            if batch is None:
                break
            looked += 1
            is_told = batch.written and batch.offset <= position.offsets[batch.shard]
            if not is_told and self._shard in {None, batch.shard}:
                runs = batch.runs
                looked += len(runs)
                room = self._take(batch, runs, parts, room)
                if self._told:
                    break
            position.pass_batch(batch.shard, batch.offset, written=batch.written)
        return Answer(parts, self.token())

    def _take(self, batch: Batch, runs: Sequence[EventRun], parts: list[Part], room: int) -> int:
        """Adds what is wanted of a batch, as far as there is room; returns how much is left."""
        position = self._position
        told = max(self._told, position.told_of(batch.shard, written=batch.written))
        self._told = at = 0
        for index, run in enumerate(runs):
            if at + run.total > told:
                key = position.number, index
                for first, count in self._wanted.wanted_runs(run):
                    skip, end = max(told - at, first), first + count
                    while skip < end:
                        if room <= 0:
                            self._told = at + skip
                            return room
                        fits, room = self._fit(run, skip, end - skip, room)
                        begun = position.token_within(batch.shard, at + skip, written=batch.written)
                        parts.append(Part(key, run, skip, fits, begun))
                        skip += fits
            at += run.total
        return room

    def _fit(self, run: EventRun, skip: int, count: int, room: int) -> tuple[int, int]:
        """How many of some events, after the first `skip` of a run, are told together, and how much
        room is left then.
        """
        if self._room is Room.RUNS:
            return count, room - RUN_IDS - min(count, len(run.starts))
        shared = run.shared
        size = TEXT_EVENTS if shared.error is not None or shared.message else 1
        count = min(count, EVENTS_TOGETHER - skip % EVENTS_TOGETHER)
        return count, room - count * size

"""The reader: one watcher's position in the feed; it reads one answer at a time.

An answer holds events up to a size that every client takes: whole batches, or parts of one. Its
token is the exact position after its last event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

from jobline_server.engine.values import shard_of
from jobline_server.runtime.watch.partials import Piece
from jobline_server.runtime.watch.position import Position
from jobline_server.runtime.watch.watch_filter import WatchFilter
from jobline_server.wire.event_runs import EventRun

# Batches and runs checked in one iteration of the loop, however few pass the filter.
RUNS_AT_ONCE = 2_000
# An event with a text counts as this many events of an answer: the text may be 4 KiB long.
TEXT_EVENTS = 4
# Runs sent as single events are cut at multiples of this, so that watchers share the same parts.
EVENTS_TOGETHER = 500
# An event run counts as this many runs of ids, beside its own.
RUN_IDS = 32


class Room(IntEnum):
    """The size of an answer, in single events or in runs of ids: below the 4 MiB that clients take,
    even with the longest names.
    """

    EVENTS = 2_000
    RUNS = 4_000


@dataclass(slots=True)
class Part:
    """Events of a run that are sent together: `count` events after the first `skip`. `key` is
    unique among runs since the start; `begun` is the token of the position before the first event.
    """

    key: tuple[int, int]
    run: EventRun
    skip: int
    count: int
    begun: str


class Answer(NamedTuple):
    """Events in order, and the token to resume after them; or pieces of a job's result."""

    parts: Sequence[Part]
    token: str
    pieces: Sequence[Piece] = ()


class Batch(Protocol):
    """A batch, as the reader needs it."""

    @property
    def shard(self) -> int:
        """Returns the number of its shard."""

    @property
    def offset(self) -> int:
        """Returns its journal row, or the one before if it is not `written`."""

    @property
    def written(self) -> bool:
        """Returns whether it is in the journal."""

    @property
    def runs(self) -> Sequence[EventRun]:
        """Returns its events."""


class Batches(Protocol):
    """The feed, as the reader needs it."""

    @property
    def end(self) -> int:
        """Returns the number of the next batch."""

    def batch(self, number: int) -> Batch | None:
        """Returns a batch; None if it is not there yet. Raises `Refused` if it was dropped."""


class Reader:
    """Reads a watcher's events; call `read` for each answer."""

    def __init__(
        self, batches: Batches, wanted: WatchFilter, position: Position, room: Room
    ) -> None:
        self._batches = batches
        self._wanted = wanted
        self._position = position
        self._room = room
        self._shard = shard_of(wanted.job_id) if wanted.job_id else None
        # How many events of the next batch were sent or skipped.
        self._sent = 0

    @property
    def is_at_end(self) -> bool:
        """Returns whether all batches were read."""
        return self._position.number == self._batches.end

    def offsets(self) -> Sequence[int]:
        """Returns the last row of each shard's journal that was read to its end."""
        return self._position.offsets

    def token(self) -> str:
        """Returns the token to resume from."""
        position, batch = self._position, self._batches.batch(self._position.number)
        if batch is None:
            return position.token()
        sent = max(self._sent, position.sent_of(batch.shard, written=batch.written))
        if not sent:
            return position.token()
        return position.token_within(batch.shard, sent, written=batch.written)

    def read(self) -> Answer:
        """Returns the next events that pass the filter. Raises `Refused` if they were dropped."""
        position = self._position
        parts: list[Part] = []
        room: int = self._room
        checked = 0
        while room > 0 and checked < RUNS_AT_ONCE:
            batch = self._batches.batch(position.number)
            if batch is None:
                break
            checked += 1
            is_sent = batch.written and batch.offset <= position.offsets[batch.shard]
            if not is_sent and self._shard in {None, batch.shard}:
                runs = batch.runs
                checked += len(runs)
                room = self._take(batch, runs, parts, room)
                if self._sent:
                    break
            position.pass_batch(batch.shard, batch.offset, written=batch.written)
        return Answer(parts, self.token())

    def _take(self, batch: Batch, runs: Sequence[EventRun], parts: list[Part], room: int) -> int:
        """Adds the accepted events of a batch while there is room; returns the room left."""
        position = self._position
        sent = max(self._sent, position.sent_of(batch.shard, written=batch.written))
        self._sent = at = 0
        for index, run in enumerate(runs):
            if at + run.total > sent:
                key = position.number, index
                for first, count in self._wanted.wanted_runs(run):
                    skip, end = max(sent - at, first), first + count
                    while skip < end:
                        if room <= 0:
                            self._sent = at + skip
                            return room
                        fits, room = self._fit(run, skip, end - skip, room)
                        begun = position.token_within(batch.shard, at + skip, written=batch.written)
                        parts.append(Part(key, run, skip, fits, begun))
                        skip += fits
            at += run.total
        return room

    def _fit(self, run: EventRun, skip: int, count: int, room: int) -> tuple[int, int]:
        """Returns how many of `count` events, after the first `skip` of a run, are sent together,
        and the room left then.
        """
        if self._room is Room.RUNS:
            return count, room - RUN_IDS - min(count, len(run.starts))
        shared = run.shared
        size = TEXT_EVENTS if shared.error is not None or shared.message else 1
        count = min(count, EVENTS_TOGETHER - skip % EVENTS_TOGETHER)
        return count, room - count * size

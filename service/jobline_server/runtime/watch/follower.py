"""The follower: reads all events of the feed once, for webhooks, and resumes after a restart.

Where it resumes is kept without a write of its own: each shard's checkpoint has the last row of the
journal that was read, and so have the facts by which deliveries begin to wait. So a row is read
again until the deliveries that it causes are on disk. Rows that were folded into tables before they
were read are gone; that can only be after a crash, and is said.
"""

from __future__ import annotations

from collections.abc import Iterable

from jobline_server.engine.commands import Refused
from jobline_server.runtime.core import Core
from jobline_server.runtime.watch.feed import Feed
from jobline_server.runtime.watch.feed_reader import Answer, Reader, Room
from jobline_server.runtime.watch.watch_filter import WatchFilter


class Follower:
    """Reads the feed: call `read`, make its deliveries durable, then call `keep`."""

    def __init__(self, core: Core, feed: Feed) -> None:
        self._core = core
        self._feed = feed
        self._reader: Reader | None = None

    def read(self, told: Iterable[int]) -> tuple[Answer | None, bool]:
        """Returns the next events, None at the end; and whether events before them are gone. `told`
        is what facts say of where to resume, by shard.
        """
        missed = False
        if self._reader is None:
            self._reader, missed = self._begin(list(told))
        try:
            answer = self._reader.read()
        except Refused:
            # It was slower than those that make events, by all that the feed keeps.
            self._reader, missed = self._from_oldest(), True
            answer = self._reader.read()
        if not answer.parts and self._reader.is_at_end:
            return None, missed
        return answer, missed

    def is_at_end(self) -> bool:
        """Returns whether all events so far were read."""
        return self._reader is not None and self._reader.is_at_end

    def told(self) -> tuple[int, ...]:
        """Returns the last row of each shard's journal whose events were all read."""
        return () if self._reader is None else tuple(self._reader.offsets())

    def forget(self) -> None:
        """Has all events read again that are not durable: what was read last was not taken."""
        self._reader = None

    def keep(self) -> None:
        """Has checkpoints keep that all events read so far need not be read again."""
        told = self.told()
        for slot in self._core.slots:
            slot.shard.told_offset = told[slot.number]

    def _begin(self, told: list[int]) -> tuple[Reader, bool]:
        """Returns a reader from where the last life left off; from all that is kept if that is
        unknown, or gone.
        """
        offsets = [0] * self._core.slots.total
        for slot in self._core.slots:
            offsets[slot.number] = slot.shard.told_offset
        if told:
            offsets = list(map(max, offsets, told))
        if not any(offsets):
            return self._from_oldest(), False
        try:
            return self._reader_from(".".join(map(str, offsets))), False
        except Refused:
            # What is in no journal was not read before the first webhook, and is in no offset.
            return self._from_oldest(), not self._feed.has_all_rows(offsets)

    def _from_oldest(self) -> Reader:
        return self._reader_from(self._feed.oldest_token())

    def _reader_from(self, token: str) -> Reader:
        return self._feed.reader(WatchFilter(), token, Room.RUNS)

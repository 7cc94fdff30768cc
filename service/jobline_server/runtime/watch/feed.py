"""The feed: recent committed batches, kept in memory for watchers.

A watcher reads at its own pace from a bounded number of batches. One that falls behind, or resumes
from a batch that was dropped, is refused with OFFSET_GONE. The first answer comes at once and has a
token: a watcher misses nothing after it, even if its connection breaks before an event.

The events of a batch are made once, as runs, and shared by all watchers. After a restart the feed
begins with the batches that are still in the journal. After an hour without a watcher, or before
the first one, no events are made or kept: no watcher has a token that needs them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Sequence

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.effects import Applied
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.core import Core
from jobline_server.runtime.slots import ShardSlot
from jobline_server.runtime.waiting import PacedEvent
from jobline_server.runtime.watch import kept_batches
from jobline_server.runtime.watch.feed_reader import Answer, Reader, Room
from jobline_server.runtime.watch.kept_batches import KeptBatch
from jobline_server.runtime.watch.partials import Partials
from jobline_server.runtime.watch.position import BadToken, Position, parse
from jobline_server.runtime.watch.watch_filter import WatchFilter

# How often a watcher without events gets a heartbeat.
HEARTBEAT_SECONDS = 15.0
# How long batches are kept after the last watcher left, and after a restart.
KEPT_SECONDS = 3_600.0
# Without watchers, up to this many old batches are dropped at each commit.
DROPPED_AT_ONCE = 100
# The shortest time between two answers to a watcher, because each answer costs a write of the
# transport, some 0.1 ms; and that time for each watcher there is, so that all together leave most
# of the loop to others.
GATHER_SECONDS = 0.010
GATHER_SECONDS_EACH = 0.000_5


class Feed:
    """Batches by their number in the feed; numbers only grow. `kept`: batches from before the
    start, in the order of each shard.
    """

    def __init__(self, core: Core, kept: Iterable[KeptBatch] = ()) -> None:
        self._core = core
        self._life = max(slot.shard.epoch for slot in core.slots)
        self._batches: deque[KeptBatch] = deque()
        self._first = 0
        self._bytes = 0
        # By shard: the offset up to which batches were dropped.
        self._gone = core.slots.offsets()
        # Whether a batch that is in no journal was dropped.
        self._volatile_gone = False
        self._held: dict[int, list[Applied]] = {}
        self._news = PacedEvent()
        # Those of watchers that read the pieces of a result, too: each has one of its own.
        self._own_news: set[PacedEvent] = set()
        self._watchers = 0
        self._time = asyncio.get_running_loop().time
        self._wanted_until = 0.0
        core.wants_events = self.is_wanted
        for batch in kept:
            self._gone[batch.shard] = min(self._gone[batch.shard], batch.offset - 1)
            self._keep(batch)
            self._wanted_until = self._time() + KEPT_SECONDS

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Keeps committed batches, drops the oldest over the limit, and wakes the watchers."""
        if not self.is_wanted():
            self._drop(DROPPED_AT_ONCE)
            if not self._batches:
                self._pass_over(batches)
                return
        before = self.end
        for batch in batches:
            if not batch.is_commit and batch.shard.has_uncommitted():
                # Nothing of a job is shown before its push, which may be in the commit under way.
                self._held.setdefault(batch.shard.number, []).extend(batch.applied)
                continue
            applied = batch.applied
            if self._held and _is_last(batch, batches):
                applied = applied + self._held.pop(batch.shard.number, [])
            if applied:
                self._keep(KeptBatch(batch.shard.number, batch.offset, applied))
        if self.end != before:
            self._wake()

    def is_wanted(self) -> bool:
        """Returns whether events are made: there are watchers, or were within the last hour, or
        webhooks are told of them.
        """
        if self._watchers or self._core.load.tells_webhooks:
            return True
        return self._time() < self._wanted_until

    def _pass_over(self, batches: Sequence[CommittedBatch]) -> None:
        """Numbers batches without keeping them."""
        for batch in batches:
            self._held.pop(batch.shard.number, None)
            if batch.applied:
                self._first += 1
                self._gone[batch.shard.number] = batch.offset
                self._volatile_gone |= not batch.is_commit

    def _keep(self, batch: KeptBatch) -> None:
        self._batches.append(batch)
        self._bytes += batch.size
        while (
            len(self._batches) > kept_batches.BATCHES_KEPT_MAX
            or self._bytes > kept_batches.BYTES_KEPT_MAX
        ):
            self._drop(1)

    def _drop(self, count: int) -> None:
        """Drops up to `count` of the oldest batches."""
        for _ in range(min(count, len(self._batches))):
            oldest = self._batches.popleft()
            self._first += 1
            self._bytes -= oldest.size
            self._gone[oldest.shard] = oldest.offset
            self._volatile_gone |= not oldest.written

    @property
    def end(self) -> int:
        """Returns the number of the next batch."""
        return self._first + len(self._batches)

    def batch(self, number: int) -> KeptBatch | None:
        """Returns a batch; None if it is not there yet. Raises `Refused` if it was dropped."""
        if number < self._first:
            raise _gone()
        return self._batches[number - self._first] if number < self.end else None

    def oldest_token(self) -> str:
        """Returns the token of all events that are kept."""
        return Position(self._life, self._first, list(self._gone)).token()

    def has_all_rows(self, offsets: Sequence[int]) -> bool:
        """Returns whether the events of all rows of the journals after these are kept."""
        return all(
            gone <= sent <= now
            for gone, sent, now in zip(self._gone, offsets, self._core.slots.offsets(), strict=True)
        )

    def reader(self, wanted: WatchFilter, token: str, room: Room) -> Reader:
        """Returns a reader that resumes from a token. Raises `Refused` with OFFSET_GONE."""
        return Reader(self, wanted, self._begin(token), room)

    async def watch(
        self,
        wanted: WatchFilter,
        resume_token: str,
        *,
        room: Room,
        partials: Partials | None = None,
    ) -> AsyncGenerator[Answer, None]:
        """Yields events, with the token to resume after them. An answer without events is a
        heartbeat: one when the watch has begun, one when it has caught up with what was there
        (if it resumes), then every 15 s. `room` is the size of an answer. With
        `partials` the pieces of the job's result come too, before the events that follow. Raises
        `Refused` with OFFSET_GONE when the next events are no longer kept, and with
        SHARD_UNAVAILABLE when there will be none, as the job or the queues are not here.
        """
        reader = self.reader(wanted, resume_token, room)
        time = self._time
        news = self._news if partials is None else PacedEvent()
        pieces = None if partials is None else partials.read([wanted.job_id], news.set)
        self._watchers += 1
        if pieces is not None:
            self._own_news.add(news)
        try:
            yield Answer((), reader.token())
            sent_at = time()
            is_behind = bool(resume_token)
            while True:
                read_at = time()
                found = () if pieces is None else pieces.take()
                answer = Answer((), reader.token(), found) if found else reader.read()
                if found or answer.parts or read_at >= sent_at + HEARTBEAT_SECONDS:
                    yield answer
                    sent_at = time()
                elif not reader.is_at_end:
                    # Events that the filter rejects are skipped in slices, too.
                    await asyncio.sleep(0)
                elif is_behind:
                    # No event may tell so: the filter may reject the last ones.
                    yield answer
                    sent_at, is_behind = time(), False
                else:
                    self._check_here(wanted)
                    if await news.is_set_by(sent_at + HEARTBEAT_SECONDS):
                        await asyncio.sleep(max(read_at + self._gather_seconds() - time(), 0))
        finally:
            if pieces is not None:
                pieces.close()
                self._own_news.discard(news)
            self._watchers -= 1
            self._wanted_until = time() + KEPT_SECONDS

    def _gather_seconds(self) -> float:
        return max(GATHER_SECONDS, GATHER_SECONDS_EACH * self._watchers)

    def _check_here(self, wanted: WatchFilter) -> None:
        slots = self._core.slots
        if slots.is_partial:
            slots.check_here([wanted.job_id] if wanted.job_id else [])
            slots.check_any_queue((name, 1) for name in wanted.queues)

    def on_closed(self, _slot: ShardSlot) -> None:
        """A shard was lost: has the watchers check whether they wait for more than that."""
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        for news in self._own_news:
            news.set()

    def _begin(self, token: str) -> Position:
        """Returns where a watch begins: now, or at the position of its token."""
        offsets = self._core.slots.offsets()
        if not token:
            return Position(self._life, self.end, offsets)
        try:
            position = parse(token, len(offsets))
        except BadToken:
            raise Refused(
                RefusalKind.INVALID_FIELD,
                "is not one of this server's",
                field="resume_token",
            ) from None
        if position.life == self._life:
            if not self._first <= position.number <= self.end:
                raise _gone()
        elif self._volatile_gone or not self.has_all_rows(position.offsets):
            raise _gone()
        else:
            position.life, position.number, position.skip = self._life, self._first, 0
        return position


def _is_last(batch: CommittedBatch, batches: Sequence[CommittedBatch]) -> bool:
    """Returns whether a batch is the last of its shard: a commit may have several."""
    return next(other for other in reversed(batches) if other.shard is batch.shard) is batch


def _gone() -> Refused:
    return Refused(
        RefusalKind.OFFSET_GONE, "the events to resume from are gone; list and watch from now"
    )

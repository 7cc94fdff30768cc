"""The commit loop: what the engine decided goes to disk, and only then do others hear of it.

The order of a commit:

1. calls are decided and applied at once; facts gather in their shards
2. when it pays (`storage.commit_timer`), the facts of every shard are cut, in one step: one blob,
   one offset per shard, or several if one blob would be too large; blobs are made in slices, with
   the loop free in between
3. one transaction writes all blobs, fenced and fsynced; meanwhile the next facts gather
4. the shards' committed offsets move
5. the committed batches go to those who keep or watch what happened
6. the calls that waited are answered

A commit that fails for a full disk is tried again until there is room: memory is never rolled
back. A failure that names shards concerns those alone (`failed_writes`). After any other nobody
knows what is on disk, so the loop stops for good, and the process with it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from jobline_server.engine import limits
from jobline_server.engine.entries import Fact
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.commits.cuts import Cut, rows_of
from jobline_server.runtime.commits.disk import Disk
from jobline_server.runtime.commits.failed_writes import FailedWrites
from jobline_server.runtime.commits.meter import CommitMeter
from jobline_server.runtime.commits.replies import give, give_up
from jobline_server.runtime.slots import Answer, ShardSlot, ShardSlots
from jobline_server.storage.commit_timer import BUFFERED_MS_MAX, CommitTimer
from jobline_server.storage.space import Space
from jobline_server.storage.store import DiskFull, JournalRow, ShardsFailed, Store

# How soon a commit that found the disk full is tried again.
FULL_RETRY_SECONDS = 0.2
# The loop's timers tick by the millisecond: what is due so soon is due.
TICK_MS = 1


class Commits:
    """The commit loop. Callers use `request_commit` if nobody waits, `wait` to wait for the commit,
    and `resolve_after_commit` to reply to several callers after it.
    """

    def __init__(
        self,
        store: Store,
        space: Space,
        slots: ShardSlots,
        on_committed: Callable[[Sequence[CommittedBatch]], None],
    ) -> None:
        self._store = store
        self._space = space
        self._slots = slots
        self._on_committed = on_committed
        self._timer = CommitTimer()
        self._noted = False
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_ms = 0.0
        # Of callers that wait for all shards; those of one shard are in its slot.
        self._waiting: list[Answer] = []
        self._committing: list[Answer] | None = None
        self._closing = False
        self.collect: Callable[[], None] = lambda: None
        """Decides what waits for the cut; see `expect`."""
        self._collecting = False
        self.failed: asyncio.Future[None] = self._loop.create_future()
        self.disk = Disk(space)
        self.failed_writes = FailedWrites(store, slots)
        self._writing: list[Sequence[Fact]] = []
        self.waits_for_room = True
        """Whether a write that finds the disk full is tried again; not when the server stops: what
        nobody was told of may go.
        """
        self.commits = 0
        self.meter = CommitMeter()
        self.exclusive = asyncio.Lock()
        """Held while the store writes; a checkpoint takes it between two commits."""

    def request_commit(self) -> None:
        """Has new facts written within milliseconds, although nobody waits for them."""
        if not self._noted:
            self._noted = True
            now_ms = _now_ms()
            self._timer.note(now_ms)
            self._wake_by(now_ms, now_ms + BUFFERED_MS_MAX)

    @property
    def has_crowd(self) -> bool:
        """Returns whether the next commit waits a little for more callers."""
        return self._timer.has_crowd and not self.disk_full and not self.failed.done()

    def expect(self) -> None:
        """Counts a caller whose push `collect` will decide when the next commit is cut."""
        if self._timer.note_callers(_now_ms()):
            self._wake.set()

    async def wait(self, slot: ShardSlot | None = None) -> None:
        """Returns when all that was decided so far is on disk, of one shard or of all that are
        here. Raises `Refused` with STORAGE_FAILED if that will never be known, and with
        SHARD_UNAVAILABLE if the one shard is not served any more.
        """
        if self._noted or self._committing is not None or (slot is not None and slot.is_closed):
            # One future a call: a call that is cancelled takes nobody along.
            future: asyncio.Future[None] = self._loop.create_future()
            self.resolve_after_commit([(future, None)], slot)
            await future

    def resolve_after_commit(
        self, answers: Sequence[Answer], slot: ShardSlot | None = None
    ) -> None:
        """Gives callers their answers at the moment when `wait` would return."""
        if slot is None:
            decided, waiting, committing = self._noted, self._waiting, self._committing
        elif slot.is_closed:
            give_up(answers, partial(self._slots.refusal, slot.number))
            return
        else:
            decided = bool(slot.shard.entries)
            waiting, committing = slot.waiting, slot.committing
        if decided:
            # Those who were expected are counted already.
            if not self._collecting and self._timer.note_callers(_now_ms(), len(answers)):
                self._wake.set()
        elif committing is None:
            give(answers)
            return
        else:
            waiting = committing
        if self.failed.done():
            give_up(answers)
        else:
            waiting += answers

    async def run(self) -> None:
        """Commits until `close`, or until a commit fails."""
        try:
            while await self._until_due():
                async with self.exclusive:
                    await self.commit_once()
        except Exception as error:  # noqa: BLE001  # whatever it was, nobody may be answered now
            self.fail(error)

    def close(self) -> None:
        """Ends the loop after a last commit."""
        self._closing = True
        self.waits_for_room = self.failed_writes.retries = False
        self._wake.set()

    async def _until_due(self) -> bool:
        """Waits until a commit is due; returns False when the loop is closing and nothing is
        left.
        """
        while True:
            due_ms = self._timer.due_ms()
            if due_ms is None and self._closing:
                return False
            if due_ms is not None:
                now_ms = _now_ms()
                if due_ms - now_ms <= TICK_MS or self._closing:
                    return True
                self._wake_by(now_ms, due_ms)
            self._wake.clear()
            await self._wake.wait()
            # Calls that arrived in the same iteration of the loop are decided before the cut.
            await asyncio.sleep(0)

    def _wake_by(self, now_ms: float, at_ms: float) -> None:
        """Wakes the commit loop at a moment, or earlier. There is one timer, because most commits
        go long before theirs is due, and each timer that fires wakes the process.
        """
        if self._alarm is not None:
            if self._alarm_ms <= at_ms:
                return
            self._alarm.cancel()
        self._alarm_ms = at_ms
        self._alarm = self._loop.call_later((at_ms - now_ms) / 1_000, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._wake.set()

    async def commit_once(self, captured: Callable[[], None] | None = None) -> None:
        """Cuts and writes what has gathered; the caller holds `exclusive`. Calls `captured` in the
        same step as the cut, so that it sees the state at the offsets that were cut.
        """
        if self.failed.done():
            # Whatever gathered may be half of something.
            await self.failed
        self._collect()
        self._timer.go()
        self._noted = False
        self._committing, self._waiting = self._waiting, []
        cuts, ceilings = self._cut()
        if captured is not None:
            captured()
        rows = await rows_of(cuts)
        started = time.perf_counter()
        if rows:
            await self._write(rows, ceilings)
        self.commits += 1
        self.meter.add(time.perf_counter() - started, rows)
        batches = [cut.batch for cut in cuts if not cut.batch.slot.is_closed]
        for batch in batches:
            position = batch.slot.position
            position.id_ceiling = ceilings.get(batch.slot.number, position.id_ceiling)
            batch.shard.committed = batch.offset
        self._timer.landed()
        self._on_committed(batches)
        answers, self._committing = self._committing or [], None
        for batch in batches:
            answers += batch.slot.committing or ()
            batch.slot.committing = None
        give(answers)

    def _cut(self) -> tuple[list[Cut], dict[int, int]]:
        cuts: list[Cut] = []
        ceilings: dict[int, int] = {}
        for slot in self._slots:
            shard, position = slot.shard, slot.position
            if not shard.entries:
                continue
            slot.committing, slot.waiting = slot.waiting, []
            for offset, facts, applied in shard.take_all():
                batch = CommittedBatch(slot, offset, applied, is_commit=True)
                cuts.append(Cut(batch, facts))
                self._writing.append(facts)
            if shard.next_sequence + limits.ID_BLOCK // 2 > position.id_ceiling:
                ceilings[slot.number] = position.id_ceiling + limits.ID_BLOCK
        return cuts, ceilings

    async def _write(self, rows: list[JournalRow], ceilings: dict[int, int]) -> None:
        """Tries again for as long as the disk is full; pushes are refused meanwhile. Returns when
        each row is on disk, or its shard not served any more.
        """
        while rows:
            try:
                await self._store.commit(rows, ceilings)
                break
            except ShardsFailed as error:
                rows = await self.failed_writes.rows_left(rows, error)
                left = {row.shard for row in rows}
                ceilings = {shard: ceilings[shard] for shard in left & ceilings.keys()}
            except DiskFull:
                if not self.waits_for_room:
                    raise
                self.disk_full = True
                # Who waits for the next cut is refused now, and not when there is room.
                self._collect()
                # A delete that waits behind this commit needs it out of its way.
                helps = self.disk.may_take_last([*self._writing, *self._gathered()])
                if not (helps and await self._space.give_up_ballast(last=True)):
                    await asyncio.sleep(FULL_RETRY_SECONDS)
        self._writing.clear()
        if not self._space.ballast_stands():
            # This commit took the reserve: what is left of it belongs to acks.
            self.disk_full = True

    def _gathered(self) -> Iterator[Sequence[Fact]]:
        for slot in self._slots:
            yield from (entry.facts for entry in slot.shard.full)
            yield slot.shard.entries

    @property
    def disk_full(self) -> bool:
        """Returns whether pushes are refused because the disk is full."""
        return self.disk.is_full

    @disk_full.setter
    def disk_full(self, is_full: bool) -> None:
        self.disk.is_full = is_full

    def fail(self, error: Exception) -> None:
        """Refuses all callers that wait: nobody is answered from memory that the disk may not
        have.
        """
        give_up([*(self._committing or []), *self._waiting])
        for slot in self._slots:
            give_up([*(slot.committing or []), *slot.waiting])
        if not self.failed.done():
            self.failed.set_exception(error)
        self._collect()

    def _collect(self) -> None:
        self._collecting = True
        try:
            self.collect()
        finally:
            self._collecting = False


def _now_ms() -> float:
    return time.monotonic() * 1_000

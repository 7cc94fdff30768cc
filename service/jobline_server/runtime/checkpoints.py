"""Checkpoints: folds the journal of a shard into tables when that is worth it.

A shard is written in slices between commits. The last slice is taken in the step that cuts a
commit, so the rows are the state at exactly that offset. Before that the ended store is made
durable, because the part of the journal that is cut off could have restored its jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from typing import Protocol

from jobline_server.runtime.checkpoint_pace import GROWTH_MAX, GivenUp, Hurry, Share
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.ended_jobs import EndedJobs
from jobline_server.runtime.ended.reserve import SPARE_BYTES
from jobline_server.runtime.health import Health
from jobline_server.runtime.slots import JournalPosition, ShardSlot
from jobline_server.storage.checkpoint import Checkpoint, LastSlice
from jobline_server.storage.store import DiskFull, Fenced, ShardsFailed
from jobline_server.telemetry.log import logger

LOG = logger("runtime")

# A checkpoint is worth it when a recovery would have to read this much of all shards together, or
# when the last one is this old.
JOURNAL_BYTES_MAX = 256 << 20
CHECKPOINT_AGE_MS_MAX = 60_000
# While the disk is full, all journals are folded, this often.
FULL_RETRY_MS = 10_000
# What is live of them must fit into the room that is left; so much may take the reserve.
LITTLE_BYTES = 1 << 20
# Journals of all shards together that a stop leaves as they are: a start reads them in some tenths
# of a second.
STOP_JOURNAL_BYTES = 32 << 20
# Rows that one truncation deletes: a few milliseconds of the store's time, between two commits.
TRUNCATE_ROWS = 256
# The history may hold a journal that grows up to this; then the queue goes first.
HELD_JOURNAL_BYTES_MAX = 1 << 30


class KeepsHistory(Protocol):
    """Stores events that are made of the journal, which cannot be made again without it."""

    def holds(self, shard: int) -> bool:
        """Returns whether the journal of a shard must be kept, as all that has some events."""

    def give_up(self, shard: int) -> None:
        """Lets the journal of a shard forget what it holds: these events are lost."""

    async def prepare(self, shard: int) -> None:
        """Stores most of a shard's events, so that `finish` has little to do. Raises as that."""

    async def finish(self, shard: int) -> None:
        """Stores all events of a shard that are committed so far, durably. Raises `OSError`."""


class NotStored(Exception):
    """The history could not store events. No harm is done to the store."""


async def _stored(step: Awaitable[None]) -> None:
    """Waits for the history. Raises `NotStored` after any failure: the queue goes on without it."""
    try:
        await step
    except Exception as error:
        raise NotStored from error


class Checkpoints:
    """Takes checkpoints of shards, one at a time."""

    def __init__(self, core: Core, ended: EndedJobs, *, journal_bytes_max: int) -> None:
        self._core = core
        self._ended = ended
        self._journal_bytes_max = journal_bytes_max
        self.history: KeepsHistory | None = None
        """Has to store the events of a journal before that is cut off. Set by the exporter's."""
        self._taking = asyncio.Lock()
        self._hurry = Hurry()
        self._full_until_ms = 0

    def hurry(self) -> None:
        """Ends all rests, also of the checkpoint under way, as no more commits come. Soon after
        that it ends all checkpoints, as a stop must not take long.
        """
        self._hurry.begin()

    def is_worth_it(self, place: JournalPosition, now_ms: int) -> bool:
        """Returns whether a shard's journal is old, or long while all journals together are too
        long.
        """
        if not place.journal_rows:
            return False
        if now_ms - place.checkpoint_ms > CHECKPOINT_AGE_MS_MAX:
            return True
        slots = self._core.slots
        total = slots.journal_bytes()
        return total > self._journal_bytes_max and place.journal_bytes * len(slots) >= total

    def _is_due_for_room(self, now_ms: int) -> bool:
        """Returns whether the disk is full and checkpoints were not tried recently: folding a
        journal makes room for acks.
        """
        if not self._core.commits.disk_full or now_ms < self._full_until_ms:
            return False
        self._full_until_ms = now_ms + FULL_RETRY_MS
        return True

    async def take_last(self) -> int:
        """Takes the checkpoints of a stop; returns of how many shards. Keeps journals that the next
        start reads in a moment: watchers resume from them. On a full disk it would be in vain.
        """
        if self._core.slots.journal_bytes() <= STOP_JOURNAL_BYTES or self._core.commits.disk_full:
            return 0
        return await self.take_due(everything=True)

    async def take_due(self, *, everything: bool = False) -> int:
        """Takes a checkpoint of every shard that is worth one, or of all if the disk is full;
        returns of how many.
        """
        taken = 0
        now = self._core.clock.now()
        everything = everything or self._is_due_for_room(now.mono_ms)
        async with self._taking:
            for slot in self._core.slots:
                place = slot.position
                if slot.is_closed or self._is_held(slot) or self._hurry.is_over:
                    continue
                if self.is_worth_it(place, now.wall_ms) or (everything and place.journal_rows):
                    room = GROWTH_MAX * self._journal_bytes_max
                    share = Share(self._core, room, self._hurry)
                    await self._take(slot, share)
                    taken += 1
        return taken

    def _is_held(self, slot: ShardSlot) -> bool:
        """Returns whether the history needs a journal as it is. The queue needs its disk more."""
        history = self.history
        if history is None or not history.holds(slot.number):
            return False
        if slot.position.journal_bytes > HELD_JOURNAL_BYTES_MAX or self._core.commits.disk_full:
            history.give_up(slot.number)
        return history.holds(slot.number)

    async def _take(self, slot: ShardSlot, share: Share) -> None:
        commits = self._core.commits
        checkpoint = Checkpoint(slot.shard, slot.position.segments)
        try:
            # Nothing is staged in vain, again and again, while one of these finds no room.
            if commits.disk_full:
                await self._ended.writer.sync()
            await self._prepare_history(slot)
            await self._stage(checkpoint, slot, share)
            await self._prepare_history(slot)
            # Most of what ended is durable before commits have to wait for the rest of it. Just
            # before: what completes in between is written too, up to as many as a queue keeps.
            await self._ended.writer.sync()
            async with commits.exclusive:
                await self._finish(checkpoint, slot)
            await self._truncate(slot, share)
        except DiskFull:
            # Acks need the room that is left, and commits go on meanwhile: another time.
            commits.disk_full = True
            checkpoint.abandon()
            await self._drop_staged(slot)
        except GivenUp:
            # As after a crash, the next start drops what is staged.
            LOG.info("a stop leaves a journal to the next start", shard=slot.number)
        except NotStored:
            # The journal is kept, and its events with it.
            LOG.exception("a checkpoint waits for the history", shard=slot.number)
            checkpoint.abandon()
            await self._drop_staged(slot)
        except ShardsFailed as error:
            if error.shards:
                health = Health.FENCED if isinstance(error, Fenced) else Health.UNKNOWN
                self._close(slot, health, error)
            else:
                commits.fail(error)
        except Exception as error:  # noqa: BLE001  # a store that failed once is not written to again
            commits.fail(error)

    def _close(self, slot: ShardSlot, health: Health, error: Exception) -> None:
        """Closes the slot of a lost shard; the process goes on if another one is left."""
        try:
            self._core.commits.failed_writes.close(slot.number, health, error)
        except Exception as last:  # noqa: BLE001  # it was the last one
            self._core.commits.fail(last)

    async def _prepare_history(self, slot: ShardSlot) -> None:
        if self.history is not None:
            await _stored(self.history.prepare(slot.number))

    async def _stage(self, checkpoint: Checkpoint, slot: ShardSlot, share: Share) -> None:
        room = self._room_for_all() if self._core.commits.disk_full else None
        while piece := checkpoint.slice():
            if room is not None:
                room -= sum([len(row.blob) for row in piece.rows])
                if room < 0:
                    raise DiskFull("folding the journal would take more room than there is")
                await self._find_room()
            stage = partial(
                self._core.store.stage,
                slot.number,
                slot.shard.epoch,
                slot.position.generation + 1,
                piece.rows,
                piece.removals,
            )
            await share.write(stage, lambda: checkpoint.progress)

    def _room_for_all(self) -> int | None:
        """Returns what may be staged on a full disk. It is written twice, to the log and to the
        file, and in vain if it does not fit. A little may take the reserve: where so little of a
        journal is live, folding it makes room.
        """
        free = self._core.space.free_bytes()
        return None if free is None else max(free // 2 - SPARE_BYTES, LITTLE_BYTES)

    async def _find_room(self) -> None:
        space = self._core.space
        while (free := space.free_bytes()) is not None and free < 2 * LITTLE_BYTES:
            if not await space.give_up_ballast(last=True):
                raise DiskFull("a checkpoint waits for room")

    async def _finish(self, checkpoint: Checkpoint, slot: ShardSlot) -> None:
        commits, store, place = self._core.commits, self._core.store, slot.position
        captured: list[LastSlice] = []
        try:
            await commits.commit_once(lambda: captured.append(checkpoint.finish()))
        except ShardsFailed as error:
            # What was cut of all shards is on its way to nowhere.
            commits.fail(error)
            raise
        if slot.is_closed:
            # By this very commit.
            return
        last = captured[0]
        chain, rows_before = place.chain, place.journal_rows
        await self._ended.writer.sync()
        if self.history is not None:
            await _stored(self.history.finish(slot.number))
        finish = partial(
            store.finish_checkpoint,
            slot.number,
            slot.shard.epoch,
            place.generation + 1,
            last.offset,
            chain,
            last.rows,
            last.removals,
        )
        await finish()
        place.generation += 1
        place.checkpoint_offset = last.offset
        place.checkpoint_ms = self._core.now().wall_ms
        place.journal_rows -= rows_before
        place.journal_bytes = 0

    async def _drop_staged(self, slot: ShardSlot) -> None:
        """Deletes the rows of an abandoned checkpoint, which makes room for the journal. If even
        that finds no room, the next checkpoint overwrites them.
        """
        with suppress(DiskFull):
            await self._core.store.drop_staged(slot.number)

    async def _truncate(self, slot: ShardSlot, share: Share) -> None:
        truncate = partial(self._core.store.truncate, slot.number, TRUNCATE_ROWS)
        # The checkpoint is finished all the same; what is left over goes with the next one's.
        try:
            with suppress(GivenUp):
                while await share.write(truncate):
                    pass
        except DiskFull:
            self._core.commits.disk_full = True

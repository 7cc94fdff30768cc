"""Checkpoint: a shard's state as rows, written in slices while the shard goes on.

The shard notes what changed since the last checkpoint, and what ended that a checkpoint had written
(`shard.changes`). Slices take from these notes, a bounded piece at a time; what changes again is
noted again, and what ends after its slice is noted as something to remove. `finish` takes all that
is left in one go, so its rows together with those of the slices are the shard's state at one
moment: that of its last taken entries. A job that begins and ends between two checkpoints is in no
note and costs no row.

    checkpoint = Checkpoint(shard, segments)
    while piece := checkpoint.slice():
        await store.stage(…, piece.rows, piece.removals)
    shard.take_entries() → commit                  # in the same turn, before or after:
    last = checkpoint.finish()                     # last.offset is that commit's offset
    await the commit, await store.finish_checkpoint(…, last.offset, chain, last.rows, last.removals)

The finished file must hold all endings up to `last.offset`, durably, before `finish_checkpoint`:
the journal that could tell of them again is cut off then.

If there is no room for a write, `abandon` gives back all notes that were taken, so that the next
checkpoint writes or removes everything again, over what was staged. A crash needs nothing: the
store drops what was staged, and notes are made anew by the journal, from the last finished
checkpoint on.

This neither waits nor knows who calls, and decides nothing about when.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from jobline_server.engine import limits
from jobline_server.engine.keys import KeyTable
from jobline_server.engine.shard import Shard
from jobline_server.storage.codec.stored_jobs import encode_job
from jobline_server.storage.codec.stored_lots import encode_lot
from jobline_server.storage.codec.stored_shard import encode_counters, encode_keys, encode_queue
from jobline_server.storage.producer_rows import encode_producer
from jobline_server.storage.segments import KeySegments
from jobline_server.storage.store import ItemKey, ItemKind, ItemRow

# One job is one item of a slice's budget. A lot costs more by its payloads, large blobs by their
# size, keys and removals less: measured, so that a slice of `limits.SLICE_ITEMS` takes 10 ms at
# most, of the loop as of the store, where commits wait for it.
PAYLOADS_AN_ITEM = 100
BYTES_AN_ITEM = 1_024
KEYS_AN_ITEM = 8
REMOVALS_AN_ITEM = 16
SEGMENT_KEYS_MAX = 8_192
# Slices go once over everything, then over what changed meanwhile, and so on while that is much. A
# shard that changes faster than it is written down is not chased for ever: after so many passes
# slices are twice as large in each pass, until what is left is no more than one of them.
PASSES_ALIKE = 4


@dataclass(slots=True)
class Slice:
    """A piece of a checkpoint to stage."""

    rows: list[ItemRow] = field(default_factory=list)
    removals: list[ItemKey] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.rows or self.removals)


@dataclass(slots=True)
class LastSlice(Slice):
    """The last piece. The checkpoint is the shard's state after the journal's row `offset`."""

    offset: int = 0


@dataclass(slots=True)
class _Taken:
    """Notes that were taken off the shard, to give back if it was in vain."""

    lots: list[int] = field(default_factory=list)
    jobs: list[int] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    deleted_lots: list[int] = field(default_factory=list)
    deleted_jobs: list[int] = field(default_factory=list)
    deleted_queues: list[int] = field(default_factory=list)
    keys: list[tuple[KeyTable, int, list[bytes]]] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)
    ended_segments: list[int] = field(default_factory=list)
    producers: list[bytes] = field(default_factory=list)
    buried_producers: list[int] = field(default_factory=list)


class Checkpoint:
    """One checkpoint of one shard, from its first slice to `finish` or `abandon`."""

    __slots__ = ("_budget", "_passes", "_segments", "_shard", "_taken", "_to_go")

    def __init__(self, shard: Shard, segments: KeySegments) -> None:
        self._shard = shard
        self._segments = segments
        self._taken = _Taken()
        self._budget = 0.0
        self._passes = 0
        self._to_go = 0

    @property
    def passes(self) -> int:
        """How many times slices have begun to go over what there is."""
        return self._passes

    def slice(self, budget_items: int = limits.SLICE_ITEMS) -> Slice:
        """Takes a piece of about this many items, or more if the shard changes too fast for that.
        An empty one says: call `finish`.
        """
        piece = Slice()
        is_new_pass = self._to_go <= 0
        self._passes += is_new_pass
        budget_items <<= max(self._passes - PASSES_ALIKE, 0)
        noted = self._noted()
        if is_new_pass:
            if noted <= budget_items and self._cost() <= budget_items:
                return piece
            self._to_go = noted
        # What was put back needs no removal: all of a slice's notes may come to nothing.
        while noted and not piece:
            self._fill(piece, budget_items)
            left = self._noted()
            self._to_go -= noted - left
            noted = left
        return piece

    def finish(self) -> LastSlice:
        """Takes all that is left. The shard's entries must have been taken in this very turn."""
        shard = self._shard
        if shard.entries:
            raise RuntimeError("a checkpoint ends where the journal does: take the entries first")
        last = LastSlice(offset=shard.next_offset - 1)
        self._fill(last, float("inf"))
        self._end_segments(last)
        counters = encode_counters(shard)
        last.rows.append(ItemRow(shard.number, ItemKind.SHARD, shard.number, counters))
        return last

    def abandon(self) -> None:
        """Gives back what was taken: the next checkpoint writes all of it, and removes all of
        it."""
        shard, changes, taken = self._shard, self._shard.changes, self._taken
        changes.lots.add_many([i for i in taken.lots if i in shard.lots.lots], None)
        changes.jobs.add_many([i for i in taken.jobs if i in shard.jobs], None)
        changes.queues.update(name for name in taken.queues if name in shard.queues)
        changes.deleted_lots += taken.deleted_lots
        changes.deleted_jobs += taken.deleted_jobs
        changes.deleted_queues += taken.deleted_queues
        producers = shard.producers
        producers.unsaved.update((one, None) for one in taken.producers if one in producers.records)
        producers.deleted_item_keys += taken.buried_producers
        for table, bucket, hashes in taken.keys:
            table.unsaved.setdefault(bucket, []).extend(hashes)
        for item_key in taken.segments:
            self._segments.take_back(item_key)
        for item_key in taken.ended_segments:
            self._segments.note(item_key)
        self._taken = _Taken()

    # What there is to do.

    def _noted(self) -> int:
        """How many notes there are on the shard."""
        changes = self._shard.changes
        return (
            len(changes.lots)
            + len(changes.jobs)
            + len(changes.queues)
            + len(changes.deleted_lots)
            + len(changes.deleted_jobs)
            + len(changes.deleted_queues)
            + sum(map(len, self._shard.keys.unsaved.values()))
            + sum(map(len, self._shard.requests.unsaved.values()))
            + len(self._shard.producers.unsaved)
            + len(self._shard.producers.deleted_item_keys)
        )

    def _cost(self) -> int:
        """What the notes will cost, in items of a slice's budget: a lot costs by its payloads."""
        lots = self._shard.lots.lots
        noted = [lots[first_id] for first_id in self._shard.changes.lots]
        payloads = sum(len(lot.payloads) for lot in noted)
        size = sum(len(lot.payloads) * lot.payloads.bytes_max for lot in noted)
        return self._noted() + payloads // PAYLOADS_AN_ITEM + size // BYTES_AN_ITEM

    def _fill(self, piece: Slice, budget: float) -> None:
        """Takes notes while the budget lasts: what ended first, so that what has come back since is
        written over its removal."""
        self._budget = budget
        self._take_buried(piece)
        self._take_queues(piece)
        self._take_lots(piece)
        self._take_jobs(piece)
        self._take_keys(piece, self._shard.keys)
        self._take_keys(piece, self._shard.requests)
        self._take_producers(piece)

    def _take_buried(self, piece: Slice) -> None:
        changes, taken = self._shard.changes, self._taken
        for kind, deleted_item_keys, done in (
            (ItemKind.QUEUE, changes.deleted_queues, taken.deleted_queues),
            (ItemKind.LOT, changes.deleted_lots, taken.deleted_lots),
            (ItemKind.JOB, changes.deleted_jobs, taken.deleted_jobs),
            (ItemKind.PRODUCER, self._shard.producers.deleted_item_keys, taken.buried_producers),
        ):
            if self._budget <= 0 or not deleted_item_keys:
                continue
            most = max(int(min(self._budget * REMOVALS_AN_ITEM, len(deleted_item_keys))), 1)
            chunk = deleted_item_keys[-most:]
            del deleted_item_keys[-most:]
            done.extend(chunk)
            self._budget -= len(chunk) / REMOVALS_AN_ITEM
            keep = self._came_back(chunk) if kind is ItemKind.JOB else ()
            piece.removals += [(kind, key) for key in chunk if key not in keep]

    def _came_back(self, chunk: list[int]) -> set[int]:
        """Jobs that ended and were put back by hand: noted as changed, they will be written over
        their old row. Until then that row is theirs: if they end first, it is removed after all."""
        jobs = self._shard.jobs
        back = {job_id for job_id in chunk if job_id in jobs}
        for job_id in back:
            jobs[job_id].stored = True
        return back

    def _take_queues(self, piece: Slice) -> None:
        shard, noted = self._shard, self._shard.changes.queues
        for name in sorted(noted) if self._budget > 0 else ():
            if self._budget <= 0:
                return
            noted.discard(name)
            queue = shard.queues[name]
            queue.stored = True
            self._taken.queues.append(name)
            self._add(piece, ItemKind.QUEUE, queue.number, encode_queue(queue))

    def _take_lots(self, piece: Slice) -> None:
        lots, noted = self._shard.lots.lots, self._shard.changes.lots
        while noted and self._budget > 0:
            lot = lots[noted.pop()]
            lot.stored = True
            self._taken.lots.append(lot.first_id)
            self._add(piece, ItemKind.LOT, lot.first_id, encode_lot(lot))
            self._budget -= len(lot.payloads) // PAYLOADS_AN_ITEM

    def _take_jobs(self, piece: Slice) -> None:
        jobs, noted = self._shard.jobs, self._shard.changes.jobs
        while noted and self._budget > 0:
            job = jobs[noted.pop()]
            job.stored = True
            self._taken.jobs.append(job.id)
            self._add(piece, ItemKind.JOB, job.id, encode_job(job))

    def _take_keys(self, piece: Slice, keys: KeyTable) -> None:
        while keys.unsaved and self._budget > 0:
            bucket = min(keys.unsaved)
            unsaved = keys.unsaved[bucket]
            most = max(int(min(self._budget * KEYS_AN_ITEM, SEGMENT_KEYS_MAX)), 1)
            hashes = unsaved[-most:]
            del unsaved[-most:]
            if not unsaved:
                del keys.unsaved[bucket]
            self._taken.keys.append((keys, bucket, hashes))
            current = keys.written(bucket, hashes)
            if current:
                item_key = self._segments.add(bucket)
                self._taken.segments.append(item_key)
                blob = encode_keys(bucket, current, requests=keys is self._shard.requests)
                self._add(piece, ItemKind.KEYS, item_key, blob)
            self._budget -= len(hashes) / KEYS_AN_ITEM

    def _take_producers(self, piece: Slice) -> None:
        shard, taken, table = self._shard, self._taken, self._shard.producers
        while table.unsaved and self._budget > 0:
            producer = table.unsaved.popitem()[0]
            taken.producers.append(producer)
            record = table.records[producer]
            record.item_key = record.item_key or shard.id_of(table.new_number())
            self._add(piece, ItemKind.PRODUCER, record.item_key, encode_producer(producer, record))

    def _end_segments(self, piece: Slice) -> None:
        """Segments of hours that ended are removed."""
        shard = self._shard
        forgotten_ms = min(shard.keys.forgotten_ms, shard.requests.forgotten_ms)
        for bucket, item_keys in self._segments.ended(forgotten_ms).items():
            piece.removals += [(ItemKind.KEYS, key) for key in item_keys]
            self._taken.ended_segments += item_keys
            self._segments.forget(bucket)

    def _add(self, piece: Slice, kind: ItemKind, key: int, blob: bytes) -> None:
        piece.rows.append(ItemRow(self._shard.number, kind, key, blob))
        self._budget -= 1 + len(blob) // BYTES_AN_ITEM

"""Recovery: a shard as it was at its last commit, from a checkpoint's items and the journal after
it.

The order, which `recover_shard` follows:

1. items: queues, then lots and jobs, which gather by the order in which they became ready;
2. lanes, in that order, once all items are there;
3. the journal's facts, through the same `apply` that live ones take;
4. the endings that step 3 told of again go to the finished file (`take_endings`): it may hold none,
   some or all of them, and must hold all of them afterwards;
5. `finish`, with the finished file's counts: every lease starts afresh, and the shard is open.

Counts of ended jobs are not stored with a shard. The finished file is the one place that knows what
is kept, so after step 4 its counts are those of the live shard at its last commit, and reading them
once is simpler, and truer, than adding up.

An item whose checksum is wrong is reported and left out. From then on the journal is applied in
`salvage`'s small pieces, and what no longer fits is reported as well. A queue whose own record was
lost comes back paused, with default settings: its jobs must not run under settings nobody chose.

This knows no clock and no file. Whoever feeds it says when now is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from google.protobuf.message import DecodeError

from jobline_server.engine.decide.timers import restart_leases
from jobline_server.engine.endings import Ending
from jobline_server.engine.entries import Fact
from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Load, Shard
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.values import JobState, Now
from jobline_server.storage.codec import decode_batch
from jobline_server.storage.codec.stored_jobs import decode_job
from jobline_server.storage.codec.stored_lots import decode_lot
from jobline_server.storage.codec.stored_shard import decode_counters, decode_keys, decode_queue
from jobline_server.storage.salvage import pieces_of, queues_of
from jobline_server.storage.segments import KeySegments
from jobline_server.storage.store import (
    BadRow,
    DataLoss,
    ItemKind,
    ItemRow,
    JournalRow,
    ShardImage,
    Store,
)

PAUSED_BY = "recovery"
PAUSE_REASON = "the queue's own record was damaged: check its settings before you resume it"


@dataclass(frozen=True, slots=True)
class SetApart:
    """Something that could not be brought back, and why. For a log line; the server goes on."""

    shard: int
    what: str
    why: str


Report = Callable[[SetApart], None]

_KINDS = {int(kind): kind.name.lower() for kind in ItemKind}


class Recovery:
    """One shard on its way back. Call `take_items` for each page, `take_journal` for each page,
    `take_endings`, `finish`, in this order."""

    def __init__(self, image: ShardImage, *, load: Load, report: Report) -> None:
        row = image.row
        self.segments = KeySegments(row.shard)
        self._image = image
        self._report = report
        self._shard = Shard(row.shard, epoch=row.epoch, load=load)
        self._ready: list[Lot | Job] = []
        self._lanes_built = False
        self._damaged = False
        self._take: dict[ItemKind, Callable[[bytes], None]] = {
            ItemKind.SHARD: self._take_counters,
            ItemKind.QUEUE: self._take_queue,
            ItemKind.LOT: self._take_lot,
            ItemKind.JOB: self._take_job,
            ItemKind.KEYS: self._take_keys,
        }

    def take_items(self, page: Sequence[ItemRow | BadRow]) -> None:
        """Takes items. Queues must come before lots and jobs."""
        for row in page:
            if isinstance(row, BadRow):
                self._damaged = True
                what = f"{_name_of(row.kind)} {row.key}"
                self._report(SetApart(row.shard, what, "its checksum is wrong"))
                continue
            if row.kind is ItemKind.KEYS:
                self.segments.note(row.key)
            try:
                self._take[row.kind](row.blob)
            except (DecodeError, LookupError, ValueError) as error:
                message = f"shard {row.shard}: {_name_of(row.kind)} {row.key} cannot be understood"
                raise DataLoss(message) from error

    def take_journal(self, page: Sequence[JournalRow]) -> None:
        """Applies the facts of journal rows, which the store has verified."""
        self._build_lanes()
        replay = self._salvage if self._damaged else self._shard.replay
        for row in page:
            try:
                facts = decode_batch(row.blob)
            except (DecodeError, LookupError, ValueError) as error:
                message = f"shard {row.shard}: journal row {row.offset} cannot be understood"
                raise DataLoss(message) from error
            for fact in facts:
                replay(fact, row.offset)
            self._shard.next_offset = row.offset + 1

    def take_endings(self) -> list[Ending]:
        """What ended since the checkpoint, in order, for the finished file."""
        self._build_lanes()
        return self._shard.take_ended()

    def finish(self, ended: Mapping[str, Mapping[JobState, int]], now: Now) -> Shard:
        """The shard, open. `ended` are the finished file's counts by queue and state."""
        self._build_lanes()
        shard, row = self._shard, self._image.row
        shard.committed = row.offset
        shard.next_offset = row.offset + 1
        shard.next_sequence = max(shard.next_sequence, self._image.first_free_id_sequence)
        shard.revoked.clear()
        shard.take_woken()
        for session in [name for name, holder in shard.holders.items() if not holder.leases]:
            del shard.holders[session]
        for queue in shard.queues.values():
            if not queue.number:
                queue.number = shard.next_id()
                shard.use_ids(queue.number, 1)
            queue.ended = dict(ended.get(queue.name, {}))
            queue.pushed_total = queue.completed_total = queue.failed_total = 0
            queue.touched_ms = now.wall_ms
        restart_leases(shard, now)
        return shard

    # Items.

    def _take_counters(self, blob: bytes) -> None:
        counters = decode_counters(blob)
        shard = self._shard
        shard.next_sequence = counters.next_sequence
        shard.next_order = counters.next_order
        shard.front_order = counters.front_order

    def _take_queue(self, blob: bytes) -> None:
        queue = decode_queue(blob)
        self._shard.queues[queue.name] = queue
        self._shard.use_ids(queue.number, 1)

    def _take_lot(self, blob: bytes) -> None:
        shard = self._shard
        lot = decode_lot(blob, self._queue, self._holder)
        shard.lots.add(lot)
        shard.use_ids(lot.first_id, len(lot.payloads))
        queue, waiting = lot.queue, lot.waiting()
        payload_bytes = lot.bytes_left()
        shard.load.live_jobs += lot.remaining
        shard.load.payload_bytes += payload_bytes
        queue.payload_bytes += payload_bytes
        queue.active += lot.remaining - waiting
        if lot.run_at_ms:
            queue.scheduled += waiting
            shard.schedule(lot.run_at_ms, lot.first_id)
        elif waiting:
            self._ready.append(lot)

    def _take_job(self, blob: bytes) -> None:
        shard = self._shard
        job = decode_job(blob, self._queue, self._holder)
        queue, payload_bytes = job.queue, len(job.payload)
        shard.jobs[job.id] = job
        shard.load.live_jobs += 1
        shard.load.payload_bytes += payload_bytes
        queue.payload_bytes += payload_bytes
        if job.state is JobState.READY:
            self._ready.append(job)
        elif job.state is JobState.SCHEDULED:
            queue.scheduled += 1
            shard.schedule(job.run_at_ms, job.id)
        else:
            queue.active += 1

    def _take_keys(self, blob: bytes) -> None:
        keys = self._shard.keys
        for key_hash, record in decode_keys(blob):
            known = keys.records.get(key_hash)
            self._shard.load.keys += known is None
            # A key that was taken over after its window stands in two segments: the later one
            # counts.
            if known is None or known.expires_ms < record.expires_ms:
                keys.add(key_hash, record, saved=True)

    def _queue(self, name: str) -> Queue:
        queue = self._shard.queues.get(name)
        return self._stand_in(name) if queue is None else queue

    def _stand_in(self, name: str) -> Queue:
        """A queue whose own record was lost. It gets a new number, and is written down again."""
        queue = self._shard.queues[name] = Queue(name, 0, 0)
        queue.paused = True
        queue.paused_by = PAUSED_BY
        queue.pause_reason = PAUSE_REASON
        self._shard.changes.queues.add(name)
        self._report(SetApart(self._shard.number, f"the record of queue {name}", "paused instead"))
        return queue

    def _holder(self, worker: str, session: str) -> Holder:
        if session:
            return self._shard.session_holder(session, worker)
        return Holder(worker, "")

    def _build_lanes(self) -> None:
        """All items are there: what is ready goes to its lane, in the order in which it became
        so."""
        if self._lanes_built:
            return
        self._lanes_built = True
        shard = self._shard
        self._ready.sort(key=attrgetter("order"))
        for item in self._ready:
            item.queue.put(item, item.waiting() if isinstance(item, Lot) else 1)
        if self._ready:
            shard.front_order = min(shard.front_order, self._ready[0].order)
            shard.next_order = max(shard.next_order, self._ready[-1].order)
        self._ready = []
        if shard.jobs:
            shard.use_ids(max(shard.jobs), 1)

    # The journal of a shard that lost items.

    def _salvage(self, fact: Fact, offset: int) -> None:
        for queue in sorted(queues_of(fact)):
            self._queue(queue)
        for piece in pieces_of(fact):
            try:
                self._shard.replay(piece, offset)
            except (IllegalMove, LookupError) as error:
                what = f"a {type(piece).__name__} of journal row {offset}"
                self._report(SetApart(self._shard.number, what, str(error)))


def _name_of(kind: int) -> str:
    return f"{_KINDS.get(kind, kind)} item"


async def recover_shard(store: Store, image: ShardImage, *, load: Load, report: Report) -> Recovery:
    """Steps 1 to 3 for a shard that the store has just opened."""
    recovery = Recovery(image, load=load, report=report)
    async for items in store.items(image.row.shard):
        recovery.take_items(items)
    async for rows in store.journal(image.row.shard):
        recovery.take_journal(rows)
    return recovery

"""Loader: a checkpoint's items become the queues, lots, jobs and keys of a shard.

Items come by kind: the shard's counters, queues, lots, jobs, keys. What is ready gathers until all
items are there, and then goes to its lane in the order in which it became ready.

An item whose checksum is wrong is reported and left out (`damaged` says that it happened). A queue
whose own record was lost comes back paused, with default settings: its jobs must not run under
settings nobody chose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from google.protobuf.message import DecodeError

from jobline_server.engine.apply.bookkeeping import add_lot, count_active
from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lane import place_of
from jobline_server.engine.lot import Lot
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.engine.tables import are_neighbours, part_of
from jobline_server.engine.values import JobState, sequence_of
from jobline_server.storage.codec.stored_jobs import decode_job
from jobline_server.storage.codec.stored_lots import decode_lot
from jobline_server.storage.codec.stored_shard import decode_counters, decode_keys, decode_queue
from jobline_server.storage.producer_rows import decode_producer
from jobline_server.storage.segments import KeySegments
from jobline_server.storage.store import BadRow, DataLoss, ItemKind, ItemRow

PAUSED_BY = "recovery"
PAUSE_REASON = "the queue's own record was damaged: check its settings before you resume it"

# Looking a member up on its enum is dear before Python 3.12.
_ACTIVE, _READY, _SCHEDULED = JobState.ACTIVE, JobState.READY, JobState.SCHEDULED
# Jobs that go into the table together: most are neighbours, in one part of it.
JOBS_AT_ONCE = 10_000
_KINDS = {int(kind): kind.name.lower() for kind in ItemKind}


@dataclass(frozen=True, slots=True)
class SetApart:
    """Something that could not be brought back, and why. For a log line; the server goes on."""

    shard: int
    what: str
    why: str


Report = Callable[[SetApart], None]


class Loader:
    """Fills a shard. Call `take` for each page of items, then `build_lanes`."""

    def __init__(self, shard: Shard, report: Report) -> None:
        self.shard = shard
        self.segments = KeySegments(shard.number)
        self.damaged = False
        self._report = report
        self._ready: list[Lot | Job] = []
        self._take: dict[int, Callable[[Iterator[ItemRow]], None]] = {
            ItemKind.SHARD: self._take_counters,
            ItemKind.QUEUE: self._take_queues,
            ItemKind.LOT: self._take_lots,
            ItemKind.JOB: self._take_jobs,
            ItemKind.KEYS: self._take_keys,
            ItemKind.PRODUCER: self._take_producers,
        }

    def take(self, page: Sequence[ItemRow | BadRow]) -> None:
        """Takes items. Raises `DataLoss` for one whose checksum is right and which still makes no
        sense: a newer version wrote it.
        """
        good: list[ItemRow] = []
        for row in page:
            if isinstance(row, ItemRow):
                good.append(row)
            else:
                self._set_apart(row)
        for kind, rows in groupby(good, attrgetter("kind")):
            at = _At(rows)
            try:
                self._take[kind](at.rows())
            except (DecodeError, LookupError, ValueError) as error:
                what = f"{_name_of(kind)} {at.key}"
                message = f"shard {self.shard.number}: {what} cannot be understood"
                raise DataLoss(message) from error

    def build_lanes(self) -> None:
        """All items are there."""
        shard, ready = self.shard, self._ready
        ready.sort(key=place_of)
        for item in ready:
            item.queue.put(item, item.waiting() if isinstance(item, Lot) else 1)
        if ready:
            shard.next_order = max(shard.next_order, ready[-1].order)
        self._ready = []
        if shard.jobs:
            shard.use_ids(max(shard.jobs), 1)

    def queue_of(self, name: str) -> Queue:
        """The queue with this name; a stand-in if its record was lost, which gets a number later
        and is written down again.
        """
        queue = self.shard.queues.get(name)
        if queue is not None:
            return queue
        queue = self.shard.queues[name] = Queue(name, 0, 0)
        queue.paused = True
        queue.paused_by = PAUSED_BY
        queue.pause_reason = PAUSE_REASON
        self.shard.changes.queues.add(name)
        self._report(SetApart(self.shard.number, f"the record of queue {name}", "paused instead"))
        return queue

    def _holder_of(self, worker: str, session: str, version: str) -> Holder:
        if session:
            return self.shard.clocks.holder_of(session, worker, version)
        return Holder(worker, "", version=version)

    def _set_apart(self, row: BadRow) -> None:
        self.damaged = True
        if row.kind == ItemKind.KEYS:
            self.segments.note(row.key)
        elif row.kind == ItemKind.PRODUCER:
            self._note_producer(row.key)
        what = f"{_name_of(row.kind)} {row.key}"
        self._report(SetApart(row.shard, what, "its checksum is wrong"))

    def _take_counters(self, rows: Iterator[ItemRow]) -> None:
        shard = self.shard
        for row in rows:
            counters = decode_counters(row.blob)
            shard.next_sequence = counters.next_sequence
            shard.next_order = counters.next_order
            shard.age.last_ms = counters.aged_ms
            shard.age.behind_ms = counters.aged_behind_ms

    def _take_queues(self, rows: Iterator[ItemRow]) -> None:
        for row in rows:
            queue = decode_queue(row.blob)
            self.shard.queues[queue.name] = queue
            self.shard.use_ids(queue.number, 1)

    def _take_lots(self, rows: Iterator[ItemRow]) -> None:
        shard = self.shard
        for row in rows:
            lot = decode_lot(row.blob, self.queue_of, self._holder_of)
            add_lot(shard, lot)
            shard.use_ids(lot.first_id, len(lot.payloads))
            queue, waiting, payload_bytes = lot.queue, lot.waiting(), lot.bytes_left()
            shard.load.live_jobs += lot.remaining
            shard.load.payload_bytes += payload_bytes
            queue.payload_bytes += payload_bytes
            count_active(shard, queue, lot.remaining - waiting)
            if lot.run_at_ms:
                queue.counts[_SCHEDULED] += waiting
                shard.schedule(lot.run_at_ms, lot.first_id)
            elif waiting:
                self._ready.append(lot)

    def _take_jobs(self, rows: Iterator[ItemRow]) -> None:
        """The longest of these loops: a million rounds are seconds of the start."""
        jobs, load = self.shard.jobs, self.shard.load
        queue_of, holder_of, ready = self.queue_of, self._holder_of, self._ready.append
        ids_of: dict[Queue, list[int]] = {}
        loaded: list[Job] = []
        for row in rows:
            job = decode_job(row.blob, queue_of, holder_of)
            queue, payload_bytes = job.queue, len(job.payload)
            loaded.append(job)
            ids_of.setdefault(queue, []).append(job.id)
            load.live_jobs += 1
            load.payload_bytes += payload_bytes
            queue.payload_bytes += payload_bytes
            if job.state is _READY:
                ready(job)
            elif job.state is _SCHEDULED:
                queue.counts[_SCHEDULED] += 1
                self.shard.schedule(job.run_at_ms, job.id)
            else:
                queue.counts[_ACTIVE] += 1
                load.active_jobs += 1
        for first in range(0, len(loaded), JOBS_AT_ONCE):
            some = loaded[first : first + JOBS_AT_ONCE]
            some_ids = [job.id for job in some]
            jobs.add_many(some_ids, some, part_of(some_ids))
        for queue, ids in ids_of.items():
            queue.blocks.add(ids, neighbours=are_neighbours(ids))

    def _take_keys(self, rows: Iterator[ItemRow]) -> None:
        shard = self.shard
        for row in rows:
            self.segments.note(row.key)
            are_requests, keys = decode_keys(row.blob)
            table = shard.requests if are_requests else shard.keys
            added = 0
            for key_hash, record in keys:
                known = table.records.get(key_hash)
                # A key that was taken over after its window stands in two segments.
                if known is None or known.expires_ms < record.expires_ms:
                    added += table.add(key_hash, record, saved=True)
            if are_requests:
                shard.load.requests += added
            else:
                shard.load.keys += added

    def _take_producers(self, rows: Iterator[ItemRow]) -> None:
        shard = self.shard
        for row in rows:
            producer, record = decode_producer(row.blob)
            self._note_producer(row.key)
            record.item_key = row.key
            shard.load.calls += shard.producers.add(producer, record)

    def _note_producer(self, item_key: int) -> None:
        """An item key that is not given out again."""
        table = self.shard.producers
        table.last_number = max(table.last_number, sequence_of(item_key))


class _At:
    """Rows, and the key of the one that is being read."""

    __slots__ = ("_rows", "key")

    def __init__(self, rows: Iterable[ItemRow]) -> None:
        self._rows = rows
        self.key = 0

    def rows(self) -> Iterator[ItemRow]:
        for row in self._rows:
            self.key = row.key
            yield row


def _name_of(kind: int) -> str:
    return f"{_KINDS.get(kind, kind)} item"

"""A shard with its store, ended store and buffer, as the runtime runs them, and a crash at will.

`World` does by hand what the runtime does with an event loop: it commits, takes checkpoints in
slices, writes the buffer, and recovers. What the recovered shard must equal is kept aside at each
commit: its image, and how each job that ended is remembered.
"""

from __future__ import annotations

from dataclasses import replace

from jobline_server.engine import limits
from jobline_server.engine.decide.timers import tick
from jobline_server.engine.endings import EndedChange, Ending, JobsEnded, QueueGone, RunsEnded
from jobline_server.engine.load import Load
from jobline_server.engine.records import JobRecord
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState, Now
from jobline_server.storage.checkpoint import Checkpoint
from jobline_server.storage.codec import encode_batch, record_of
from jobline_server.storage.ended_buffer import EndedBuffer
from jobline_server.storage.ended_store import EndedOp
from jobline_server.storage.recovery import Recovery, SetApart, recover_shard
from jobline_server.storage.segments import KeySegments
from jobline_server.storage.store import JournalRow, chain_of
from tests.shard_image import image_of
from tests.storage.ended_store_contract import Reference
from tests.storage.memory_store import MemoryStore, run
from tests.unit.engine.effects_of import take_endings

SHARD = 3

EndedModel = dict[int, tuple[JobState, JobRecord]]
"""How each kept job ended, one by one."""


class World:
    """One shard's life over many processes."""

    shard: Shard
    segments: KeySegments
    chain: int
    generation: int

    def __init__(self, number: int = SHARD) -> None:
        self.number = number
        self.now = Now(limits.EPOCH_ZERO_MS + 1_000 * limits.DAY_MS, 5_000)
        self.store = MemoryStore()
        self.finished = Reference()
        self.unsynced: list[EndedOp] = []
        self.durable_jobs = dict(self.finished.jobs)
        self.buffer = EndedBuffer()
        self.checkpoint: Checkpoint | None = None
        self.ended: EndedModel = {}
        self.reports: list[SetApart] = []
        self.sent: list[tuple[int, int, bytes]] = []
        """Messages: offset, destination, payload."""
        run(self.store.open(self.number + 1))
        self.recover()

    def time_passes(self, passed_ms: int) -> None:
        """Does what has become due."""
        now = self.now
        self.now = Now(now.wall_ms + passed_ms, now.mono_ms + passed_ms)
        while tick(self.shard, self.now):
            pass

    # Commits.

    def commit(self) -> None:
        """Writes what was decided; from now on a crash must not lose it."""
        self._write_journal(self.cut())

    def cut(self) -> JournalRow | None:
        """Takes the entries, as the commit loop does; None if there are none. A crash may
        follow."""
        offset = self.shard.next_offset
        facts = self.shard.take_entries()
        if not facts:
            return None
        blob = encode_batch(facts)
        before, self.chain = self.chain, chain_of(blob, self.chain)
        return JournalRow(self.number, self.shard.epoch, offset, before, self.chain, blob)

    def _write_journal(self, row: JournalRow | None) -> None:
        endings = take_endings(self.shard)
        if row is not None:
            run(self.store.commit([row]))
            self.shard.committed = row.offset
        self.buffer.add(endings)
        for ending in endings:
            _note(self.ended, ending)
        self.image = image_of(self.shard)

    # The ended store.

    def write_buffer(self) -> None:
        """The ended store gets all that ended, without being made durable."""
        ops, trimmed = self.buffer.take()
        assert not trimmed
        self.finished.write(ops)
        self.unsynced += ops

    def sync_finished(self) -> None:
        """What the ended store has is durable."""
        self.write_buffer()
        self.durable_jobs = dict(self.finished.jobs)
        self.unsynced = []

    def kept(self) -> EndedModel:
        """What the ended store says of each job."""
        return {
            job_id: (JobState(row.state), record_of(row, job_id))
            for job_id, row in sorted(self.finished.jobs.items())
        }

    # Checkpoints.

    def stage(self, budget: int) -> bool:
        """One slice of a checkpoint, a new one if none is going on; says whether there was one."""
        if self.checkpoint is None:
            self.checkpoint = Checkpoint(self.shard, self.segments)
        piece = self.checkpoint.slice(budget)
        generation = self.generation + 1
        run(self.store.stage(self.number, self.shard.epoch, generation, piece.rows, piece.removals))
        return bool(piece)

    def finish_checkpoint(self, *, truncate: bool) -> None:
        """The rest of the checkpoint, with the commit it belongs to."""
        checkpoint = self.checkpoint or Checkpoint(self.shard, self.segments)
        row = self.cut()
        last = checkpoint.finish()
        self._write_journal(row)
        assert last.offset == self.shard.committed
        self.sync_finished()
        self.generation += 1
        finish = self.store.finish_checkpoint(
            self.number,
            self.shard.epoch,
            self.generation,
            last.offset,
            self.chain,
            last.rows,
            last.removals,
        )
        run(finish)
        if truncate:
            run(self.store.truncate(self.number, 1_000))
        self.checkpoint = None

    def abandon_checkpoint(self) -> None:
        """There was no room for a write of the checkpoint; what was staged before stays staged."""
        if self.checkpoint is None:
            return
        self.checkpoint.abandon()
        self.checkpoint = None

    # Crashes.

    def crash(self, *, ops_kept: int) -> None:
        """The process is gone. Of what the ended store was not made to keep, a first part is
        there.
        """
        self.sent = [one for one in self.sent if one[0] <= self.shard.committed]
        self.finished.jobs = dict(self.durable_jobs)
        self.finished.write(self.unsynced[:ops_kept])
        self.durable_jobs = dict(self.finished.jobs)
        self.unsynced = []
        self.buffer = EndedBuffer()
        self.checkpoint = None
        # Monotonic clocks begin anywhere, and wall clocks go on.
        self.now = Now(self.now.wall_ms + 700, 90_000)
        self.recover()

    def recover(self) -> None:
        """What a new process does first."""
        epoch = (self.now.wall_ms - limits.EPOCH_ZERO_MS) // limits.SECOND_MS
        image = run(self.store.open_shard(self.number, epoch, limits.ID_BLOCK))
        load = Load()
        recovery: Recovery = run(
            recover_shard(self.store, image, load=load, report=self.reports.append)
        )
        self.buffer.add(recovery.take_endings())
        self.write_buffer()
        self.shard = recovery.finish(self._counts(), self.now)
        self.segments = recovery.segments
        self.chain, self.generation = image.row.chain, image.row.generation
        self.image = image_of(self.shard)

    def _counts(self) -> dict[str, dict[JobState, int]]:
        counts: dict[str, dict[JobState, int]] = {}
        for row in self.finished.jobs.values():
            of_queue = counts.setdefault(row.queue, {})
            state = JobState(row.state)
            of_queue[state] = of_queue.get(state, 0) + 1
        return counts


def _note(model: EndedModel, ending: Ending) -> None:
    """One ending in the plainest way there is."""
    if isinstance(ending, RunsEnded | JobsEnded):
        if ending.kept:
            model.update((record.id, (ending.state, record)) for record in _records(ending))
    elif isinstance(ending, EndedChange):
        for start, count in zip(ending.starts, ending.counts, strict=True):
            for job_id in range(start, start + count):
                known = model.pop(job_id, None)
                if known is not None and ending.state is not None:
                    model[job_id] = (ending.state, known[1])
    elif isinstance(ending, QueueGone):
        for job_id in [i for i, (_, record) in model.items() if record.queue == ending.queue]:
            del model[job_id]


def _records(ending: RunsEnded | JobsEnded) -> list[JobRecord]:
    if isinstance(ending, JobsEnded):
        return [replace(ending.record(job)) for job in ending.jobs]
    lot = ending.lot
    return [
        JobRecord(
            id=job_id,
            queue=lot.queue.name,
            options=lot.payloads.options_of(job_id - lot.first_id, lot.options),
            payload=lot.payloads[job_id - lot.first_id],
            pushed_ms=lot.pushed_ms,
            job_key=lot.payloads.job_key_of(job_id - lot.first_id),
            delivery=ending.delivery,
            worker=ending.worker,
            ended_ms=ending.ended_ms,
            reason=ending.reason,
        )
        for job_id in ending.ids()
    ]

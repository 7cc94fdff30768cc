"""Live jobs of their own ↔ the items of a checkpoint.

Decoding needs two things of the shard it decodes for: its queues by name, and its holders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobline.v1 import job_pb2, store_pb2
from jobline_server.engine.apply.blocked import wait_for_parents
from jobline_server.engine.apply.bookkeeping import count_active
from jobline_server.engine.apply.groups import is_admitted
from jobline_server.engine.changes import Bundle
from jobline_server.engine.job import NO_DETAILS, Details, Job
from jobline_server.engine.parents_left import left_of
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.engine.tables import are_neighbours, part_of
from jobline_server.engine.ties import NO_TIES
from jobline_server.engine.values import JobState, LeaseReason
from jobline_server.storage.codec.records import fill_hand_outs, fill_ties, ties_of
from jobline_server.storage.codec.reports import log_of, phases_of
from jobline_server.storage.codec.shared import interned_options
from jobline_server.storage.kinds.bundles import (
    NEIGHBOUR_BITS,
    encode_bundle,
    in_bundles,
    is_untouched,
    new_bundle,
)
from jobline_server.storage.kinds.by_id import SlicesById
from jobline_server.storage.kinds.groups import note_member
from jobline_server.storage.kinds.loading import HolderOf, Loading, QueueOf
from jobline_server.storage.kinds.table import (
    BUNDLED_AN_ITEM,
    BYTES_AN_ITEM,
    PARENTS_AN_ITEM,
    DurableKind,
    Slice,
)
from jobline_server.storage.segments import KeySegments
from jobline_server.storage.store import ItemKind, ItemRow
from jobline_server.wire.errors import attempt_from_stored
from jobline_server.wire.options import serialized_options

# Enum attribute access is slow before Python 3.12.
_ACTIVE, _READY, _SCHEDULED = JobState.ACTIVE, JobState.READY, JobState.SCHEDULED
_BLOCKED = JobState.BLOCKED
# Jobs that go into the table together: most are neighbours, in one part of it.
JOBS_AT_ONCE = 10_000
_STATES = {int(state): state for state in JobState}
_LEASE_REASONS = {int(reason): reason for reason in LeaseReason}


def encode_job(job: Job) -> bytes:
    """Returns the blob of a live job. Most fields of most jobs are zero, and not even touched."""
    message = store_pb2.StoredJob()
    message.id = job.id
    message.queue = job.queue.name
    message.options = serialized_options(job.options)
    message.payload = job.payload
    message.state = job_pb2.JobState.ValueType(job.state)
    message.pushed_ms = job.pushed_ms
    message.order = job.order
    if job.run_at_ms:
        message.run_at_ms = job.run_at_ms
    if job.job_key:
        message.job_key = job.job_key
    if job.ties is not NO_TIES:
        fill_ties(message, job.ties)
        message.admitted = is_admitted(job)
    if job.state is _BLOCKED:
        message.parents_left.extend(job.details.parents_left)
        message.blocked_until_ms = job.details.blocked_until_ms
    message.lease_reason = job_pb2.LeaseReason.ValueType(job.lease_reason)
    # One that a failed dependency ended may be retried without ever being handed out.
    if job.delivery or job.details.auto_retries:
        fill_hand_outs(message, job)
    if job.ready_ms and job.state in (_READY, _ACTIVE):
        message.waits_from_ms = job.waits_from_ms()
    if job.details.ttl_from_ms:
        message.ttl_from_ms = job.details.ttl_from_ms
    if job.holder is not None:
        message.worker = job.holder.worker
        message.worker_version = job.holder.version
        message.session = job.holder.session_id
        message.lease_ms = job.lease_ms
        message.leased_ms = job.leased_ms
        message.cancel_requested = job.cancel_requested
    return message.SerializeToString()


def decode_job(blob: bytes, queue_of: QueueOf, holder_of: HolderOf) -> Job:
    """Returns the job in a blob, given to its holder if it is ACTIVE."""
    return _job_of(store_pb2.StoredJob.FromString(blob), queue_of, holder_of)


def _job_of(message: store_pb2.StoredJob, queue_of: QueueOf, holder_of: HolderOf) -> Job:
    job = Job(
        message.id,
        queue_of(message.queue),
        interned_options(message.options),
        message.payload,
        message.pushed_ms,
    )
    job.state = _STATES[message.state]
    job.order = message.order
    job.run_at_ms = message.run_at_ms
    job.ready_ms = message.waits_from_ms
    job.job_key = message.job_key
    job.ties = ties_of(message)
    job.lease_reason = _LEASE_REASONS[message.lease_reason]
    job.stored = True
    if message.delivery or message.auto_retries:
        _take_hand_outs(job, message, holder_of)
    if message.ttl_from_ms:
        job.writable_details().ttl_from_ms = message.ttl_from_ms
    if message.parents_left:
        details = job.writable_details()
        details.parents_left = left_of(message.parents_left, job.ties)
        details.blocked_until_ms = message.blocked_until_ms
    return job


def _take_hand_outs(job: Job, message: store_pb2.StoredJob, holder_of: HolderOf) -> None:
    """Reads what only jobs have that were handed out at least once, or put back by themselves."""
    job.delivery = message.delivery
    job.attempts = message.attempts
    job.stalls = message.stalls
    job.releases = message.releases
    has_progress = (
        message.progress or message.progress_message or message.HasField("log") or message.phases
    )
    if has_progress or message.checkpoint or message.history or message.auto_retries:
        details = job.details = Details()
        details.log = log_of(message)
        details.phases = phases_of(message)
        details.progress = message.progress
        details.progress_message = message.progress_message
        details.worker_checkpoint = message.checkpoint
        details.auto_retries = message.auto_retries
        details.history = tuple(map(attempt_from_stored, message.history))
    if job.state is JobState.ACTIVE:
        job.lease_ms = message.lease_ms
        job.leased_ms = message.leased_ms
        job.cancel_requested = message.cancel_requested
        job.holder = holder_of(message.worker, message.session, message.worker_version)
        job.holder.add(job, job.id, 1, len(job.payload))


def _note_tenant(queue: Queue, job: Job) -> None:
    """Counts an ACTIVE job of a fair queue."""
    if queue.fair is not None:
        queue.fair.hand_out(job.ties.group, [job])


def load_jobs(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of jobs. The longest of these loops: a million rounds are seconds of a start."""
    shard, load = loading.shard, loading.shard.load
    queue_of, holder_of, ready = loading.queue_of, loading.holder_of, loading.ready
    ids_of: dict[Queue, list[int]] = {}
    loaded: list[Job] = []
    for row in rows:
        message = store_pb2.StoredJob.FromString(row.blob)
        job = _job_of(message, queue_of, holder_of)
        queue, payload_bytes = job.queue, len(job.payload)
        loaded.append(job)
        ids_of.setdefault(queue, []).append(job.id)
        load.live_jobs += 1
        load.payload_bytes += payload_bytes
        queue.payload_bytes += payload_bytes
        if job.details is not NO_DETAILS:
            shard.count_reports(job.details.report_bytes())
        shard.load.wanted.add(job.ties.parents)
        if job.ties.group:
            note_member(loading, job, is_admitted=message.admitted)
        if job.state is _READY:
            if not job.ties.group:
                ready[queue].append(job)
        elif job.state is _SCHEDULED:
            queue.counts[_SCHEDULED] += 1
            shard.schedule(job.run_at_ms, job.id)
        elif job.state is _BLOCKED:
            queue.counts[_BLOCKED] += 1
            wait_for_parents(shard, [job])
        else:
            count_active(shard, queue, 1)
            _note_tenant(queue, job)
    for first in range(0, len(loaded), JOBS_AT_ONCE):
        some = loaded[first : first + JOBS_AT_ONCE]
        some_ids = [job.id for job in some]
        shard.jobs.add_many(some_ids, some, part_of(some_ids))
        _load_claims(shard, some)
    for queue, ids in ids_of.items():
        queue.blocks.add(ids, neighbours=are_neighbours(ids))


def _load_claims(shard: Shard, jobs: Sequence[Job]) -> None:
    for job in [job for job in jobs if job.ties.unique_key]:
        shard.unique.load(job, shard.jobs.find)


def _save(shard: Shard, job_id: int, job: Job) -> tuple[int, bytes]:
    if isinstance(job.stored, Bundle):
        shard.remove_from_bundle(job.stored)
    job.stored = True
    return job_id, encode_job(job)


class _JobSlices(SlicesById):
    """Writes the jobs that need an item of their own, and the others in new bundles; those that
    stay in a bundle are noted for `BUNDLES`.
    """

    __slots__ = ("_bundled",)

    def __init__(self, shard: Shard, _segments: KeySegments) -> None:
        super().__init__(ItemKind.JOB, shard, shard.jobs, shard.changes.jobs, _save, None)
        self._bundled: list[int] = []

    def cost(self) -> int:
        """See `KindSlices`."""
        jobs = [self._shard.jobs[one] for one in self._changes.to_write]
        size = sum([len(job.payload) for job in jobs])
        parents = sum([_parents_of(job) for job in jobs])
        return self.noted() + size // BYTES_AN_ITEM + parents // PARENTS_AN_ITEM

    def give_back(self) -> None:
        """See `KindSlices`."""
        super().give_back()
        bundles, to_write = self._shard.bundles, self._shard.changes.bundles.to_write
        for first_id in self._bundled:
            if first_id in bundles:
                to_write.add(first_id)
        self._bundled = []

    def _take_changed(self, piece: Slice) -> None:
        shard, to_write = self._shard, self._changes.to_write
        while piece.budget > 0 and to_write:
            new: list[Job] = []
            alone: list[Job] = []
            for job in [shard.jobs[one] for one in to_write.pop_neighbours(NEIGHBOUR_BITS)]:
                if job.stored is True or not is_untouched(job):
                    alone.append(job)
                elif job.stored:
                    shard.changes.bundles.to_write.add(job.stored.first_id)
                else:
                    new.append(job)
            for group in in_bundles(new):
                if len(group) == 1:
                    alone += group
                else:
                    self._take_together(piece, group)
            self._take_alone(piece, alone)

    def _take_together(self, piece: Slice, jobs: list[Job]) -> None:
        bundle = new_bundle(self._shard, jobs)
        self._bundled.append(bundle.first_id)
        blob = encode_bundle(jobs)
        piece.rows.append(ItemRow(self._shard.number, ItemKind.BUNDLE, bundle.first_id, blob))
        piece.budget -= 1 + len(blob) // BYTES_AN_ITEM + len(jobs) / BUNDLED_AN_ITEM

    def _take_alone(self, piece: Slice, jobs: list[Job]) -> None:
        """Takes jobs while the budget lasts, and notes the others again."""
        for index, job in enumerate(jobs):
            if piece.budget <= 0:
                self._changes.to_write.add_many([job.id for job in jobs[index:]], None)
                return
            self._written.append(job.id)
            row = ItemRow(self._shard.number, self._kind, *_save(self._shard, job.id, job))
            piece.rows.append(row)
            piece.budget -= 1 + len(row.blob) // BYTES_AN_ITEM + _parents_of(job) // PARENTS_AN_ITEM


def _parents_of(job: Job) -> int:
    """Returns how many ids of other jobs are in the blob of a job."""
    return len(job.ties.parents) + len(job.details.parents_left)


JOBS = DurableKind(ItemKind.JOB, load=load_jobs, slices=_JobSlices)

"""Live jobs of their own ↔ the blobs of a checkpoint.

Decoding needs two things of the shard it decodes for: its queues by name, and its holders.
"""

from __future__ import annotations

from collections.abc import Callable

from jobline.v1 import job_pb2, store_pb2
from jobline_server.engine.holder import Holder
from jobline_server.engine.job import NO_DETAILS, Details, Job
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import JobState, LeaseReason
from jobline_server.storage.codec.shared import interned_options
from jobline_server.wire.errors import attempt_from_stored, fill_stored_attempt
from jobline_server.wire.options import serialized_options

QueueOf = Callable[[str], Queue]
HolderOf = Callable[[str, str, str], Holder]
"""The holder of a worker's session; without a session, a holder of its own each time."""

_STATES = {int(state): state for state in JobState}
_LEASE_REASONS = {int(reason): reason for reason in LeaseReason}


def encode_job(job: Job) -> bytes:
    """A live job of its own. Most fields of most jobs are zero: they are not even touched."""
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
    message.lease_reason = job_pb2.LeaseReason.ValueType(job.lease_reason)
    if job.delivery:
        fill_hand_outs(message, job)
    if job.holder is not None:
        message.worker = job.holder.worker
        message.worker_version = job.holder.version
        message.session = job.holder.session_id
        message.lease_ms = job.lease_ms
        message.leased_ms = job.leased_ms
        message.cancel_requested = job.cancel_requested
    return message.SerializeToString()


def fill_hand_outs(message: store_pb2.StoredJob, job: Job) -> None:
    """What only jobs have that were handed out at least once."""
    message.delivery = job.delivery
    message.attempts = job.attempts
    message.stalls = job.stalls
    message.releases = job.releases
    details = job.details
    if details is not NO_DETAILS:
        message.progress = details.progress
        message.progress_message = details.progress_message
        message.checkpoint = details.worker_checkpoint
        for attempt in details.history:
            fill_stored_attempt(message.history.add(), attempt)


def decode_job(blob: bytes, queue_of: QueueOf, holder_of: HolderOf) -> Job:
    """The job in a blob, with its holder if it is ACTIVE; the caller puts it where it belongs."""
    message = store_pb2.StoredJob.FromString(blob)
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
    job.job_key = message.job_key
    job.lease_reason = _LEASE_REASONS[message.lease_reason]
    job.stored = True
    if message.delivery:
        _take_hand_outs(job, message, holder_of)
    return job


def _take_hand_outs(job: Job, message: store_pb2.StoredJob, holder_of: HolderOf) -> None:
    """What only jobs have that were handed out at least once."""
    job.delivery = message.delivery
    job.attempts = message.attempts
    job.stalls = message.stalls
    job.releases = message.releases
    if message.progress or message.progress_message or message.checkpoint or message.history:
        details = job.details = Details()
        details.progress = message.progress
        details.progress_message = message.progress_message
        details.worker_checkpoint = message.checkpoint
        details.history = tuple(map(attempt_from_stored, message.history))
    if job.state is JobState.ACTIVE:
        job.lease_ms = message.lease_ms
        job.leased_ms = message.leased_ms
        job.cancel_requested = message.cancel_requested
        job.holder = holder_of(message.worker, message.session, message.worker_version)
        job.holder.add(job, job.id, 1, len(job.payload))

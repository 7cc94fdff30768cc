"""The fields of leased jobs: those that neighbours share, and those of one's own."""

from __future__ import annotations

from jobline.v1 import job_pb2
from jobline_server.engine.commands import LeasedJob, LeasedRun
from jobline_server.engine.values import DEFAULT_OPTIONS, LeaseReason
from jobline_server.wire.options import shared_message
from jobline_server.wire.times import fill_time


def go_together(job: LeasedJob, other: LeasedJob) -> bool:
    """Returns whether two jobs have the same shared fields."""
    return (
        job.options is other.options
        and job.attempt == other.attempt
        and job.reason is other.reason
        and job.lease_ms == other.lease_ms
        and job.queue == other.queue
    )


def shared_by_jobs(job: LeasedJob) -> bytes:
    """Returns the fields that jobs which go together share."""
    message = job_pb2.LeasedJob(
        queue=job.queue,
        attempt=job.attempt,
        reason=job_pb2.LeaseReason.ValueType(job.reason or LeaseReason.FIRST),
        lease_ms=job.lease_ms,
    )
    fill_options(message, job)
    return message.SerializeToString()


def are_told_alike(job: LeasedJob, other: LeasedJob) -> bool:
    """Returns whether two jobs that go together differ in id and payload alone."""
    return (
        job.delivery == other.delivery
        and job.pushed_ms == other.pushed_ms
        and job.job_key == other.job_key
        and job.group == other.group
        and job.worker_checkpoint == other.worker_checkpoint
        and job.phases == other.phases
        and job.continues_group == other.continues_group
    )


def fill_own(message: job_pb2.LeasedJob, job: LeasedJob, last: LeasedJob | None) -> None:
    """Fills in what is a job's own but id and payload, in a message that has that of `last`."""
    message.delivery = job.delivery
    # The other fields are set only where they differ, which is rare.
    if last is None or job.pushed_ms != last.pushed_ms:
        fill_time(message.pushed_at, job.pushed_ms)
    if job.job_key or message.job_key:
        message.job_key = job.job_key
    if job.group or message.group:
        message.group = job.group
    if job.continues_group or message.continues_group:
        message.continues_group = job.continues_group
    if job.worker_checkpoint or message.checkpoint:
        message.checkpoint = job.worker_checkpoint
    if job.phases or message.phase_results:
        message.phase_results[:] = [phase.result for phase in job.phases]


def shared_by_run(run: LeasedRun) -> bytes:
    """Returns the fields that all jobs of a run share when sent as single jobs."""
    message = job_pb2.LeasedJob(
        delivery=run.delivery,
        queue=run.queue,
        attempt=1,
        reason=job_pb2.LEASE_REASON_FIRST,
        lease_ms=run.lease_ms,
    )
    fill_options(message, run)
    fill_time(message.pushed_at, run.pushed_ms)
    return message.SerializeToString()


def fill_options(
    message: job_pb2.LeasedJob | job_pb2.LeasedRun, item: LeasedJob | LeasedRun
) -> None:
    """Writes the options; a worker is told of ONCE also where the queue says so."""
    if item.options is not DEFAULT_OPTIONS:
        message.options.CopyFrom(shared_message(item.options))
    if item.is_once:
        message.options.delivery = job_pb2.DELIVERY_MODE_ONCE

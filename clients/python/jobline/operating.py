"""Messages for the operators' services. Pure; both clients send what is made here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from google.protobuf.field_mask_pb2 import FieldMask

from jobline.enums import JobState
from jobline.times import Seconds, to_duration
from jobline.v1 import dead_letter_service_pb2, job_admin_service_pb2, job_pb2
from jobline.v1 import queue_service_pb2 as queues
from jobline.v1.dead_letter_service_pb2 import DeadFilter
from jobline.v1.job_admin_service_pb2 import JobFilter, JobSelection
from jobline.v1.queue_pb2 import QueueSettings

PAGE_SIZE = 100


def selection(ids: Sequence[int], where: JobFilter | None, *, everything: bool) -> JobSelection:
    """Jobs by id or by filter; `everything` allows a filter without conditions."""
    if where is None and everything and not ids:
        where = JobFilter()
    return JobSelection(ids=ids, filter=where, all=everything)


def get_job(id_: int) -> job_admin_service_pb2.GetJobRequest:
    """Asks for a job by id."""
    return job_admin_service_pb2.GetJobRequest(id=id_)


def get_job_by_key(queue: str, job_key: str) -> job_admin_service_pb2.GetJobRequest:
    """Asks for a job by its idempotency key."""
    key = job_admin_service_pb2.JobKey(queue=queue, key=job_key)
    return job_admin_service_pb2.GetJobRequest(job_key=key)


def list_jobs(
    where: JobFilter | None, *, page_size: int, page_token: str, include_payloads: bool
) -> job_admin_service_pb2.ListJobsRequest:
    """Asks for a page of jobs."""
    return job_admin_service_pb2.ListJobsRequest(
        filter=where,
        page_size=page_size,
        page_token=page_token,
        include_payloads=include_payloads,
    )


def list_dead_jobs(
    where: DeadFilter | None, *, page_size: int, page_token: str, include_payloads: bool
) -> dead_letter_service_pb2.ListDeadJobsRequest:
    """Asks for a page of dead jobs."""
    return dead_letter_service_pb2.ListDeadJobsRequest(
        filter=where,
        page_size=page_size,
        page_token=page_token,
        include_payloads=include_payloads,
    )


def purge_dead_jobs(
    where: DeadFilter | None, *, everything: bool, dry_run: bool, reason: str
) -> dead_letter_service_pb2.PurgeDeadJobsRequest:
    """Asks to delete dead jobs."""
    return dead_letter_service_pb2.PurgeDeadJobsRequest(
        filter=where, all=everything, dry_run=dry_run, reason=reason
    )


def update_queue(
    queue: str, settings: QueueSettings, *, fields: Iterable[str] | None, reason: str
) -> queues.UpdateQueueRequest:
    """Asks to change settings: only `fields`, or all."""
    mask = None if fields is None else FieldMask(paths=fields)
    return queues.UpdateQueueRequest(
        queue=queue, settings=settings, update_mask=mask, reason=reason
    )


def clean_queue(
    queue: str,
    *,
    states: Iterable[JobState],
    older_than: Seconds | None,
    dry_run: bool,
    reason: str,
) -> queues.CleanQueueRequest:
    """Asks to delete ended jobs."""
    return queues.CleanQueueRequest(
        queue=queue,
        states=[job_pb2.JobState.ValueType(state) for state in states],
        older_than=None if older_than is None else to_duration(older_than),
        dry_run=dry_run,
        reason=reason,
    )


def delete_queue(
    queue: str, *, force: bool, dry_run: bool, reason: str
) -> queues.DeleteQueueRequest:
    """Asks to delete a queue; the client has its name twice, because the caller has said it."""
    return queues.DeleteQueueRequest(
        queue=queue, confirm_queue=queue, force=force, dry_run=dry_run, reason=reason
    )

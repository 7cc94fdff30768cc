"""Messages for the operators' services. Pure; both clients send what is made here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from jobline import _codec as codec
from jobline._arguments import duration_given, message_of
from jobline._enums import JobState, JobStateName, all_named, named
from jobline._filters import DeadFilter, F, JobFilter, chosen
from jobline._group_values import GroupSettings, GroupSettingsHow
from jobline._job_log import LogLevel, LogLevelName
from jobline._keywords import refuse_unknown
from jobline._queue_values import QueueSettings, SettingsHow
from jobline._times import Seconds
from jobline.errors import InvalidArgument
from jobline.v1 import dead_letter_service_pb2, job_admin_service_pb2, job_pb2
from jobline.v1 import queue_service_pb2 as queues
from jobline.v1.job_admin_service_pb2 import JobSelection

PAGE_SIZE = 100
# A payload that is not given: None is one.
UNCHANGED: Any = object()


def selection(
    which: Sequence[int | str | JobFilter],
    conditions: Mapping[str, Any],
    *,
    everything: bool,
    function: str,
) -> JobSelection:
    """Returns jobs chosen by id or by filter; `everything` allows a filter without conditions."""
    ids = [one for one in which if isinstance(one, int)]
    wheres = [one for one in which if not isinstance(one, int)]
    given: Sequence[object] = wheres
    for one in given:
        if not isinstance(one, (str, JobFilter)):
            raise InvalidArgument(
                f"{function}() takes ids one by one, or one filter, not {one!r}: "
                f"{function}(1, 2), {function}(*ids)"
            )
    if len(wheres) > 1 or (ids and (wheres or conditions)):
        raise InvalidArgument(f"{function}() takes ids, or one filter: words, JobFilter, keywords")
    where = chosen(JobFilter, wheres[0] if wheres else None, conditions, function)
    if not ids:
        where = _conditions_or_all(
            where, JobFilter(), everything, f"{function}() takes ids or a filter"
        )
    return JobSelection(
        ids=ids, filter=None if where is None else where.to_message(), all=everything
    )


def _conditions_or_all(where: F | None, any_of_them: F, everything: bool, takes: str) -> F:
    """Returns the filter of a call that changes many jobs. Without conditions it needs
    `everything`. The server refuses it too, in the words of the protocol.
    """
    if where is None or where == any_of_them:
        if not everything:
            raise InvalidArgument(f"{takes}; for all of them give everything=True")
        return any_of_them
    return where


def get_job(id_: int) -> job_admin_service_pb2.GetJobRequest:
    """Returns the request for a job by id."""
    return message_of(job_admin_service_pb2.GetJobRequest, id=id_)


def explain_job(id_: int) -> job_admin_service_pb2.ExplainJobRequest:
    """Returns the request for why a job is not running."""
    return message_of(job_admin_service_pb2.ExplainJobRequest, id=id_)


def get_job_log(
    id_: int, after: int, level: LogLevelName
) -> job_admin_service_pb2.GetJobLogsRequest:
    """Returns the request for the log of a job."""
    return message_of(
        job_admin_service_pb2.GetJobLogsRequest,
        id=id_,
        after=after,
        min_level=job_pb2.LogLevel.ValueType(named(LogLevel, level)),
    )


def get_job_by_key(queue: str, job_key: str) -> job_admin_service_pb2.GetJobRequest:
    """Returns the request for a job by its idempotency key."""
    key = message_of(job_admin_service_pb2.JobKey, queue=queue, key=job_key)
    return message_of(job_admin_service_pb2.GetJobRequest, job_key=key)


def get_job_by_unique_key(queue: str, unique_key: str) -> job_admin_service_pb2.GetJobRequest:
    """Returns the request for the job that holds this unique key."""
    key = message_of(job_admin_service_pb2.JobKey, queue=queue, key=unique_key)
    return message_of(job_admin_service_pb2.GetJobRequest, unique_key=key)


def list_jobs(
    where: JobFilter | None, *, page_size: int, page_token: str, include_payloads: bool
) -> job_admin_service_pb2.ListJobsRequest:
    """Returns the request for a page of jobs."""
    return message_of(
        job_admin_service_pb2.ListJobsRequest,
        filter=None if where is None else where.to_message(),
        page_size=page_size,
        page_token=page_token,
        include_payloads=include_payloads,
    )


def list_dead_jobs(
    where: DeadFilter | None, *, page_size: int, page_token: str, include_payloads: bool
) -> dead_letter_service_pb2.ListDeadJobsRequest:
    """Returns the request for a page of dead jobs."""
    return message_of(
        dead_letter_service_pb2.ListDeadJobsRequest,
        filter=None if where is None else where.to_message(),
        page_size=page_size,
        page_token=page_token,
        include_payloads=include_payloads,
    )


def purge_dead_jobs(
    where: DeadFilter | None, *, everything: bool, dry_run: bool, reason: str
) -> dead_letter_service_pb2.PurgeDeadJobsRequest:
    """Returns the request to delete dead jobs. Raises InvalidArgument for all of them without
    `everything`.
    """
    where = _conditions_or_all(where, DeadFilter(), everything, "purge() takes a filter")
    return message_of(
        dead_letter_service_pb2.PurgeDeadJobsRequest,
        filter=where.to_message(),
        all=everything,
        dry_run=dry_run,
        reason=reason,
    )


def update_queue(
    queue: str, settings: QueueSettings | None, changes: SettingsHow, *, reason: str
) -> queues.UpdateQueueRequest:
    """Returns the request to change settings: all of them, or those in `changes`."""
    refuse_unknown(changes, SettingsHow.__annotations__, "update")
    if (settings is None) is not bool(changes):
        raise InvalidArgument("update() takes a QueueSettings, or settings as keywords")
    mask = FieldMask(paths=sorted(changes)) if changes else None
    message = (settings or QueueSettings(**changes)).to_message()
    return message_of(
        queues.UpdateQueueRequest, queue=queue, settings=message, update_mask=mask, reason=reason
    )


def update_group(
    queue: str,
    group: str,
    settings: GroupSettings | None,
    changes: GroupSettingsHow,
    *,
    reason: str,
) -> queues.UpdateGroupRequest:
    """Returns the request to change settings of a group: all of them, or those in `changes`."""
    refuse_unknown(changes, GroupSettingsHow.__annotations__, "update")
    if (settings is None) is not bool(changes):
        raise InvalidArgument("update() takes a GroupSettings, or settings as keywords")
    return message_of(
        queues.UpdateGroupRequest,
        queue=queue,
        group=group,
        settings=(settings or GroupSettings(**changes)).to_message(),
        update_mask=FieldMask(paths=sorted(changes)) if changes else None,
        reason=reason,
    )


def clean_queue(
    queue: str,
    *,
    state: JobStateName | Iterable[JobStateName],
    older: Seconds | None,
    dry_run: bool,
    reason: str,
) -> queues.CleanQueueRequest:
    """Returns the request to delete ended jobs."""
    return message_of(
        queues.CleanQueueRequest,
        queue=queue,
        states=[job_pb2.JobState.ValueType(one) for one in all_named(JobState, state)],
        older_than=duration_given("older", older),
        dry_run=dry_run,
        reason=reason,
    )


def delete_queue(
    queue: str, *, force: bool, dry_run: bool, reason: str
) -> queues.DeleteQueueRequest:
    """Returns the request to delete a queue; it has the name twice, as its confirmation."""
    return message_of(
        queues.DeleteQueueRequest,
        queue=queue,
        confirm_queue=queue,
        force=force,
        dry_run=dry_run,
        reason=reason,
    )


def update_job(
    id_: int, payload: Any, priority: int | None, delay: Seconds | None, reason: str
) -> job_admin_service_pb2.UpdateJobRequest:
    """Returns the request to change a job."""
    return message_of(
        job_admin_service_pb2.UpdateJobRequest,
        id=id_,
        payload=None if payload is UNCHANGED else codec.encode(payload)[0],
        priority=priority,
        delay=duration_given("delay", delay),
        reason=reason,
    )


def forget_key(queue: str, job_key: str, reason: str) -> job_admin_service_pb2.ForgetKeyRequest:
    """Returns the request to forget a key."""
    key = message_of(job_admin_service_pb2.JobKey, queue=queue, key=job_key)
    return message_of(job_admin_service_pb2.ForgetKeyRequest, job_key=key, reason=reason)


def forget_unique_key(
    queue: str, unique_key: str, reason: str
) -> job_admin_service_pb2.ForgetKeyRequest:
    """Returns the request to free a unique key."""
    key = message_of(job_admin_service_pb2.JobKey, queue=queue, key=unique_key)
    return message_of(job_admin_service_pb2.ForgetKeyRequest, unique_key=key, reason=reason)

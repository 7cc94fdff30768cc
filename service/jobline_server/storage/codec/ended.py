"""Jobs that ended ↔ the blobs of the ended store: one job, or a run of members of a lot.

Any job is read back as a `JobRecord`, also one within a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jobline.v1 import job_pb2, store_pb2
from jobline_server.engine.endings import JobsEnded, RunsEnded
from jobline_server.engine.job import NO_DETAILS, Job
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.records import JobRecord
from jobline_server.engine.ties import NO_TIES
from jobline_server.engine.values import EndReason
from jobline_server.storage.codec.records import (
    fill_hand_outs,
    fill_last_error,
    fill_ties,
    record_from_stored,
)
from jobline_server.storage.codec.shared import fill_payloads, interned_options, payloads_of
from jobline_server.storage.ended_store import EndedRow
from jobline_server.wire.options import serialized_options


class EndedRun(NamedTuple):
    """The jobs of a row: the record of the first one, without payload and what it has of its own;
    the payloads of all, with that; and when each ended, empty if all did when the record says.
    """

    record: JobRecord
    payloads: Payloads
    ended_ms: Sequence[int]


def encode_ended_job(ending: JobsEnded, job: Job) -> bytes:
    """Returns the blob of one job that ended, the same as from `ending.record(job)`. Many end at
    once, so it is made from the job, and fields that most jobs do not have are not touched.
    """
    ended = store_pb2.StoredEnded()
    message = ended.job
    message.id = job.id
    message.queue = job.queue.name
    message.options = serialized_options(job.options)
    message.payload = job.payload
    message.state = job_pb2.JobState.ValueType(ending.state)
    message.pushed_ms = job.pushed_ms
    message.ended_ms = ending.ended_ms
    message.lease_reason = job_pb2.LeaseReason.ValueType(job.lease_reason)
    if job.job_key:
        message.job_key = job.job_key
    if job.ties is not NO_TIES:
        fill_ties(message, job.ties)
    if job.delivery or job.details is not NO_DETAILS:
        fill_hand_outs(message, job)
    if job.holder is not None:
        message.worker = job.holder.worker
    result = ending.results.get(job.id)
    if result:
        message.result = result
    if ending.reason:
        message.reason = job_pb2.EndReason.ValueType(ending.reason)
    fill_last_error(message, ending.error, job.details.history)
    if ending.settings is not None:
        message.retry_ms = ending.retry_ms(job) or 0
    return ended.SerializeToString()


def encode_ended_run(
    ending: RunsEnded, first_id: int, count: int, ended_ms: Sequence[int] = ()
) -> bytes:
    """Returns the blob of consecutive jobs of a lot that ended alike; `ended_ms` is when each did,
    empty if all did at once."""
    lot = ending.lot
    message = store_pb2.StoredEnded()
    run = message.run
    run.options = serialized_options(lot.options)
    fill_payloads(run, ending.payloads(first_id, count))
    run.count = count
    run.pushed_ms = lot.pushed_ms
    run.delivery = ending.delivery
    run.worker = ending.worker
    run.ended_ms.extend(ended_ms)
    run.reason = job_pb2.EndReason.ValueType(ending.reason)
    return message.SerializeToString()


def record_of(row: EndedRow, job_id: int) -> JobRecord:
    """Returns one job of a row."""
    return records_of(row, [job_id])[0]


def records_of(row: EndedRow, job_ids: Iterable[int]) -> list[JobRecord]:
    """Returns jobs of a row; reads its blob once for all of them."""
    message = store_pb2.StoredEnded.FromString(row.blob)
    if message.HasField("job"):
        return [record_from_stored(message.job)]
    run = message.run
    options, moments = interned_options(run.options), run.ended_ms
    payloads = payloads_of(run, run.count)
    return [
        JobRecord(
            id=job_id,
            queue=row.queue,
            options=payloads.options_of(job_id - row.first_id, options),
            payload=payloads[job_id - row.first_id],
            pushed_ms=run.pushed_ms,
            job_key=payloads.job_key_of(job_id - row.first_id),
            delivery=run.delivery,
            worker=run.worker,
            ended_ms=moments[job_id - row.first_id] if moments else row.ended_ms,
            reason=EndReason(run.reason),
        )
        for job_id in job_ids
    ]


def pushed_ms_of(row: EndedRow) -> int:
    """Returns when the jobs of a row were pushed; decodes nothing else."""
    message = store_pb2.StoredEnded.FromString(row.blob)
    return message.job.pushed_ms if message.HasField("job") else message.run.pushed_ms


def run_of(row: EndedRow) -> EndedRun:
    """Returns the jobs of a row that has several, without an object for each."""
    run = store_pb2.StoredEnded.FromString(row.blob).run
    record = JobRecord(
        id=row.first_id,
        queue=row.queue,
        options=interned_options(run.options),
        payload=b"",
        pushed_ms=run.pushed_ms,
        delivery=run.delivery,
        worker=run.worker,
        ended_ms=row.ended_ms,
        reason=EndReason(run.reason),
    )
    return EndedRun(record, payloads_of(run, run.count), run.ended_ms[:])

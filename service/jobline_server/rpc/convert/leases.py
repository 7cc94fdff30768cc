"""Hand-outs into bytes, for `Pull` and for streams.

Rows are written as bytes rather than as a message of messages. Two facts about protobuf make it
short: a field of a message is its tag, its length and its bytes; and one message written after
another is both merged. So what neighbours share (queue, options, lease) is written once and
copied behind what each has for itself, and a delivery is cut between any two fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from google.protobuf.descriptor import Descriptor

from jobline.v1 import job_pb2, job_service_pb2
from jobline_server.engine.commands import Leased, LeasedJob, LeasedRun
from jobline_server.engine.values import DEFAULT_OPTIONS, LeaseReason
from jobline_server.rpc.limits import DELIVERY_BYTES_TARGET
from jobline_server.wire.options import shared_message
from jobline_server.wire.times import fill_time

LENGTH_DELIMITED = 2


def _tag(message: Descriptor, field: str) -> bytes:
    return _varint(message.fields_by_name[field].number << 3 | LENGTH_DELIMITED)


def _varint(value: int) -> bytes:
    """A number as protobuf writes it: seven bits a byte, the lowest first."""
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


class LeaseWriter:
    """Writes hand-outs as the fields `jobs` and `runs` of one kind of message."""

    __slots__ = ("_jobs_tag", "_runs_tag")

    def __init__(self, message: Descriptor) -> None:
        self._jobs_tag = _tag(message, "jobs")
        self._runs_tag = _tag(message, "runs")

    def fields(self, leased: Leased) -> Iterator[bytes]:
        """One field a job, and one or more a run: a long run is cut. In the order of hand-out."""
        jobs: list[LeasedJob] = []
        for item in leased.items():
            if isinstance(item, LeasedJob):
                jobs.append(item)
                continue
            if jobs:
                yield from self._job_fields(jobs)
                jobs = []
            yield from self._run_fields(item)
        if jobs:
            yield from self._job_fields(jobs)

    def is_run(self, field: bytes) -> bool:
        """Whether a field is a run."""
        return field.startswith(self._runs_tag)

    def _run_fields(self, run: LeasedRun) -> Iterator[bytes]:
        for body in _run_bodies(run):
            yield b"".join((self._runs_tag, _varint(len(body)), body))

    def _job_fields(self, jobs: list[LeasedJob]) -> Iterator[bytes]:
        tag, shared, pushed_ms, last = self._jobs_tag, b"", -1, None
        lengths: dict[int, bytes] = {}
        own = job_pb2.LeasedJob()
        for job in jobs:
            if last is None or not _go_together(job, last):
                shared, last = _shared_bytes(job), job
            own.id = job.id
            own.delivery = job.delivery
            own.payload = job.payload
            # The rest is written only where it differs from the job before: most often nowhere.
            if job.pushed_ms != pushed_ms:
                pushed_ms = job.pushed_ms
                fill_time(own.pushed_at, pushed_ms)
            if job.job_key or own.job_key:
                own.job_key = job.job_key
            if job.checkpoint or own.checkpoint:
                own.checkpoint = job.checkpoint
            body = own.SerializeToString() + shared
            length = lengths.get(len(body))
            if length is None:
                length = lengths[len(body)] = _varint(len(body))
            yield tag + length + body


PULL_WRITER = LeaseWriter(job_service_pb2.PullResponse.DESCRIPTOR)
STREAM_WRITER = LeaseWriter(job_service_pb2.StreamResponse.DESCRIPTOR)


def pull_response(leased: Leased) -> bytes:
    """The reply to a pull, as bytes."""
    return b"".join(PULL_WRITER.fields(leased))


def messages_of(first: bytes, fields: Iterable[bytes]) -> list[bytes]:
    """Messages that hold `first` and then the fields, each cut off when it is large: clients
    take 4 MiB by default. A single field larger than that goes alone; and so that order is kept,
    a run never follows a job: a message says "runs, then jobs"."""
    messages, parts, size, has_jobs = [], [first], len(first), False
    for field in fields:
        is_run = STREAM_WRITER.is_run(field)
        if (is_run and has_jobs) or (size and size + len(field) > DELIVERY_BYTES_TARGET):
            messages.append(b"".join(parts))
            parts, size, has_jobs = [], 0, False
        has_jobs |= not is_run
        parts.append(field)
        size += len(field)
    messages.append(b"".join(parts))
    return messages


def _go_together(job: LeasedJob, other: LeasedJob) -> bool:
    """Whether the shared part of both is the same."""
    return (
        job.options is other.options
        and job.attempt == other.attempt
        and job.reason is other.reason
        and job.lease_ms == other.lease_ms
        and job.queue == other.queue
    )


def _shared_bytes(job: LeasedJob) -> bytes:
    message = job_pb2.LeasedJob(
        queue=job.queue,
        attempt=job.attempt,
        reason=job_pb2.LeaseReason.ValueType(job.reason or LeaseReason.FIRST),
        lease_ms=job.lease_ms,
    )
    if job.options is not DEFAULT_OPTIONS:
        message.options.CopyFrom(shared_message(job.options))
    return message.SerializeToString()


def _run_bodies(run: LeasedRun) -> Iterator[bytes]:
    first_id = run.first_id
    for payloads in _cut(run.payloads):
        message = job_pb2.LeasedRun(
            first_id=first_id, delivery=run.delivery, queue=run.queue, lease_ms=run.lease_ms
        )
        if run.options is not DEFAULT_OPTIONS:
            message.options.CopyFrom(shared_message(run.options))
        fill_time(message.pushed_at, run.pushed_ms)
        message.payloads.extend(payloads)
        yield message.SerializeToString()
        first_id += len(payloads)


def _cut(payloads: list[bytes]) -> Iterator[list[bytes]]:
    """Stretches of payloads of at most the target together, and of one at least."""
    if sum(map(len, payloads)) <= DELIVERY_BYTES_TARGET:
        yield payloads
        return
    start, size = 0, 0
    for index, payload in enumerate(payloads):
        if index > start and size + len(payload) > DELIVERY_BYTES_TARGET:
            yield payloads[start:index]
            start, size = index, 0
        size += len(payload)
    yield payloads[start:]

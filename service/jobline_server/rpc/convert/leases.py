"""Serialises leased jobs, for `Pull` and for streams.

Jobs are written as bytes rather than as a message of messages. Two facts about protobuf make that
short: a field of a message is its tag, its length and its bytes; and two messages written one after
the other are read as their merge. So the fields that jobs share (queue, options, lease) are
serialised once and appended to those of each job, and a delivery can be cut between any two fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from google.protobuf.descriptor import Descriptor

from jobline.v1 import job_pb2, job_service_pb2
from jobline_server.engine.columns import LotColumns
from jobline_server.engine.commands import Leased, LeasedJob, LeasedRun
from jobline_server.rpc.convert.leased_fields import (
    are_told_alike,
    fill_options,
    fill_own,
    go_together,
    shared_by_jobs,
    shared_by_run,
)
from jobline_server.rpc.convert.own_fields import column_fields, own_fields
from jobline_server.rpc.limits import DELIVERY_BYTES_TARGET, DELIVERY_FIELDS_MAX
from jobline_server.wire.raw_fields import VARINT, tag_of, varint
from jobline_server.wire.times import fill_time

# The ids of an aligned block of this size share all but the first byte of their varints.
_BITS = 7
_BLOCK = 1 << _BITS
# Blocks up to this size are not cut over two messages.
_BLOCK_BYTES_MAX = 64 << 10


_ID_TAG = tag_of(job_pb2.LeasedJob.DESCRIPTOR, "id", VARINT)
_PAYLOAD_TAG = tag_of(job_pb2.LeasedJob.DESCRIPTOR, "payload")
# The first byte of a varint, where more bytes follow and where none do.
_FIRST_BYTES = [bytes([bits | 0x80]) for bits in range(_BLOCK)]
_LAST_BYTES = [bytes([bits]) for bits in range(_BLOCK)]
# An id as two bytes and the rest, which nearly all jobs of a delivery share. The rest of a small id
# is a zero that could be left out.
_ID_STARTS = [_ID_TAG + first for first in _FIRST_BYTES]
_UPPER = 2 * _BITS


class LeaseWriter:
    """Serialises leased jobs as the fields `jobs` and `runs` of one kind of message."""

    __slots__ = ("_jobs_tag", "runs_tag")

    def __init__(self, message: Descriptor) -> None:
        self._jobs_tag = tag_of(message, "jobs")
        self.runs_tag = tag_of(message, "runs")
        """What the fields of runs begin with, and no others."""

    def fields(self, leased: Leased) -> Iterator[bytes]:
        """Yields fields in the order of hand-out: one per job, and one or more per run, as a long
        run is cut. For consumers that take no runs, a run becomes fields of single jobs.
        """
        run_fields = self._single_fields if leased.one_by_one else self._run_fields
        jobs: list[LeasedJob] = []
        for item in leased.items():
            if isinstance(item, LeasedJob):
                jobs.append(item)
                continue
            if jobs:
                yield from self._job_fields(jobs)
                jobs = []
            yield from run_fields(item)
        if jobs:
            yield from self._job_fields(jobs)

    def _run_fields(self, run: LeasedRun) -> Iterator[bytes]:
        for body in _run_bodies(run):
            yield b"".join((self.runs_tag, varint(len(body)), body))

    def _single_fields(self, run: LeasedRun) -> Iterator[bytes]:
        """Yields the jobs of a run one by one. They differ in id and payload, and the ids of a
        block only in their lowest seven bits: the rest is written once per block and length of
        payload.
        """
        shared = shared_by_run(run)
        if run.payloads.columns is not None:
            yield from self._fields_with_own(run, run.payloads.columns, shared)
            return
        payloads, start = list(run.payloads), 0
        while start < len(payloads):
            first_id = run.first_id + start
            stop = start + _BLOCK - first_id % _BLOCK
            low_bits = _LAST_BYTES if first_id < _BLOCK else _FIRST_BYTES
            jobs = zip(low_bits[first_id % _BLOCK :], payloads[start:stop], strict=False)
            around: dict[int, tuple[bytes, bytes]] = {}
            block = []
            for low, payload in jobs:
                parts = around.get(len(payload))
                if parts is None:
                    parts = around[len(payload)] = self._around(first_id, payload, shared)
                block.append(parts[0] + low + parts[1] + payload + shared)
            start = stop
            if max(around) * len(block) <= _BLOCK_BYTES_MAX:
                yield b"".join(block)
            else:
                yield from block

    def _fields_with_own(
        self, run: LeasedRun, columns: LotColumns, shared: bytes
    ) -> Iterator[bytes]:
        """Yields the jobs of a run that have headers or keys of their own. Those come behind what
        is shared: of two headers with one key, the last one counts.
        """
        for index, payload in enumerate(run.payloads):
            body = b"".join(
                (
                    _ID_TAG + varint(run.first_id + index),
                    _PAYLOAD_TAG + varint(len(payload)) + payload,
                    shared,
                    own_fields(columns, index),
                )
            )
            yield self._jobs_tag + varint(len(body)) + body

    def _around(self, job_id: int, payload: bytes, shared: bytes) -> tuple[bytes, bytes]:
        """Returns the bytes before and after the lowest seven bits of a job's id."""
        before = varint(job_id | _BLOCK - 1)
        behind = before[1:] + _PAYLOAD_TAG + varint(len(payload))
        size = len(_ID_TAG) + 1 + len(behind) + len(payload) + len(shared)
        return self._jobs_tag + varint(size) + _ID_TAG, behind

    def _job_fields(self, jobs: list[LeasedJob]) -> Iterator[bytes]:
        """Yields jobs one by one. Of neighbours that differ in id and payload alone, as most do,
        the rest is serialised once, and so are the upper bits of their ids.
        """
        message, last, shared, behind = job_pb2.LeasedJob(), None, b"", b""
        for job in jobs:
            job_id, payload = job.id, job.payload
            if last is None or not go_together(job, last):
                shared, is_alike = shared_by_jobs(job), False
            else:
                is_alike = are_told_alike(job, last)
            if not is_alike:
                fill_own(message, job, last)
                message.id, message.payload, behind, last = job_id, payload, b"", job
                body = message.SerializeToString() + shared
                yield self._jobs_tag + _often(len(body)) + body
                continue
            if not behind:
                message.id, message.payload = 0, b""
                behind = message.SerializeToString() + shared
            high = _often(job_id >> _UPPER)
            start = _start(self._jobs_tag, len(payload), len(high) + len(behind))
            low, middle = _ID_STARTS[job_id % _BLOCK], _FIRST_BYTES[job_id >> _BITS & _BLOCK - 1]
            yield b"".join((start, payload, low, middle, high, behind))


PULL_WRITER = LeaseWriter(job_service_pb2.PullResponse.DESCRIPTOR)
STREAM_WRITER = LeaseWriter(job_service_pb2.StreamResponse.DESCRIPTOR)


def pull_response(leased: Leased, bytes_max: int) -> tuple[bytes, list[tuple[int, int]]]:
    """Returns the serialised reply to a pull, and the leases, as (id, delivery), that do not fit:
    the pull did not count what jobs have beside their payloads (headers, checkpoints).
    """
    fields = list(PULL_WRITER.fields(leased))
    size = 0
    for index, field in enumerate(fields):
        size += len(field)
        if size > bytes_max and index:
            rest = job_service_pb2.PullResponse.FromString(b"".join(fields[index:]))
            return b"".join(fields[:index]), list(leases_in([rest]))
    return b"".join(fields), []


def leases_in(
    messages: Iterable[job_service_pb2.PullResponse | job_service_pb2.StreamResponse],
) -> Iterator[tuple[int, int]]:
    """Yields (id, delivery) of every job in these messages."""
    for message in messages:
        for run in message.runs:
            for job_id in range(run.first_id, run.first_id + len(run.payloads)):
                yield job_id, run.delivery
        for job in message.jobs:
            yield job.id, job.delivery


def messages_of(first: bytes, fields: Iterable[bytes]) -> Iterator[bytes]:
    """Yields messages of `first` and then the fields, cut at a size: many clients take 4 MiB, and
    making a message blocks the loop. A single field larger than that is a message of its own. To
    keep the order of hand-out, no run follows a job in a message, as clients read runs first. Each
    message is made when it is needed, so a worker that does not read costs the memory of one.
    """
    parts, size, fields_held, has_jobs = [first], len(first), 0, False
    runs_tag = STREAM_WRITER.runs_tag
    for field in fields:
        is_run = field.startswith(runs_tag)
        is_full = fields_held >= DELIVERY_FIELDS_MAX or (
            size and size + len(field) > DELIVERY_BYTES_TARGET
        )
        if is_full or (is_run and has_jobs):
            yield b"".join(parts)
            parts, size, fields_held, has_jobs = [], 0, 0, False
        has_jobs |= not is_run
        parts.append(field)
        fields_held += 1
        size += len(field)
    yield b"".join(parts)


# Numbers that come again: sizes of messages, and the upper bits of ids.
_often = lru_cache(maxsize=1_024)(varint)


@lru_cache(maxsize=1_024)
def _start(tag: bytes, payload_bytes: int, more_bytes: int) -> bytes:
    """Returns what comes before a single job's payload, if so many bytes follow beside the tag and
    the lower bits of its id.
    """
    start = _PAYLOAD_TAG + varint(payload_bytes)
    return tag + varint(len(start) + payload_bytes + len(_ID_TAG) + 2 + more_bytes) + start


def _run_bodies(run: LeasedRun) -> Iterator[bytes]:
    """Yields serialised runs: each a message without payloads, then its part of the payloads."""
    message = job_pb2.LeasedRun(delivery=run.delivery, queue=run.queue, lease_ms=run.lease_ms)
    fill_options(message, run)
    fill_time(message.pushed_at, run.pushed_ms)
    payloads, start, left = run.payloads, 0, len(run.payloads)
    while left:
        count = max(payloads.fitting(start, left, DELIVERY_BYTES_TARGET), 1)
        message.first_id = run.first_id + start
        part = payloads.part(start, count)
        body = message.SerializeToString() + part.block
        yield body if part.columns is None else body + column_fields(part.columns)
        start, left = start + count, left - count

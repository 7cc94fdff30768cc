"""What checkpoints and the ended store keep comes back from its bytes as it was."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline.v1 import store_pb2
from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.endings import JobsEnded, RunsEnded
from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Details, Job
from jobline_server.engine.keys import KeyRecord
from jobline_server.engine.load import Load
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    Attempt,
    AttemptOutcome,
    EndReason,
    JobError,
    JobOptions,
    JobState,
    LeaseReason,
)
from jobline_server.storage.codec import record_of, records_of
from jobline_server.storage.codec.ended import encode_ended_job, encode_ended_run
from jobline_server.storage.ended_store import EndedRow
from jobline_server.storage.kinds.counters import decode_counters, encode_counters
from jobline_server.storage.kinds.jobs import decode_job, encode_job
from jobline_server.storage.kinds.keys import decode_keys, encode_keys
from jobline_server.storage.kinds.lots import decode_lot, encode_lot
from jobline_server.storage.kinds.queues import decode_queue, encode_queue
from jobline_server.wire.errors import fill_error
from tests.pushed_payloads import options_of, payloads_of, with_columns
from tests.storage import value_strategies as own

QUEUE = Queue("q", 1, 5)

BOOKKEEPING = {"queue", "details", "holder", "deadline_ms", "offset", "volatile", "stored"}


def queue_of(name: str) -> Queue:
    assert name == "q"
    return QUEUE


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """A live job in any state, ACTIVE ones with a holder."""
    job = Job(draw(own.ids), QUEUE, draw(own.job_options), draw(st.binary(max_size=8)), 7)
    job.state = draw(st.sampled_from([JobState.SCHEDULED, JobState.READY, JobState.ACTIVE]))
    job.job_key = draw(own.text)
    job.order = draw(st.integers(-(2**60), 2**60))
    job.lease_reason = draw(st.sampled_from(LeaseReason))
    job.delivery = draw(own.deliveries)
    if job.state is JobState.SCHEDULED:
        job.run_at_ms = draw(own.moments)
    if job.delivery:
        job.attempts, job.stalls, job.releases = draw(st.tuples(*[st.integers(0, 1_000)] * 3))
        if draw(st.booleans()):
            details = job.details = Details()
            details.history = tuple(draw(st.lists(own.attempts, max_size=3)))
            details.worker_checkpoint = draw(st.binary(max_size=8))
            details.progress = draw(st.floats(0, 100))
            details.progress_message = draw(own.text)
    elif draw(st.booleans()):
        # It ended before it was handed out, and was put back.
        job.writable_details().auto_retries = draw(st.integers(1, 3))
    if job.state is JobState.ACTIVE:
        job.delivery = job.delivery or 1
        job.lease_ms, job.leased_ms = draw(own.moments), draw(own.moments)
        job.cancel_requested = draw(st.booleans())
        job.holder = Holder(draw(own.text), draw(own.text), version=draw(own.text))
    return job


def visible(job: Job) -> dict[str, object]:
    """A job as plain values."""
    found = {name: getattr(job, name) for name in Job.__slots__ if name not in BOOKKEEPING}
    details = {name: getattr(job.details, name) for name in Details.__slots__}
    has = job.holder
    holder = (has.worker, has.session_id, has.version) if has else None
    return found | details | {"holder": holder}


@given(jobs())
def test_job_comes_back(job):
    again = decode_job(encode_job(job), queue_of, Holder)
    assert visible(again) == visible(job)
    assert again.stored
    assert again.queue is QUEUE
    assert again.holder is None or again.holder.leases == {job.id: again}


@st.composite
def lots(draw: st.DrawFn) -> Lot:
    """A lot, partly handed out; leases partly settled, none as a whole."""
    payloads = draw(st.lists(st.binary(max_size=4), min_size=1, max_size=12))
    lot = Lot(
        100,
        QUEUE,
        draw(own.job_options),
        draw(with_columns(payloads)),
        pushed_ms=7,
        run_at_ms=draw(own.moments),
    )
    lot.order = draw(st.integers(-(2**60), 2**60))
    lot.cursor = draw(st.integers(0, len(payloads)))
    start = 0
    while start < lot.cursor:
        count = draw(st.integers(1, lot.cursor - start))
        if draw(st.booleans()):
            lease = RunLease(
                lot, start, count, delivery=9, holder=Holder("w", draw(own.text)), lease_ms=30
            )
            for index in draw(st.sets(st.integers(start, start + count - 1), max_size=count - 1)):
                lease.settle(index, 1)
            lot.leases.append(lease)
        start += count
    waiting = range(lot.cursor, len(payloads))
    lot.holes = draw(st.sets(st.sampled_from(waiting))) if waiting else set()
    lot.remaining = lot.waiting() + sum(lease.remaining for lease in lot.leases)
    return lot


@given(lots().filter(lambda lot: lot.remaining))
def test_lot_comes_back(lot):
    again = decode_lot(encode_lot(lot), queue_of, Holder)
    for name in ("first_id", "options", "pushed_ms", "run_at_ms", "order", "cursor", "holes"):
        assert getattr(again, name) == getattr(lot, name)
    assert again.remaining == lot.remaining
    assert len(again.payloads) == len(lot.payloads)
    held = [index for lease in lot.leases for index in lease.open_indexes()]
    for index in [*held, *range(lot.cursor, len(lot.payloads))]:
        assert again.payloads[index] == lot.payloads[index]
        own_options = options_of(lot.payloads, index, lot.options)
        assert again.payloads.options_of(index, again.options) == own_options
        assert again.payloads.job_key_of(index) == lot.payloads.job_key_of(index)
    for one, other in zip(again.leases, lot.leases, strict=True):
        assert one.open_indexes() == other.open_indexes()
        assert (one.delivery, one.lease_ms, one.remaining) == (9, 30, other.remaining)
        assert one.holder.session_id == other.holder.session_id
        assert list(one.holder.leases.values()) == [one]


@given(own.settings, st.booleans(), own.text)
def test_queue_comes_back(settings, paused, text):
    queue = Queue("q", 4, 5)
    queue.settings, queue.paused = settings, paused
    queue.paused_by = queue.pause_reason = text
    queue.limited = TimeLimit(9, text, text) if paused else None
    again = decode_queue(encode_queue(queue))
    for name in ("name", "number", "settings", "paused", "paused_by", "pause_reason", "created_ms"):
        assert getattr(again, name) == getattr(queue, name)
    assert again.limited == queue.limited
    is_limited = settings.rate or settings.concurrency or queue.limited
    assert (again.allowance is not None) == bool(is_limited)


key_records = st.builds(
    KeyRecord, first_id=own.ids, count=own.counts, digest=own.digests, expires_ms=own.moments
)


@given(st.dictionaries(st.binary(min_size=16, max_size=16), key_records, max_size=5), st.booleans())
def test_keys_come_back(keys, requests):
    are_requests, again = decode_keys(encode_keys(7, keys.items(), requests=requests))
    assert (are_requests, dict(again)) == (requests, keys)


def test_counters_come_back():
    shard = Shard(3, epoch=1, next_sequence=77, load=Load())
    shard.next_order, shard.front_order = 50, -3
    shard.age.note(700, 500)
    shard.told_offset = 9
    assert decode_counters(encode_counters(shard)) == (77, 50, -3, 500, 200, 9)


def row_of(first_id: int, count: int, blob: bytes) -> EndedRow:
    return EndedRow(first_id, count, "q", "", 5, 1_000, 0, "", "", blob)


@given(jobs(), own.errors, st.sampled_from(EndReason))
def test_ended_job_comes_back(job, error, reason):
    results = {job.id: b"done"}
    ending = JobsEnded(JobState.DEAD, [job], 1_000, True, results, reason, error)
    row = row_of(job.id, 1, encode_ended_job(ending, job))
    assert record_of(row, job.id) == ending.record(job)


def failed_job(error: JobError) -> Job:
    """A job whose last attempt failed with an error."""
    job = Job(9, QUEUE, DEFAULT_OPTIONS, b"payload", 7)
    job.delivery = job.attempts = 1
    job.details = Details()
    job.details.history = (Attempt(1, 1, "w", 1, 2, AttemptOutcome.FAILED, error),)
    return job


def test_the_error_a_job_died_of_is_written_once():
    """Trial E10: it was written as the last attempt's and as the job's, so that a gibibyte of dead
    letters held half as many."""
    error = JobError(type="E", message="m" * 4_096, stack="s" * 16_384, details=b"d" * 16_384)
    job = failed_job(error)
    ending = JobsEnded(JobState.DEAD, [job], 9, kept=True, error=error)

    blob = encode_ended_job(ending, job)

    assert len(blob) < 38_000
    assert record_of(row_of(job.id, 1, blob), job.id) == ending.record(job)


def test_an_error_that_was_written_twice_is_read():
    """As files have it that were written before."""
    error = JobError(type="E", message="m")
    job = failed_job(error)
    ending = JobsEnded(JobState.DEAD, [job], 9, kept=True, error=error)
    stored = store_pb2.StoredEnded.FromString(encode_ended_job(ending, job))
    stored.job.ClearField("error_of_last_attempt")
    fill_error(stored.job.error, error)

    blob = stored.SerializeToString()

    assert record_of(row_of(job.id, 1, blob), job.id) == ending.record(job)


def ended_run(state: JobState = JobState.COMPLETED) -> RunsEnded:
    payloads = Payloads.of([b"%d" % index for index in range(10)])
    lot = Lot(100, QUEUE, JobOptions(name="mail"), payloads, pushed_ms=7, run_at_ms=0)
    return RunsEnded(lot, state, array("q", (102,)), [4], 1_000, 9, "w", True)


def test_job_comes_back_from_the_midst_of_a_run():
    row = row_of(102, 4, encode_ended_run(ended_run(), 102, 4))
    record = record_of(row, 104)
    assert (record.id, record.payload, record.pushed_ms, record.ended_ms) == (104, b"4", 7, 1_000)
    assert (record.delivery, record.worker, record.options.name) == (9, "w", "mail")


def test_job_of_a_run_has_its_own_headers_and_key():
    ending = ended_run()
    values = [str(index) for index in range(10)]
    ending.lot.payloads = payloads_of([b""] * 10, {"trace": values}, [f"k{one}" for one in values])
    record = record_of(row_of(102, 4, encode_ended_run(ending, 102, 4)), 104)
    assert record.options == JobOptions(name="mail", headers=(("trace", "4"),))
    assert record.job_key == "k4"


def test_jobs_of_a_run_keep_the_moments_at_which_they_ended():
    row = row_of(102, 4, encode_ended_run(ended_run(), 102, 4, [990, 991, 995, 1_000]))
    assert [record.ended_ms for record in records_of(row, range(103, 106))] == [991, 995, 1_000]


def test_part_of_a_run_is_read_by_its_ids():
    row = row_of(102, 4, encode_ended_run(ended_run(), 102, 4))
    assert [record.payload for record in records_of(row, [103, 104])] == [b"3", b"4"]


def test_cancelled_members_of_a_lot_say_why_they_ended():
    row = row_of(102, 4, encode_ended_run(ended_run(JobState.CANCELLED), 102, 4))
    assert record_of(row, 102).reason is EndReason.CANCELLED


@pytest.mark.parametrize("options", [DEFAULT_OPTIONS, JobOptions(name="mail")])
def test_recovered_jobs_of_one_kind_share_their_options(options):
    blobs = [encode_job(Job(i, QUEUE, replace(options), b"", 7)) for i in (1, 2)]
    one, other = (decode_job(blob, queue_of, Holder) for blob in blobs)
    assert one.options is other.options

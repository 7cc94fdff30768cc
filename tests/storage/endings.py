"""Endings as a shard tells them, in short words, and what a buffer makes of them."""

from __future__ import annotations

from array import array

from jobline_server.engine.endings import JobsEnded, RunsEnded
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import DEFAULT_OPTIONS, JobState
from jobline_server.storage.ended_buffer import EndedBuffer
from jobline_server.storage.ended_store import PutEnded

COMPLETED, DEAD, CANCELLED = JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED
QUEUE = Queue("q", 1, 5)


def lot_of(first_id, count, size=1, queue=QUEUE, options=DEFAULT_OPTIONS):
    payloads = Payloads.of([b"x" * size] * count)
    return Lot(first_id, queue, options, payloads, pushed_ms=7, run_at_ms=0)


def runs(lot, *pieces, state=COMPLETED, ended_ms=1_000, delivery=9, worker="w", kept=True):
    """Members of a lot ended: `pieces` are (first id, count)."""
    starts, counts = array("q", (start for start, _ in pieces)), [count for _, count in pieces]
    return RunsEnded(lot, state, starts, counts, ended_ms, delivery, worker, kept)


def singles(*ids, state=COMPLETED, kept=True, **fields):
    jobs = [Job(job_id, QUEUE, DEFAULT_OPTIONS, b"x", 7) for job_id in ids]
    return JobsEnded(state, jobs, 1_000, kept, **fields)


def taken(*turns, completed_max=100):
    """What a buffer hands out after these turns."""
    buffer = EndedBuffer(completed_max)
    for turn in turns:
        buffer.add(turn)
    return buffer.take()


def spans(ops):
    """The rows among operations, as (first id, count)."""
    return [(op.row.first_id, op.row.count) for op in ops if isinstance(op, PutEnded)]

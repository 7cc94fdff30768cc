"""The shelf: which rows the finished file gets, in which order, and what it never gets."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine.endings import EndedChange, EndedJobs, EndedRuns, QueueGone
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    EndReason,
    JobError,
    JobOptions,
    JobState,
    Retention,
)
from jobline_server.storage.codec import record_of, records_of
from jobline_server.storage.ended_rows import ROW_BYTES_MAX, ROW_JOBS_MAX
from jobline_server.storage.finished import MarkStale, PutEnded, RemoveEnded, RemoveQueue
from jobline_server.storage.shelf import SWEPT_MIN, Shelf, Trimmed
from tests.storage.finished_contract import Reference

COMPLETED, DEAD, CANCELLED = JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED
QUEUE = Queue("q", 1, 5)


def lot_of(first_id, count, size=1, queue=QUEUE, options=DEFAULT_OPTIONS):
    payloads = Payloads.of([b"x" * size] * count)
    return Lot(first_id, queue, options, payloads, pushed_ms=7, run_at_ms=0)


def runs(lot, *pieces, state=COMPLETED, ended_ms=1_000, delivery=9, worker="w", kept=True):
    """Members of a lot ended: `pieces` are (first id, count)."""
    starts, counts = [start for start, _ in pieces], [count for _, count in pieces]
    return EndedRuns(lot, state, starts, counts, ended_ms, delivery, worker, kept)


def singles(*ids, state=COMPLETED, kept=True, **fields):
    jobs = [Job(job_id, QUEUE, DEFAULT_OPTIONS, b"x", 7) for job_id in ids]
    return EndedJobs(state, jobs, 1_000, kept, **fields)


def taken(*turns, completed_max=100):
    """What a shelf hands out after these turns."""
    shelf = Shelf(completed_max)
    for turn in turns:
        shelf.add(turn)
    return shelf.take()


def spans(ops):
    """The rows among operations, as (first id, count)."""
    return [(op.row.first_id, op.row.count) for op in ops if isinstance(op, PutEnded)]


# Rows.


def test_neighbours_acked_one_by_one_in_any_order_become_one_row():
    lot = lot_of(100, 10)
    turns = [[runs(lot, (100 + index, 1), ended_ms=1_000 + index)] for index in (3, 1, 0, 4, 2)]
    ops, _ = taken(*turns)
    assert spans(ops) == [(100, 5)]
    row = ops[0].row
    assert row.ended_ms == 1_004
    moments = [record.ended_ms for record in records_of(row, range(100, 105))]
    assert moments == [1_000, 1_001, 1_002, 1_003, 1_004]


def test_what_did_not_end_alike_does_not_share_a_row():
    """State, lease and worker are the row's."""
    lot = lot_of(100, 10)
    ops, _ = taken(
        [
            runs(lot, (100, 2)),
            runs(lot, (102, 2), delivery=8),
            runs(lot, (104, 2), worker="v"),
            runs(lot, (106, 2), state=CANCELLED, delivery=0, worker=""),
        ]
    )
    assert spans(ops) == [(100, 2), (102, 2), (104, 2), (106, 2)]
    assert [op.row.reason for op in ops] == [0, 0, 0, EndReason.CANCELLED]


def test_gap_parts_two_rows():
    ops, _ = taken([runs(lot_of(100, 10), (100, 2), (103, 2))])
    assert spans(ops) == [(100, 2), (103, 2)]


def test_long_run_is_cut_into_rows_that_are_read_quickly():
    ops, _ = taken([runs(lot_of(100, 2_500), (100, 2_500))], completed_max=10_000)
    assert spans(ops) == [(100, ROW_JOBS_MAX), (1_100, ROW_JOBS_MAX), (2_100, 500)]


def test_large_payloads_make_short_rows():
    size = ROW_BYTES_MAX // 3
    ops, _ = taken([runs(lot_of(100, 5, size), (100, 5))])
    assert spans(ops) == [(100, 3), (103, 2)]


def test_payload_larger_than_a_row_has_one_of_its_own():
    ops, _ = taken([runs(lot_of(100, 2, ROW_BYTES_MAX + 1), (100, 2))])
    assert spans(ops) == [(100, 1), (101, 1)]


def test_job_of_its_own_has_a_row_that_can_be_searched():
    error = JobError("Boom", "it broke")
    reason = EndReason.MAX_ATTEMPTS_EXCEEDED
    ops, _ = taken([singles(7, state=DEAD, reason=reason, error=error)])
    row = ops[0].row
    assert (row.first_id, row.count, row.queue, row.state) == (7, 1, "q", DEAD)
    assert (row.reason, row.error_type, row.error_message) == (reason, "Boom", "it broke")
    assert record_of(row, 7).error == error


def test_result_stays_with_its_job():
    ops, _ = taken([singles(7, 8, results={8: b"42"})])
    assert [record_of(op.row, op.row.first_id).result for op in ops] == [b"", b"42"]


def test_what_is_not_kept_is_never_here():
    ops, trimmed = taken([singles(7, kept=False), runs(lot_of(100, 2), (100, 2), kept=False)])
    assert (ops, trimmed) == ([], [])


def test_retention_of_their_own_stands_in_the_row():
    """The age runs from the last of a run."""
    own = JobOptions(retention=Retention(age_ms=500, count=3))
    lot = lot_of(100, 3, options=own)
    dead = EndedJobs(DEAD, [Job(7, QUEUE, own, b"x", 7)], 1_000, kept=True)
    ops, _ = taken([runs(lot, (100, 2))], [runs(lot, (102, 1), ended_ms=1_200)], [dead])
    found = {op.row.first_id: (op.row.due_ms, op.row.keep_count) for op in ops}
    assert found == {100: (1_700, 3), 7: (1_500, 3)}


def test_row_of_jobs_that_say_nothing_leaves_retention_to_the_queue():
    ops, _ = taken([runs(lot_of(100, 2), (100, 2)), singles(7)])
    assert {(op.row.due_ms, op.row.keep_count) for op in ops} == {(None, None)}


# Changes.


def test_changes_keep_their_place_among_the_endings():
    lot = lot_of(100, 10)
    ops, _ = taken(
        [runs(lot, (100, 1))],
        [EndedChange(JobState.STALE, [100], [1], 2_000)],
        [runs(lot, (101, 1))],
        [EndedChange(None, [100, 50], [1, 3], 3_000)],
        [QueueGone("q")],
        [runs(lot, (102, 1))],
    )
    assert spans(ops) == [(100, 1), (101, 1), (102, 1)]
    others = [op for op in ops if not isinstance(op, PutEnded)]
    assert others == [
        MarkStale(100, 1, 2_000),
        RemoveEnded(100, 1),
        RemoveEnded(50, 3),
        RemoveQueue("q"),
    ]
    assert [isinstance(op, PutEnded) for op in ops] == [
        True,
        False,
        True,
        False,
        False,
        False,
        True,
    ]


# Trimming.


def test_only_the_newest_completed_jobs_of_a_queue_are_written():
    lot = lot_of(100, 100)
    turns = [[runs(lot, (100 + start, 10))] for start in range(0, 100, 10)]
    ops, trimmed = taken(*turns, completed_max=25)
    assert spans(ops) == [(170, 30)]
    assert trimmed == [Trimmed("q", COMPLETED, [(100, 70)])]


def test_trimming_happens_while_jobs_arrive():
    """So that a burst does not fill the memory before anybody comes to take it."""
    shelf = Shelf(20)
    for first_id in range(0, 50_000, 10):
        shelf.add([runs(lot_of(first_id, 10), (first_id, 10))])
        assert len(shelf._pending) <= 2 * SWEPT_MIN
    ops, trimmed = shelf.take()
    assert spans(ops) == [(49_980, 10), (49_990, 10)]
    assert trimmed == [Trimmed("q", COMPLETED, [(0, 49_980)])]


def test_trimmed_single_jobs_are_told_too():
    ops, trimmed = taken([singles(1, 2)], [singles(3)], completed_max=1)
    assert spans(ops) == [(3, 1)]
    assert trimmed == [Trimmed("q", COMPLETED, [(1, 2)])]


def test_jobs_acked_in_any_order_are_trimmed_as_few_runs():
    lot = lot_of(100, 50)
    ids = [100 + (index * 7) % 50 for index in range(50)]
    ops, trimmed = taken(
        [runs(lot, *[(job_id, 1) for job_id in ids])], [singles(7)], completed_max=1
    )
    assert spans(ops) == [(7, 1)]
    assert trimmed == [Trimmed("q", COMPLETED, [(100, 50)])]


def test_each_queue_is_trimmed_alone():
    other = lot_of(500, 3, queue=Queue("other", 2, 5))
    ops, trimmed = taken(
        [runs(other, (500, 3))], [singles(1)], [singles(2)], [singles(3)], completed_max=2
    )
    assert sorted(spans(ops)) == [(2, 1), (3, 1), (500, 3)]
    assert [trim.queue for trim in trimmed] == ["q"]


def test_dead_and_cancelled_jobs_are_not_trimmed():
    ops, trimmed = taken(
        [singles(1, 2, 3, state=DEAD)], [singles(4, 5, state=CANCELLED)], completed_max=1
    )
    assert len(spans(ops)) == 5
    assert trimmed == []


# Slices.


def test_slices_are_what_take_hands_out():
    lot = lot_of(100, 100)
    turns = [[runs(lot, (100 + start * 3, 1)), singles(start + 1)] for start in range(20)]
    whole, _ = taken(*turns)
    shelf = Shelf()
    for turn in turns:
        shelf.add(turn)
    pieces = [ops for ops, _ in shelf.slices(7)]
    assert [op for piece in pieces for op in piece] == whole
    assert max(map(len, pieces)) == 7
    assert shelf.take() == ([], [])


def test_what_is_added_between_slices_is_for_the_next_time():
    shelf = Shelf()
    shelf.add([singles(1, 2, 3)])
    seen: list[tuple[int, int]] = []
    for ops, _ in shelf.slices(1):
        shelf.add([singles(10 + len(seen))])
        seen += spans(ops)
    assert seen == [(1, 1), (2, 1), (3, 1)]
    assert spans(shelf.take()[0]) == [(10, 1), (11, 1), (12, 1)]


# The same again.


@st.composite
def histories(draw):
    """Turns in which members of a lot complete, are deleted and come back."""
    lot = lot_of(100, 8)
    live = set(range(100, 108))
    turns: list[list[Any]] = []
    for _ in range(draw(st.integers(1, 8))):
        chosen = draw(st.sets(st.sampled_from(range(100, 108)), max_size=4))
        ending, back = sorted(chosen & live), sorted(chosen - live)
        turn: list[Any] = []
        if ending:
            turn.append(runs(lot, *[(job_id, 1) for job_id in ending], ended_ms=len(turns)))
        if back:
            turn.append(EndedChange(None, back, [1] * len(back), 9))
        live = live - set(ending) | set(back)
        turns.append(turn)
    return turns


@given(histories(), st.integers(0, 8), st.integers(1, 3))
def test_endings_told_again_after_a_crash_do_no_harm(turns, first, size):
    """Whatever part of them the file already had."""
    once = Reference()
    once.write(taken(*turns)[0])
    again = Reference()
    shelf = Shelf()
    for turn in turns[:first]:
        shelf.add(turn)
    written = shelf.take()[0]
    again.write(written[: len(written) // size])
    again.write(taken(*turns)[0])
    assert {job_id: record_of(row, job_id) for job_id, row in again.jobs.items()} == {
        job_id: record_of(row, job_id) for job_id, row in once.jobs.items()
    }

"""Rows of the ended store: which endings share one, and what stands in it."""

from __future__ import annotations

from jobline_server.engine.endings import JobsEnded
from jobline_server.engine.job import Job
from jobline_server.engine.values import EndReason, JobError, JobOptions, Retention
from jobline_server.storage.codec import record_of, records_of
from jobline_server.storage.ended_rows import ROW_BYTES_MAX, ROW_JOBS_MAX, ROW_SPAN_MS
from tests.storage.endings import CANCELLED, DEAD, QUEUE, lot_of, runs, singles, spans, taken


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


def test_what_ended_far_apart_does_not_share_a_row():
    """Told again after a crash, an hour of endings comes at once; each keeps its own time, as when
    it was told first.
    """
    lot = lot_of(100, 10)
    later_ms = 1_000 + ROW_SPAN_MS
    turns = [
        [runs(lot, (102, 2), ended_ms=later_ms + 1)],
        [runs(lot, (100, 2)), runs(lot, (106, 1))],
        [runs(lot, (104, 2), ended_ms=later_ms)],
    ]
    ops, _ = taken(*turns)
    assert [(op.row.first_id, op.row.count, op.row.ended_ms) for op in ops] == [
        (100, 2, 1_000),
        (102, 4, later_ms + 1),
        (106, 1, 1_000),
    ]


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


def test_retention_of_their_own_stands_in_the_row():
    """The age runs from the last of a run."""
    own = JobOptions(retention=Retention(age_ms=500, count=3))
    lot = lot_of(100, 3, options=own)
    dead = JobsEnded(DEAD, [Job(7, QUEUE, own, b"x", 7)], 1_000, kept=True)
    ops, _ = taken([runs(lot, (100, 2))], [runs(lot, (102, 1), ended_ms=1_200)], [dead])
    found = {op.row.first_id: (op.row.due_ms, op.row.keep_count) for op in ops}
    assert found == {100: (1_700, 3), 7: (1_500, 3)}


def test_row_of_jobs_that_say_nothing_leaves_retention_to_the_queue():
    ops, _ = taken([runs(lot_of(100, 2), (100, 2)), singles(7)])
    assert {(op.row.due_ms, op.row.keep_count) for op in ops} == {(None, None)}

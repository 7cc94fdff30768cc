"""The ended buffer: what the ended store gets, in which order, and what it never gets."""

from __future__ import annotations

from random import Random
from sys import getrefcount
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine.endings import EndedChange, QueueGone
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import JobState, QueueSettings, Retention
from jobline_server.engine.wanted import Wanted
from jobline_server.storage.codec import record_of
from jobline_server.storage.completed import RUNS_AT_ONCE
from jobline_server.storage.ended_buffer import EndedBuffer, Trimmed
from jobline_server.storage.ended_store import MarkStale, PutEnded, RemoveEnded, RemoveQueue
from tests.storage.ended_store_contract import Reference
from tests.storage.endings import CANCELLED, COMPLETED, DEAD, lot_of, runs, singles, spans, taken


def test_what_is_not_kept_is_never_here():
    ops, trimmed = taken([singles(7, kept=False), runs(lot_of(100, 2), (100, 2), kept=False)])
    assert (ops, trimmed) == ([], [])


# Changes.


def test_changes_keep_their_place_among_the_endings():
    lot = lot_of(100, 10)
    ops, _ = taken(
        [runs(lot, (100, 1))],
        [EndedChange(JobState.STALE, [100], [1], 2_000, 2_500)],
        [runs(lot, (101, 1))],
        [EndedChange(None, [100, 50], [1, 3], 3_000)],
        [QueueGone("q")],
        [runs(lot, (102, 1))],
    )
    assert spans(ops) == [(100, 1), (101, 1), (102, 1)]
    others = [op for op in ops if not isinstance(op, PutEnded)]
    assert others == [
        MarkStale(100, 1, 2_000, 2_500),
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


def test_changes_are_taken_alone_and_once():
    """Neighbours that ended before and after them share a row then."""
    lot = lot_of(100, 10)
    buffer = EndedBuffer()
    buffer.add([runs(lot, (100, 1)), EndedChange(JobState.STALE, [50], [1], 2_000, 2_500)])
    buffer.add([QueueGone("other"), EndedChange(None, [51, 60], [1, 3], 3_000), singles(70)])
    pieces = [*buffer.changes(2)]
    assert pieces == [
        ([MarkStale(50, 1, 2_000, 2_500), RemoveEnded(51, 1)], []),
        ([RemoveEnded(60, 3)], []),
    ]
    assert [*buffer.changes()] == []
    buffer.add([EndedChange(None, [61], [1], 3_000), runs(lot, (101, 1))])
    ops, _ = buffer.take()
    assert [type(op) for op in ops] == [PutEnded, RemoveQueue, PutEnded, RemoveEnded, PutEnded]
    assert [*buffer.changes()] == []


# Trimming.


def test_only_the_newest_completed_jobs_of_a_queue_are_written():
    lot = lot_of(100, 100)
    turns = [[runs(lot, (100 + start, 10))] for start in range(0, 100, 10)]
    ops, trimmed = taken(*turns, completed_max=25)
    assert spans(ops) == [(170, 30)]
    assert trimmed == [Trimmed("q", COMPLETED, [(100, 70)])]


def test_trimming_happens_while_jobs_arrive():
    """So that a burst does not fill the memory before anybody comes to take it."""
    buffer = EndedBuffer(20)
    for first_id in range(0, 50_000, 10):
        buffer.add([runs(lot_of(first_id, 10), (first_id, 10))])
        assert len(buffer._pending) == min(first_id // 10 + 1, 2)
    ops, trimmed = buffer.take()
    assert spans(ops) == [(49_980, 10), (49_990, 10)]
    assert trimmed == [Trimmed("q", COMPLETED, [(0, 49_980)])]


def test_endings_of_many_jobs_are_taken_in_steps():
    """A commit may have ended twenty thousand jobs: to take them all was a step of 27 ms."""
    steps = [singles(1, 2, 3), singles(4), runs(lot_of(100, 9), (100, 9)), singles(5)]
    buffer = EndedBuffer(1)
    assert buffer.add(steps, 2)
    assert len(buffer._pending) == 1
    assert buffer.add((), 2)
    assert not buffer.add([singles(6)], 9)
    ops, trimmed = buffer.take()
    assert spans(ops) == [(6, 1)]
    assert [trim.runs for trim in trimmed] == [[(1, 5), (100, 9)]]


def test_trimmed_jobs_that_are_no_neighbours_are_told_in_parts():
    """To tell of 900,000 at once, each with its own time, was a step of a fifth of a second."""
    buffer = EndedBuffer(1)
    ids = list(range(0, 20_000, 2))
    for job_id in (*Random(7).sample(ids, len(ids)), 20_000):
        buffer.add([singles(job_id)])
    pieces = list(buffer.slices())
    told = [trim.runs for _, trimmed in pieces for trim in trimmed]
    assert [run for runs_told in told for run in runs_told] == [(job_id, 1) for job_id in ids]
    assert max(map(len, told)) < RUNS_AT_ONCE + 128
    assert [spans(ops) for ops, trimmed in pieces if not trimmed] == [[(20_000, 1)]]


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


def test_queue_that_keeps_more_is_trimmed_to_what_it_keeps():
    """After a crash, or at great speed, that many of its jobs may come at once."""
    queue = Queue("large", 2, 5)
    queue.settings = QueueSettings(retention=Retention(count=5))
    turns = [[runs(lot_of(start, 2, queue=queue), (start, 2))] for start in (10, 20, 30, 40)]
    ops, trimmed = taken(*turns, completed_max=2)
    assert spans(ops) == [(20, 2), (30, 2), (40, 2)]
    assert trimmed == [Trimmed("large", COMPLETED, [(10, 2)])]


def test_dead_and_cancelled_jobs_are_not_trimmed():
    ops, trimmed = taken(
        [singles(1, 2, 3, state=DEAD)], [singles(4, 5, state=CANCELLED)], completed_max=1
    )
    assert len(spans(ops)) == 5
    assert trimmed == []


def test_jobs_whose_results_others_may_read_are_written_however_many_complete():
    wanted = Wanted()
    wanted.add([2, 101])
    buffer = EndedBuffer(1, wanted)
    lot = lot_of(100, 4)
    buffer.add([singles(1), singles(2), runs(lot, (100, 2)), runs(lot, (102, 2)), singles(3)])
    ops, trimmed = buffer.take()
    assert sorted(spans(ops)) == [(2, 1), (3, 1), (100, 2)]
    assert trimmed == [Trimmed("q", COMPLETED, [(1, 1), (102, 2)])]


# Slices.


def test_slices_are_what_take_hands_out():
    lot = lot_of(100, 100)
    turns = [[runs(lot, (100 + start * 3, 1)), singles(start + 1)] for start in range(20)]
    whole, _ = taken(*turns)
    buffer = EndedBuffer()
    for turn in turns:
        buffer.add(turn)
    pieces = [ops for ops, _ in buffer.slices(7)]
    assert [op for piece in pieces for op in piece] == whole
    assert max(map(len, pieces)) == 7
    assert buffer.take() == ([], [])


def test_what_is_added_between_slices_is_for_the_next_time():
    buffer = EndedBuffer()
    buffer.add([singles(1, 2, 3)])
    seen: list[tuple[int, int]] = []
    for ops, _ in buffer.slices(1):
        buffer.add([singles(10 + len(seen))])
        seen += spans(ops)
    assert seen == [(1, 1), (2, 1), (3, 1)]
    assert spans(buffer.take()[0]) == [(10, 1), (11, 1), (12, 1)]


@pytest.mark.parametrize("state", [COMPLETED, DEAD])
def test_endings_go_as_they_are_handed_out(state):
    """To free 300,000 dead jobs at the end of their write was a step of 0.1 s."""
    alone = [singles(number, state=state) for number in range(1, 5)]
    in_lots = [runs(lot_of(100 * number, 1), (100 * number, 1), state=state) for number in (1, 2)]
    buffer = EndedBuffer()
    buffer.add([*alone, *in_lots])
    slices = buffer.slices(2)
    next(slices)
    assert getrefcount(alone[0]) < getrefcount(alone[3])
    next(slices)
    next(slices)
    next(slices, None)
    assert {*map(getrefcount, in_lots)} == {getrefcount(alone[0])}


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
    buffer = EndedBuffer()
    for turn in turns[:first]:
        buffer.add(turn)
    written = buffer.take()[0]
    again.write(written[: len(written) // size])
    again.write(taken(*turns)[0])
    assert _records(again) == _records(once)


@given(histories(), st.data())
def test_changes_that_are_written_first_do_no_harm(turns, data):
    """A caller that changes jobs has had all written before. In the end there is what there would
    have been without; and after a crash, when all is told again.
    """
    in_order, ahead, buffer = Reference(), Reference(), EndedBuffer()
    for turn in turns:
        if any(isinstance(ending, EndedChange) for ending in turn):
            ahead.write(buffer.take()[0])
        buffer.add(turn)
        if data.draw(st.booleans()):
            for ops, _ in buffer.changes(1):
                ahead.write(ops)
    in_order.write(taken(*turns)[0])
    crashed = data.draw(st.booleans())
    ahead.write(taken(*turns)[0] if crashed else buffer.take()[0])
    assert _records(ahead) == _records(in_order)


def _records(reference):
    return {job_id: record_of(row, job_id) for job_id, row in reference.jobs.items()}

"""The table of legal moves."""

from __future__ import annotations

import itertools

import pytest

from jobline_server.engine.states import MOVES, IllegalMove, Move, after, as_mermaid, live
from jobline_server.engine.values import ENDED_STATES, WAITING_STATES, JobState

EVERY = [None, *JobState]
LEGAL = sorted(MOVES, key=str)
ILLEGAL = [pair for pair in itertools.product(EVERY, Move) if pair not in MOVES]


@pytest.mark.parametrize(("state", "move"), LEGAL, ids=str)
def test_legal_move_leads_where_the_table_says(state, move):
    assert after(state, move, 1) is MOVES[state, move]


@pytest.mark.parametrize(("state", "move"), ILLEGAL, ids=str)
def test_illegal_move_names_state_move_and_job(state, move):
    """Whoever finds it in a log knows what was tried."""
    with pytest.raises(IllegalMove) as illegal:
        after(state, move, 4711)
    where = "no state" if state is None else state.name
    assert str(illegal.value) == f"job 4711 in {where} cannot be {move.value}"


def test_move_that_ends_a_life_leaves_no_state():
    """`live` is for moves after which there is a job."""
    assert after(JobState.READY, Move.DELETED, 1) is None
    assert live(JobState.READY, Move.LEASED, 1) is JobState.ACTIVE
    with pytest.raises(IllegalMove, match="job 1 would have no state after it was deleted"):
        live(JobState.READY, Move.DELETED, 1)


def test_nothing_but_a_retry_by_hand_brings_an_ended_job_back():
    """Ended means ended: for leases, timers and workers alike."""
    back = {move for (state, move), then in MOVES.items() if state in ENDED_STATES and then}
    assert back == {Move.RETRIED, Move.AGED_OUT}


def test_only_ready_jobs_are_leased_and_only_active_ones_settled():
    """A lease is the one door between waiting and the end of an attempt."""
    assert [state for (state, move) in MOVES if move is Move.LEASED] == [JobState.READY]
    settled = {Move.COMPLETED, Move.FAILED, Move.STALLED, Move.RELEASED, Move.DIED}
    assert {state for (state, move) in MOVES if move in settled} == {JobState.ACTIVE}


def test_whatever_waits_can_be_cancelled_and_deleted():
    """An operator is never told to come back later."""
    for state in WAITING_STATES:
        assert after(state, Move.CANCELLED, 1) is JobState.CANCELLED
        assert after(state, Move.DELETED, 1) is None


def test_picture_has_an_arrow_for_each_move():
    """The documentation draws what the code does."""
    picture = as_mermaid().splitlines()
    assert picture[0] == "stateDiagram-v2"
    assert len(picture) == len(MOVES) + 1
    assert "    [*] --> READY: pushed" in picture
    assert "    STALE --> [*]: deleted" in picture

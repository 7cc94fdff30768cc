"""The pause of a worker after failures in a row: what is counted, when it begins and ends."""

from __future__ import annotations

import pytest

from jobline import InvalidArgument, Worker
from jobline._worker.failure_pause import FailurePause, FailurePauseSettings


def failing(failures: int = 3, pause: float = 10.0) -> FailurePause:
    return FailurePause(FailurePauseSettings(failures, pause))


def test_a_pause_begins_with_the_last_of_so_many_failures_in_a_row():
    """A success between them begins the count anew."""
    counter = failing()
    counter.note_success()
    assert [counter.note_failure(now) for now in (1, 2)] == [False, False]
    counter.note_success()
    assert [counter.note_failure(now) for now in (3, 4)] == [False, False]
    assert counter.next_deadline() is None
    assert counter.note_failure(5)
    assert counter.is_paused
    assert counter.next_deadline() == 15


def test_what_ends_in_a_pause_neither_lengthens_nor_ends_it():
    """Handlers that have begun go on in a pause."""
    counter = failing(1)
    assert counter.note_failure(0)
    assert not counter.note_failure(9)
    counter.note_success()
    assert not counter.resume_if_over(9.9)
    assert counter.is_paused
    assert counter.resume_if_over(10)
    assert not counter.resume_if_over(10)
    assert not counter.is_paused


def test_after_a_pause_one_more_failure_is_enough_until_a_job_succeeds():
    """Also if more than that have failed in the pause."""
    counter = failing()
    assert [counter.note_failure(0) for _ in range(5)] == [False, False, True, False, False]
    assert counter.resume_if_over(10)
    assert counter.note_failure(11)
    assert counter.in_a_row == 3
    assert counter.resume_if_over(21)
    counter.note_success()
    assert [counter.note_failure(22) for _ in range(3)] == [False, False, True]


def test_a_worker_that_stops_pauses_no_more():
    counter = failing(1)
    assert counter.note_failure(0)
    counter.close()
    assert not counter.is_paused
    assert not counter.note_failure(1)
    assert not counter.resume_if_over(100)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"pause_after_failures": 0}, "pause_after_failures: must be 1 to 1,000,000, not 0"),
        ({"pause_after_failures": 1_000_001}, "pause_after_failures: must be 1 to"),
        ({"failure_pause": -1}, "failure_pause: must be 0 s to 86,400 s"),
        ({"failure_pause": 86_401}, "failure_pause: must be 0 s to 86,400 s"),
    ],
)
def test_bounds_are_told_where_the_worker_is_made(settings, said):
    with pytest.raises(InvalidArgument, match=said):
        Worker(**settings)

"""Who waits for which job: one caller, a few, and many of the same job."""

from __future__ import annotations

import pytest

from jobline_server.runtime.watch.wait_index import TUPLE_MAX, WaitIndex


@pytest.mark.parametrize("count", [1, 2, TUPLE_MAX, TUPLE_MAX + 1, 3 * TUPLE_MAX])
def test_all_who_wait_for_a_job_are_taken_once(count: int) -> None:
    """However many there are; who is added twice waits once."""
    index: WaitIndex[str] = WaitIndex()
    waiters = [f"w{number}" for number in range(count)]
    for waiter in waiters:
        index.add([7, 8], waiter)
    assert sorted(index.take(7)) == sorted(waiters)
    assert index.take(7) == ()
    assert len(index) == 1


@pytest.mark.parametrize("count", [1, 2, 3, TUPLE_MAX + 2])
def test_who_goes_waits_no_more_and_the_others_do(count: int) -> None:
    """Also when so few are left that they are kept in another way."""
    index: WaitIndex[str] = WaitIndex()
    waiters = [f"w{number}" for number in range(count)]
    for waiter in waiters:
        index.add([7], waiter)
    for gone, waiter in enumerate(waiters, 1):
        assert index.has(7, waiter)
        index.remove([7, 99], waiter)
        assert not index.has(7, waiter)
        assert all(index.has(7, other) for other in waiters[gone:])
    assert len(index) == 0


@pytest.mark.parametrize("count", [2, 1_000])
def test_jobs_of_a_run_that_anybody_waits_for(count: int) -> None:
    """Runs that are shorter than the table, and longer."""
    index: WaitIndex[str] = WaitIndex()
    index.add([5, 10, 11, 2_000], "w")
    assert sorted(index.within(10, count)) == [10, 11]

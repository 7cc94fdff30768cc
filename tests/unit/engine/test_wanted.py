"""Wanted jobs: which results live jobs may still read."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine.tables import PART_BITS
from jobline_server.engine.wanted import FEW, Wanted, runs_without

PART = 1 << PART_BITS
# Around the border of two parts.
ids = st.integers(PART - 6, PART + 5)
spans = st.tuples(ids, st.integers(1, 12))


@given(st.lists(st.tuples(st.booleans(), st.lists(ids, max_size=4))), st.lists(spans, max_size=3))
def test_table_is_what_counting_gives(steps, runs):
    wanted, readers = Wanted(), dict.fromkeys(range(PART - 6, PART + 18), 0)
    for is_new, job_ids in steps:
        (wanted.add if is_new else wanted.remove)(job_ids)
        for job_id in job_ids:
            readers[job_id] = max(readers[job_id] + (1 if is_new else -1), 0)
    expected = {job_id for job_id, count in readers.items() if count}
    assert bool(wanted) is bool(expected)
    assert {job_id for job_id in readers if job_id in wanted} == expected
    of_runs = [set(range(start, start + count)) for start, count in runs]
    assert wanted.has_any(runs) is any(expected & of_run for of_run in of_runs)
    for (start, count), of_run in zip(runs, of_runs, strict=True):
        found = wanted.within(start, count)
        assert found == sorted(expected & of_run)
        left = list(zip(*runs_without([start], [count], found), strict=True))
        assert {job_id for one, length in left for job_id in range(one, one + length)} == (
            of_run - expected
        )
        # In order, and never two where one would do.
        assert all(a + length < b for (a, length), (b, _) in pairwise(left))


def test_few_are_looked_up_in_a_long_run_by_themselves():
    """A million plain jobs a second end while one flow is under way."""
    wanted = Wanted()
    wanted.add([5, 10 * PART])
    assert not wanted.has_any([(6, 10 * PART - 6), (10 * PART + 1, PART)])
    assert wanted.has_any([(6, 10 * PART)])


def test_many_are_let_go_of_in_steps():
    """A thousand jobs that have a thousand parents each may end in one step of the loop."""
    many = range(1, FEW + 2)
    wanted = Wanted()
    for _ in range(3):
        wanted.add(many)
    wanted.remove(many)
    wanted.remove(many)
    assert [wanted[one] for one in many] == [3] * len(many)
    assert wanted.sweep(1)
    assert [wanted[one] for one in many] == [2] + [3] * FEW
    assert wanted.sweep(len(many))
    assert [wanted[one] for one in many] == [1] + [2] * FEW
    assert not wanted.sweep(len(many))
    assert [wanted[one] for one in many] == [1] * len(many)
    wanted.remove(many)
    assert not wanted.sweep(2 * FEW)
    assert not wanted


def test_few_are_let_go_of_at_once():
    wanted = Wanted()
    wanted.add(range(1, FEW + 1))
    wanted.remove(range(1, FEW + 1))
    assert not wanted
    assert not wanted.sweep(1)

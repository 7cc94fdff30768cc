"""Pages of runs: bounded by jobs, bytes and entries, complete together."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, JobState
from jobline_server.runtime.queries.job_runs import JobRun
from jobline_server.runtime.queries.paging import API_PAGE_BYTES_MAX, NO_ID
from jobline_server.runtime.queries.run_pages import (
    PAGE_ENTRIES_MAX,
    RunPageBuilder,
    run_page_of,
)
from jobline_server.runtime.views import JobView

MIB = 1 << 20


def a_view(job_id: int, payload: bytes = b"") -> JobView:
    return JobView(job_id, "mail", JobState.READY, DEFAULT_OPTIONS, payload, 1)


def a_run(first_id: int, count: int, payload: bytes = b"x") -> JobRun:
    return JobRun(a_view(first_id), first_id, count, Payloads.of([payload] * count), 0)


def filled(items: list[tuple[int, int]], count: int = 100) -> RunPageBuilder:
    """A builder with these (first id, number of jobs) as long as it takes more; 1: a job."""
    builder = RunPageBuilder(count, with_payloads=True)
    for first_id, length in items:
        if builder.is_full:
            break
        if length == 1:
            builder.add(a_view(first_id, b"x"))
        else:
            builder.add_run(a_run(first_id, length))
    return builder


def ids_of(page: tuple[list[JobView], list[JobRun], int, bool]) -> list[int]:
    jobs, runs, _, _ = page
    ids = [view.id for view in jobs]
    return sorted(ids + [one for run in runs for one in range(run.first_id, run.end_id)])


def test_a_builder_takes_as_many_jobs_as_a_page_has() -> None:
    """The last run is cut."""
    builder = filled([(1, 1), (10, 60), (100, 60)])
    assert [(run.first_id, run.count) for run in builder.runs] == [(10, 60), (100, 39)]
    assert (builder.is_full, builder.last_id) == (True, 138)


def test_a_builder_without_enough_has_no_last_id() -> None:
    builder = filled([(1, 1), (10, 60)])
    assert (builder.is_full, builder.last_id, builder.end_id) == (False, NO_ID, 70)


def test_bytes_cut_a_run_and_leave_out_a_job() -> None:
    """But one job is there, however large."""
    builder = RunPageBuilder(100, with_payloads=True)
    builder.add_run(a_run(1, 5, bytes(MIB)))
    assert (builder.runs[0].count, builder.is_full) == (2, True)
    builder = RunPageBuilder(100, with_payloads=True)
    builder.add(a_view(1, bytes(2 * MIB)))
    builder.add(a_view(2, bytes(2 * MIB)))
    assert (len(builder.found), builder.last_id) == (1, 1)
    builder = RunPageBuilder(100, with_payloads=True)
    builder.add_run(a_run(1, 2, bytes(API_PAGE_BYTES_MAX)))
    assert (builder.runs[0].count, builder.last_id) == (1, 1)


def test_jobs_and_runs_together_have_a_bound() -> None:
    """Each takes time, whatever is in it."""
    items = [(10 * at, 2 - at % 2) for at in range(1, PAGE_ENTRIES_MAX + 9)]
    builder = filled(items, 10_000)
    assert len(builder.found) + len(builder.runs) == PAGE_ENTRIES_MAX
    assert builder.entries_left == 0
    page = run_page_of([builder], 10_000, with_payloads=True)
    assert (len(page.jobs) + len(page.runs), page.is_cut) == (PAGE_ENTRIES_MAX, True)


def test_a_job_in_two_sources_is_on_the_page_once() -> None:
    """It ended between the two reads."""
    live, ended = filled([(10, 20), (40, 1)]), filled([(5, 10), (25, 20)])
    page = run_page_of([live, ended], 100, with_payloads=True)
    assert ids_of(page) == [*range(5, 45)]
    assert (page.last_id, page.is_cut) == (44, False)


def test_a_page_ends_where_a_source_was_not_read_further() -> None:
    """Jobs behind it may have others before them, which are on the next page."""
    short, long = filled([(1, 1), (5, 1)], 2), filled([(2, 1), (3, 9)], 50)
    page = run_page_of([short, long], 50, with_payloads=True)
    assert ids_of(page) == [1, 2, 3, 4, 5]
    assert (page.last_id, page.is_cut) == (5, True)


def test_nothing_is_a_page_without_a_next_one() -> None:
    assert run_page_of([], 5, with_payloads=True) == ([], [], 0, False)
    assert run_page_of([filled([])], 5, with_payloads=True) == ([], [], 0, False)


sources = st.lists(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 9)), max_size=8), min_size=1, max_size=3
)


@given(sources, st.integers(1, 40))
def test_pages_are_in_order_and_hold_all(drawn: list[list[tuple[int, int]]], count: int) -> None:
    """Page after page, each read from the sources anew."""
    all_items: list[list[tuple[int, int]]] = []
    for steps in drawn:
        items, at = [], 0
        for gap, length in steps:
            items.append((at + gap, length))
            at += gap + length
        all_items.append(items)
    pages: list[list[int]] = []
    after, is_cut = 0, True
    while is_cut:
        left = [
            [
                (max(first_id, after + 1), first_id + length - max(first_id, after + 1))
                for first_id, length in items
                if first_id + length > after + 1
            ]
            for items in all_items
        ]
        page = run_page_of([filled(one, count) for one in left], count, with_payloads=True)
        pages.append(ids_of(page))
        after, is_cut = page.last_id or after, page.is_cut
    found = [one for page in pages for one in page]
    assert all(one < other for one, other in pairwise(found))
    expected = {one for items in all_items for at, n in items for one in range(at, at + n)}
    assert set(found) == expected
    assert max(map(len, pages)) <= count

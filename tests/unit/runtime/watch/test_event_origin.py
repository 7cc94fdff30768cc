"""Event runs are cut to a length that one answer can hold, with the columns of their jobs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from jobline_server.engine.values import JobState
from jobline_server.runtime.watch.event_origin import STARTS_MAX, EventOrigin, cut, singles
from jobline_server.wire.event_runs import NO_COLUMNS, Columns, EventRun, EventView

VIEW = EventView(3, 44, 1_000, 1, "mail")


def ids_of(runs: Sequence[EventRun]) -> list[int]:
    return [
        job_id
        for run in runs
        for start, count in zip(run.starts, run.counts, strict=True)
        for job_id in range(start, start + count)
    ]


def test_an_event_says_where_it_is_in_the_journal() -> None:
    view = EventOrigin(3, 44).view(1_000, 1, "mail", state=JobState.READY)
    assert view == EventView(3, 44, 1_000, 1, "mail", state=JobState.READY)


def test_no_ids_are_no_run() -> None:
    assert list(cut(VIEW, [], [])) == list(singles(VIEW, [])) == []


def test_runs_of_ids_are_one_event_run_and_counted_by_job() -> None:
    (run,) = cut(VIEW, [7, 20], [2, 3])
    assert (run.shared, ids_of([run]), run.total) == (VIEW, [7, 8, 20, 21, 22], 5)
    assert run.columns is NO_COLUMNS


@pytest.mark.parametrize(
    ("ids", "lengths"),
    [
        (STARTS_MAX, [STARTS_MAX]),
        (STARTS_MAX + 1, [STARTS_MAX, 1]),
        (2 * STARTS_MAX + 5, [STARTS_MAX, STARTS_MAX, 5]),
    ],
)
def test_long_runs_are_cut_in_order(ids: int, lengths: list[int]) -> None:
    """An answer never cuts an event run, and has a size that clients take."""
    starts = list(range(10, 10 + 2 * ids, 2))
    for runs in (list(cut(VIEW, starts, [1] * ids)), list(singles(VIEW, starts))):
        assert [len(run.starts) for run in runs] == lengths
        assert [run.total for run in runs] == lengths
        assert ids_of(runs) == starts


def test_each_part_has_its_part_of_the_columns() -> None:
    """Empty columns stay empty: `shared` has the value of all."""
    ids = STARTS_MAX + 2
    names = [f"name-{n}" for n in range(ids)]
    columns = Columns(names, range(ids), range(1, ids + 1), ["w"] * ids)
    for runs in (
        list(cut(VIEW, range(ids), [1] * ids, columns)),
        list(singles(VIEW, range(ids), columns)),
    ):
        last = runs[-1].columns
        assert len(runs[0].columns.names) == STARTS_MAX
        assert list(last.names) == names[-2:]
        assert list(last.deliveries) == [ids - 2, ids - 1]
        assert list(last.attempts) == [ids - 1, ids]
        assert list(last.workers) == ["w", "w"]
        assert not last.run_at_ms


def test_later_changes_of_the_columns_do_not_show() -> None:
    """Events are kept for an hour: what they were made of belongs to facts."""
    starts, names, deliveries = [7, 20], ["a", "b"], [1, 2]
    (run,) = singles(VIEW, starts, Columns(names, deliveries))
    for column in (starts, deliveries):
        column[0] = 99
    names[0] = "z"
    assert ids_of([run]) == [7, 20]
    assert (list(run.columns.names), list(run.columns.deliveries)) == (["a", "b"], [1, 2])


def test_consecutive_ids_stay_a_range() -> None:
    """They need no memory each."""
    (run,) = singles(VIEW, range(7, 10))
    assert run.starts == range(7, 10)

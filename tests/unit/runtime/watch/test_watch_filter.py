"""Which events of a run a watcher is sent."""

from __future__ import annotations

from typing import Any

import pytest

from jobline_server.runtime.watch.event_origin import EventOrigin, cut
from jobline_server.runtime.watch.watch_filter import WatchFilter
from jobline_server.wire.event_runs import EventRun

PUSHED, LEASED = 1, 2


def a_run(kind: int = PUSHED, queue: str = "mail") -> EventRun:
    """Events of jobs 7, 8, 20, 21, 22, in this order."""
    (run,) = cut(EventOrigin(0, 1).view(0, kind, queue), [7, 20], [2, 3])
    return run


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, [(0, 5)]),
        ({"queues": {"mail", "print"}}, [(0, 5)]),
        ({"queues": {"print"}}, []),
        ({"kinds": {PUSHED, LEASED}}, [(0, 5)]),
        ({"kinds": {LEASED}}, []),
        ({"queues": {"mail"}, "kinds": {LEASED}}, []),
        ({"queues": {"print"}, "kinds": {PUSHED}}, []),
        ({"job_id": 7}, [(0, 1)]),
        ({"job_id": 8}, [(1, 1)]),
        ({"job_id": 9}, []),
        ({"job_id": 22}, [(4, 1)]),
        ({"job_id": 23}, []),
        ({"job_id": 8, "queues": {"print"}}, []),
    ],
)
def test_all_conditions_that_are_set_must_hold(
    conditions: dict[str, Any], expected: list[tuple[int, int]]
) -> None:
    """Those of a run are accepted together, and one job by its place."""
    sets = {name: frozenset(value) for name, value in conditions.items() if name != "job_id"}
    wanted = WatchFilter(job_id=conditions.get("job_id", 0), **sets)
    assert list(wanted.wanted_runs(a_run())) == expected


def test_each_event_of_a_job_is_accepted() -> None:
    """It may be in a run twice."""
    (run,) = cut(EventOrigin(0, 1).view(0, LEASED, "mail"), [7, 30, 6], [1, 1, 2])
    assert list(WatchFilter(job_id=7).wanted_runs(run)) == [(0, 1), (3, 1)]


def test_an_event_of_a_queue_is_of_no_job() -> None:
    run = EventRun(EventOrigin(0, 1).view(0, PUSHED, "mail"))
    assert list(WatchFilter().wanted_runs(run)) == [(0, 1)]
    assert list(WatchFilter(job_id=7).wanted_runs(run)) == []

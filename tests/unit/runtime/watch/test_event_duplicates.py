"""The events of pushes that returned jobs which were there already."""

from __future__ import annotations

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.notices import DuplicatesFound
from jobline_server.engine.values import JobState, PushOutcome
from jobline_server.runtime.watch.event_duplicates import duplicates
from jobline_server.runtime.watch.event_origin import EventOrigin

READY, EXTENDED, DUPLICATE = JobState.READY, PushOutcome.EXTENDED, PushOutcome.DUPLICATE


def test_those_with_one_outcome_and_state_are_one_run() -> None:
    """A job that is named twice has two events; one that has ended has no state."""
    outcomes = [DUPLICATE, EXTENDED, DUPLICATE, DUPLICATE]
    notice = DuplicatesFound(
        1_000, "q", [7, 8, 7, 5], [READY, READY, READY, None], ["a", "", "b", "c"], outcomes
    )
    runs = list(duplicates(EventOrigin(0, 3), notice))
    assert [
        (run.shared.message, run.shared.state, list(run.starts), list(run.columns.names))
        for run in runs
    ] == [
        ("DUPLICATE", READY, [7, 7], ["a", "b"]),
        ("EXTENDED", READY, [8], [""]),
        ("DUPLICATE", None, [5], ["c"]),
    ]
    assert {run.shared.kind for run in runs} == {EventKind.EVENT_KIND_DUPLICATE}

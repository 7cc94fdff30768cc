"""The event of a job that an operator changed; `test_events_of_facts` has its states."""

from __future__ import annotations

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.update_entries import JobUpdated
from jobline_server.engine.values import JobState
from jobline_server.runtime.watch.event_origin import EventOrigin
from jobline_server.runtime.watch.event_updated import updated


def test_the_event_has_the_new_time() -> None:
    """And the states before and after."""
    fact = JobUpdated(5, "mail", 7, run_at_ms=90, before=JobState.READY, after=JobState.SCHEDULED)
    (run,) = updated(EventOrigin(1, 2), fact)
    assert (list(run.starts), run.shared.kind) == ([7], EventKind.EVENT_KIND_UPDATED)
    assert (run.shared.run_at_ms, run.shared.before, run.shared.state) == (90, 3, 1)

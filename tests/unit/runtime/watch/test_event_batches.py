"""What watchers see of batches."""

from __future__ import annotations

import pytest

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.batch_entries import BatchCalled, BatchClosed
from jobline_server.engine.batches import BatchCall
from jobline_server.engine.effects import Applied
from jobline_server.engine.entries import Fact
from jobline_server.runtime.watch.event_batches import BATCHES
from jobline_server.runtime.watch.events import EVENTS, event_runs

SUCCESS, COMPLETE, DEATH = BatchCall.SUCCESS, BatchCall.COMPLETE, BatchCall.FIRST_DEATH


def test_each_fact_of_batches_is_in_the_table() -> None:
    assert EVENTS.items() >= BATCHES.items()


@pytest.mark.parametrize(
    ("calls", "kinds"),
    [
        (SUCCESS | COMPLETE, [EventKind.EVENT_KIND_BATCH_COMPLETED]),
        (SUCCESS, [EventKind.EVENT_KIND_BATCH_COMPLETED]),
        (DEATH | COMPLETE, [EventKind.EVENT_KIND_BATCH_FAILED]),
        (DEATH, []),
    ],
)
def test_the_end_of_a_batch_is_one_event(calls: BatchCall, kinds: list[int]) -> None:
    """Also of one that failed first, and was retried."""
    facts: list[Fact] = [BatchClosed(1, 5), BatchCalled(1, 5, calls, "import")]
    runs = event_runs(0, 7, [Applied(fact, 7, []) for fact in facts])
    found = [(run.shared.kind, run.shared.batch_id, run.shared.name) for run in runs]
    assert found == [(kind, 5, "import") for kind in kinds]

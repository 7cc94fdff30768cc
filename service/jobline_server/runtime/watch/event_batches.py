"""Makes the events of batches."""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine import batch_entries
from jobline_server.engine.batches import BatchCall
from jobline_server.runtime.watch.event_origin import EventOrigin
from jobline_server.wire.event_runs import EventRun


def _batch_called(origin: EventOrigin, fact: batch_entries.BatchCalled) -> Iterator[EventRun]:
    kind = EventKind.EVENT_KIND_BATCH_COMPLETED
    if not fact.calls & BatchCall.SUCCESS:
        if not fact.calls & BatchCall.COMPLETE:
            return
        kind = EventKind.EVENT_KIND_BATCH_FAILED
    yield EventRun(origin.view(fact.at_ms, kind, "", name=fact.name, batch_id=fact.id))


BATCHES = {
    batch_entries.BatchCreated: None,  # nothing happens to a job
    batch_entries.BatchClosed: None,
    batch_entries.BatchesJoined: None,
    batch_entries.BatchesCounted: None,
    batch_entries.BatchCalled: _batch_called,
    batch_entries.BatchCountsSent: None,
    batch_entries.BatchCancelled: None,
    batch_entries.BatchesForgotten: None,
}

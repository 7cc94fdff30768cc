"""Hypothesis strategies for the facts of batches."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from jobline_server.engine import batch_entries
from jobline_server.engine.batches import Batch, BatchCall, BatchSpec, Callback, EndCounts
from tests.storage.value_strategies import (
    Any_,
    batch_count,
    id_lists,
    ids,
    job_options,
    moments,
    optional,
    shards,
    text,
)

callbacks = st.builds(
    Callback,
    queue=text,
    shard=shards,
    options=job_options,
    payload=st.binary(max_size=8),
    group=text,
    unique_key=text,
    delay_ms=moments,
)
specs = st.builds(
    BatchSpec,
    name=text,
    tags=st.lists(text, max_size=3).map(tuple),
    parent=ids,
    request_id=text,
    on_success=optional(callbacks),
    on_complete=optional(callbacks),
    on_first_death=optional(callbacks),
)
calls = st.integers(0, 7).map(BatchCall)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """A batch in any state."""
    batch = Batch(draw(ids), draw(specs), draw(moments))
    batch.total = draw(st.integers(0, 2**50))
    by_end, has_died = draw(batch_count)
    batch.ends = EndCounts(by_end, has_died=has_died)
    batch.closed_ms, batch.completed_ms = draw(moments), draw(moments)
    batch.cancelled_ms, batch.called = draw(moments), draw(calls)
    batch.cancelled_by, batch.cancel_reason = draw(text), draw(text)
    return batch


@st.composite
def counted(draw: st.DrawFn, kind: type, values: Any_) -> Any:
    """A fact with a value beside each batch."""
    pairs = draw(st.lists(st.tuples(ids, values), max_size=4))
    return kind(draw(moments), [one for one, _ in pairs], [value for _, value in pairs])


BATCH_FACTS: dict[type, Any_] = {
    batch_entries.BatchCreated: st.builds(batch_entries.BatchCreated, moments, ids, specs),
    batch_entries.BatchClosed: st.builds(batch_entries.BatchClosed, moments, ids),
    batch_entries.BatchesJoined: counted(batch_entries.BatchesJoined, st.integers(1, 2**50)),
    batch_entries.BatchesCounted: counted(batch_entries.BatchesCounted, batch_count),
    batch_entries.BatchCalled: st.builds(batch_entries.BatchCalled, moments, ids, calls, text),
    batch_entries.BatchCountsSent: st.builds(batch_entries.BatchCountsSent, moments, id_lists),
    batch_entries.BatchCancelled: st.builds(batch_entries.BatchCancelled, moments, ids, text, text),
    batch_entries.BatchesForgotten: st.builds(batch_entries.BatchesForgotten, moments, id_lists),
}

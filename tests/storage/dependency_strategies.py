"""Hypothesis strategies for facts of BLOCKED jobs, and of those that they wait for."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from jobline_server.engine import blocked_entries
from jobline_server.engine.dependencies import ParentEnd
from tests.storage.value_strategies import Any_, id_lists, ids, moments, shards, text


@st.composite
def blocked_columns(draw: st.DrawFn) -> dict[str, Any]:
    """The columns of BLOCKED jobs of a push."""
    rows = draw(st.lists(st.tuples(st.integers(0, 999), id_lists.map(tuple), moments), max_size=3))
    return {
        "blocked": [index for index, _, _ in rows],
        "parents_left": [parents for _, parents, _ in rows],
        "blocked_until_ms": [until_ms for _, _, until_ms in rows],
    }


ends = st.sampled_from(ParentEnd)


@st.composite
def pairs_of_ids(draw: st.DrawFn, kind: type, name: str, values_of: Any_) -> Any:
    """A fact with a value beside each id."""
    pairs = draw(st.lists(st.tuples(ids, values_of), max_size=4))
    columns = {"ids": [one for one, _ in pairs], name: [other for _, other in pairs]}
    return kind(at_ms=draw(moments), **columns)


FACTS: dict[type, Any_] = {
    blocked_entries.JobsUnblocked: st.builds(
        blocked_entries.JobsUnblocked,
        at_ms=moments,
        queue=text,
        ids=id_lists,
        run_at_ms=st.just([]),
    ),
    blocked_entries.ParentsMet: pairs_of_ids(blocked_entries.ParentsMet, "parents", ids),
    blocked_entries.ParentsEnded: pairs_of_ids(blocked_entries.ParentsEnded, "ends", ends),
    blocked_entries.DependenciesFailed: st.builds(
        blocked_entries.DependenciesFailed,
        at_ms=moments,
        parent=ids,
        end=ends,
        cancelled=st.booleans(),
        ids=id_lists,
    ),
    blocked_entries.JobSetAside: st.builds(
        blocked_entries.JobSetAside, at_ms=moments, queue=text, id=ids, worker=text
    ),
    blocked_entries.ChildrenAdded: st.builds(
        blocked_entries.ChildrenAdded,
        at_ms=moments,
        id=ids,
        children=id_lists,
        parents_left=id_lists,
        blocked_until_ms=moments,
        on_failure=st.binary(max_size=5),
    ),
    blocked_entries.ParentsDropped: st.builds(
        blocked_entries.ParentsDropped, at_ms=moments, ids=id_lists
    ),
    blocked_entries.DependentsTold: st.builds(
        blocked_entries.DependentsTold, at_ms=moments, ids=id_lists
    ),
    blocked_entries.JobsAwaited: st.builds(
        blocked_entries.JobsAwaited, at_ms=moments, by_shard=shards, ids=id_lists
    ),
    blocked_entries.JobsNotAwaited: st.builds(
        blocked_entries.JobsNotAwaited, at_ms=moments, by_shard=shards, ids=id_lists
    ),
}

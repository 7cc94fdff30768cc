"""Strategies of the facts of unique keys; a part of `strategies`."""

from __future__ import annotations

from hypothesis import strategies as st

from jobline_server.engine import unique_entries
from tests.storage.value_strategies import id_lists, ids, moments, text


@st.composite
def keys_extended(draw: st.DrawFn) -> unique_entries.UniqueKeysExtended:
    rows = draw(st.lists(st.tuples(text, ids, moments), max_size=3))
    keys, jobs, until_ms = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    queue, aged_ms = draw(text), draw(moments)
    return unique_entries.UniqueKeysExtended(draw(moments), queue, keys, jobs, until_ms, aged_ms)


UNIQUE_KEY_FACTS: dict[type, st.SearchStrategy[object]] = {
    unique_entries.JobsReplaced: st.builds(
        unique_entries.JobsReplaced, at_ms=moments, queue=text, ids=id_lists
    ),
    unique_entries.UniqueKeysExtended: keys_extended(),
    unique_entries.UniqueKeyForgotten: st.builds(
        unique_entries.UniqueKeyForgotten,
        at_ms=moments,
        queue=text,
        unique_key=text,
        aged_ms=moments,
    ),
}

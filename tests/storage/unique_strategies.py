"""Strategies of the facts of unique keys; a part of `strategies`."""

from __future__ import annotations

from hypothesis import strategies as st

from jobline_server.engine import unique_entries
from tests.storage.value_strategies import id_lists, ids, moments, text

UNIQUE_KEY_FACTS: dict[type, st.SearchStrategy[object]] = {
    unique_entries.JobsReplaced: st.builds(
        unique_entries.JobsReplaced, at_ms=moments, queue=text, ids=id_lists
    ),
    unique_entries.UniqueKeyExtended: st.builds(
        unique_entries.UniqueKeyExtended,
        at_ms=moments,
        queue=text,
        unique_key=text,
        id=ids,
        until_ms=moments,
        aged_ms=moments,
    ),
    unique_entries.UniqueKeyForgotten: st.builds(
        unique_entries.UniqueKeyForgotten,
        at_ms=moments,
        queue=text,
        unique_key=text,
        aged_ms=moments,
    ),
}

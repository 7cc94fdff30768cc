"""Hypothesis strategies for the facts of groups, and of queues that pause as they do."""

from __future__ import annotations

from hypothesis import strategies as st

from jobline_server.engine import group_entries, queue_entries
from tests.storage.value_strategies import group_settings, ids, moments, text

GROUP_FACTS = {
    queue_entries.QueuePaused: st.builds(
        queue_entries.QueuePaused, at_ms=moments, queue=text, principal=text, reason=text
    ),
    queue_entries.QueueResumed: st.builds(queue_entries.QueueResumed, at_ms=moments, queue=text),
    group_entries.GroupChanged: st.builds(
        group_entries.GroupChanged,
        at_ms=moments,
        queue=text,
        group=text,
        settings=group_settings,
        number=ids,
    ),
    group_entries.GroupPaused: st.builds(
        group_entries.GroupPaused,
        at_ms=moments,
        queue=text,
        group=text,
        principal=text,
        reason=text,
        number=ids,
    ),
    group_entries.GroupLimited: st.builds(
        group_entries.GroupLimited,
        at_ms=moments,
        queue=text,
        group=text,
        until_ms=moments,
        principal=text,
        reason=text,
        number=ids,
        is_used_up=st.booleans(),
        leased=st.lists(ids, max_size=3),
    ),
    group_entries.GroupResumed: st.builds(
        group_entries.GroupResumed, at_ms=moments, queue=text, group=text
    ),
}

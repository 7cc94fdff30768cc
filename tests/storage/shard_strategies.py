"""Hypothesis strategies for the facts of queues, limiters and schedules, and of messages between
shards.
"""

from __future__ import annotations

from hypothesis import strategies as st

from jobline_server.engine import (
    limiter_entries,
    message_entries,
    queue_entries,
    schedule_entries,
)
from jobline_server.engine.schedule import SkipReason
from tests.storage.value_strategies import (
    Any_,
    ids,
    limiters,
    message_numbers,
    moments,
    schedule_settings,
    settings,
    shard_messages,
    shards,
    text,
)

SHARD_FACTS: dict[type, Any_] = {
    queue_entries.QueueChanged: st.builds(
        queue_entries.QueueChanged, at_ms=moments, queue=text, settings=settings, created_number=ids
    ),
    queue_entries.QueueLimited: st.builds(
        queue_entries.QueueLimited,
        at_ms=moments,
        queue=text,
        until_ms=moments,
        principal=text,
        reason=text,
    ),
    queue_entries.QueueDeleted: st.builds(queue_entries.QueueDeleted, at_ms=moments, queue=text),
    limiter_entries.LimiterChanged: st.builds(limiter_entries.LimiterChanged, moments, limiters),
    limiter_entries.LimiterDeleted: st.builds(limiter_entries.LimiterDeleted, moments, text),
    schedule_entries.ScheduleChanged: st.builds(
        schedule_entries.ScheduleChanged, moments, text, ids, schedule_settings, moments, moments
    ),
    schedule_entries.ScheduleDeleted: st.builds(schedule_entries.ScheduleDeleted, moments, text),
    schedule_entries.SchedulePaused: st.builds(
        schedule_entries.SchedulePaused, moments, text, text, text
    ),
    schedule_entries.ScheduleResumed: st.builds(
        schedule_entries.ScheduleResumed, moments, text, moments
    ),
    schedule_entries.ScheduleTicked: st.builds(
        schedule_entries.ScheduleTicked,
        moments,
        text,
        text,
        fired_ms=st.lists(moments, max_size=3),
        job_ids=st.lists(ids, max_size=3),
        skipped_ms=st.lists(moments, max_size=3),
        skip_reasons=st.lists(st.sampled_from(SkipReason), max_size=3),
        skip_message=text,
        missed=moments,
        missed_ms=moments,
        waiting_ms=moments,
        next_ms=moments,
    ),
    message_entries.MessagesSent: st.builds(
        message_entries.MessagesSent,
        at_ms=moments,
        to_shard=shards,
        first_number=message_numbers,
        messages=st.lists(shard_messages, max_size=3),
    ),
    message_entries.MessagesReceived: st.builds(
        message_entries.MessagesReceived, at_ms=moments, from_shard=shards, up_to=message_numbers
    ),
    message_entries.MessagesAcknowledged: st.builds(
        message_entries.MessagesAcknowledged, at_ms=moments, to_shard=shards, up_to=message_numbers
    ),
}

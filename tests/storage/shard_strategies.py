"""Hypothesis strategies for the facts of queues, limiters, schedules and operations, and of
messages between shards.
"""

from __future__ import annotations

from operator import itemgetter

from hypothesis import strategies as st

from jobline_server.engine import (
    limiter_entries,
    message_entries,
    operation_entries,
    operations,
    queue_entries,
    schedule_entries,
    server_entries,
    server_notes,
    webhook_entries,
)
from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.schedule import SkipReason
from tests.storage.value_strategies import (
    Any_,
    group_settings,
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
from tests.storage.webhook_strategies import (
    webhook_deliveries,
    webhook_secrets,
    webhook_settings,
    webhook_tries,
)

named = ("verb", "principal", "reason", "queue", "group", "limiter", "schedule")
texts = dict.fromkeys(named, text)
pauses = st.builds(operations.Pause, st.booleans(), text, text)
time_limits = st.none() | st.builds(TimeLimit, st.integers(1, 10**13), text, text)
runs = st.tuples(ids, st.integers(1, 2**31), moments)
changes = st.one_of(
    st.none(),
    st.builds(operations.PauseChange, pauses, pauses),
    st.builds(operations.TimeLimitChange, time_limits, time_limits),
    st.builds(operations.QueueChange, settings, settings),
    st.builds(operations.GroupChange, group_settings, group_settings),
    st.builds(operations.LimitsChange, st.none() | limiters, st.none() | limiters),
    st.builds(
        operations.CancelledJobs,
        st.lists(runs, max_size=4, unique_by=itemgetter(0)).map(sorted).map(tuple),
        st.booleans(),
    ),
)
recorded = st.builds(
    operations.Operation,
    id=text,
    **texts,
    request=text,
    began_ms=moments,
    ended_ms=moments,
    state=st.sampled_from(operations.OperationState),
    count=ids,
    requested=ids,
    undoes=text,
    batch_id=ids,
    change=changes,
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
    operation_entries.OperationRecorded: st.builds(
        operation_entries.OperationRecorded, moments, recorded
    ),
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
    webhook_entries.WebhookChanged: st.builds(
        webhook_entries.WebhookChanged,
        moments,
        text,
        ids,
        webhook_settings,
        webhook_secrets,
        st.lists(ids, max_size=3).map(tuple),
    ),
    server_entries.ServerNoted: st.builds(
        server_entries.ServerNoted,
        moments,
        st.lists(
            st.builds(
                server_notes.ServerNote,
                st.sampled_from(server_notes.ServerNoteKind),
                moments,
                text,
                text,
            ),
            max_size=3,
        ),
    ),
    webhook_entries.WebhookDeleted: st.builds(webhook_entries.WebhookDeleted, moments, text),
    webhook_entries.WebhookProgressed: st.builds(
        webhook_entries.WebhookProgressed,
        moments,
        text,
        queued=st.lists(webhook_deliveries, max_size=2),
        dropped=st.lists(ids, max_size=3),
        dropped_early=st.integers(0, 2**40),
        tries=st.lists(webhook_tries, max_size=2),
        missed=st.booleans(),
        told=st.lists(ids, max_size=3).map(tuple),
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

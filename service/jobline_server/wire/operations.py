"""Operations between message and value."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from google.protobuf.json_format import MessageToDict

from jobline.v1 import store_pb2
from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.operations import (
    CancelledJobs,
    Change,
    GroupChange,
    LimitsChange,
    Operation,
    OperationState,
    Pause,
    PauseChange,
    QueueChange,
    TimeLimitChange,
)
from jobline_server.wire.groups import fill_group_settings, group_settings_from_message
from jobline_server.wire.limiters import fill_limiter, limiter_from_message
from jobline_server.wire.settings import fill_settings, settings_from_message


def fill_operation(message: store_pb2.StoredOperation, operation: Operation) -> None:
    """Fills a StoredOperation."""
    message.id = operation.id
    message.state = store_pb2.StoredOperationState.ValueType(operation.state)
    message.verb = operation.verb
    message.principal = operation.principal
    message.reason = operation.reason
    message.queue = operation.queue
    message.group = operation.group
    message.limiter = operation.limiter
    message.request = operation.request
    message.began_ms = operation.began_ms
    message.ended_ms = operation.ended_ms
    message.count = operation.count
    message.requested = operation.requested
    message.undoes = operation.undoes
    message.schedule = operation.schedule
    message.batch_id = operation.batch_id
    if operation.change is not None:
        name, fill, _ = _CHANGES[type(operation.change)]
        part = getattr(message, name)
        part.SetInParent()
        fill(part, operation.change)


def operation_from_message(message: store_pb2.StoredOperation) -> Operation:
    """Returns the value of a StoredOperation."""
    change: Change | None = None
    name = message.WhichOneof("change")
    if name is not None:
        change = _READ[name](getattr(message, name))
    return Operation(
        id=message.id,
        verb=message.verb,
        principal=message.principal,
        began_ms=message.began_ms,
        state=OperationState(message.state),
        reason=message.reason,
        queue=message.queue,
        group=message.group,
        limiter=message.limiter,
        request=message.request,
        ended_ms=message.ended_ms,
        count=message.count,
        requested=message.requested,
        undoes=message.undoes,
        change=change,
        schedule=message.schedule,
        batch_id=message.batch_id,
    )


def change_as_json(operation: Operation) -> str:
    """Returns what an operation changed as JSON, "" if nothing but jobs."""
    if operation.change is None or isinstance(operation.change, CancelledJobs):
        return ""
    name, fill, _ = _CHANGES[type(operation.change)]
    change = getattr(store_pb2.StoredOperation(), name)
    fill(change, operation.change)
    found = MessageToDict(change, preserving_proto_field_name=True)
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _fill_pauses(message: store_pb2.StoredPauseChange, change: PauseChange) -> None:
    for part, pause in ((message.before, change.before), (message.after, change.after)):
        part.paused = pause.paused
        part.by = pause.by
        part.reason = pause.reason


def _pause_of(message: store_pb2.StoredPause) -> Pause:
    return Pause(message.paused, message.by, message.reason)


def _pauses_of(message: store_pb2.StoredPauseChange) -> PauseChange:
    return PauseChange(_pause_of(message.before), _pause_of(message.after))


def _fill_time_limits(message: store_pb2.StoredTimeLimitChange, change: TimeLimitChange) -> None:
    for part, limit in ((message.before, change.before), (message.after, change.after)):
        if limit is not None:
            part.until_ms = limit.until_ms
            part.by = limit.by
            part.reason = limit.reason


def _time_limit_of(message: store_pb2.StoredTimeLimit) -> TimeLimit | None:
    if not message.until_ms:
        return None
    return TimeLimit(message.until_ms, message.by, message.reason)


def _time_limits_of(message: store_pb2.StoredTimeLimitChange) -> TimeLimitChange:
    return TimeLimitChange(_time_limit_of(message.before), _time_limit_of(message.after))


def _fill_queues(message: store_pb2.StoredQueueChange, change: QueueChange) -> None:
    fill_settings(message.before, change.before)
    fill_settings(message.after, change.after)


def _queues_of(message: store_pb2.StoredQueueChange) -> QueueChange:
    return QueueChange(settings_from_message(message.before), settings_from_message(message.after))


def _fill_groups(message: store_pb2.StoredGroupChange, change: GroupChange) -> None:
    fill_group_settings(message.before, change.before)
    fill_group_settings(message.after, change.after)


def _groups_of(message: store_pb2.StoredGroupChange) -> GroupChange:
    before, after = map(group_settings_from_message, (message.before, message.after))
    return GroupChange(before, after)


def _fill_limits(message: store_pb2.StoredLimiterChange, change: LimitsChange) -> None:
    if change.before is not None:
        fill_limiter(message.before, change.before)
    if change.after is not None:
        fill_limiter(message.after, change.after)


def _limits_of(message: store_pb2.StoredLimiterChange) -> LimitsChange:
    return LimitsChange(
        limiter_from_message(message.before) if message.HasField("before") else None,
        limiter_from_message(message.after) if message.HasField("after") else None,
    )


def _fill_cancelled(message: store_pb2.StoredCancelledJobs, change: CancelledJobs) -> None:
    last = 0
    # Jobs are cancelled in order of id, shard by shard; the ids of a shard are above those before.
    for first_id, count, run_at_ms in sorted(change.runs):
        message.steps.append(first_id - last)
        message.counts.append(count)
        message.run_at_ms.append(run_at_ms)
        last = first_id
    message.cut = change.cut


def _cancelled_of(message: store_pb2.StoredCancelledJobs) -> CancelledJobs:
    columns = zip(accumulate(message.steps), message.counts, message.run_at_ms, strict=True)
    return CancelledJobs(tuple(columns), message.cut)


# The field of each change, and the functions that fill and read it; each takes its own message and
# change, which no type of a table can say.
_CHANGES: dict[type, tuple[str, Callable[[Any, Any], None], Callable[[Any], Change]]] = {
    PauseChange: ("pause", _fill_pauses, _pauses_of),
    TimeLimitChange: ("time_limit", _fill_time_limits, _time_limits_of),
    QueueChange: ("queue_settings", _fill_queues, _queues_of),
    GroupChange: ("group_settings", _fill_groups, _groups_of),
    LimitsChange: ("limits", _fill_limits, _limits_of),
    CancelledJobs: ("cancelled", _fill_cancelled, _cancelled_of),
}
_READ = {name: read for name, _, read in _CHANGES.values()}

"""Limits the entries of each list and map of a request: one table, by full name.

A list is counted before it is iterated, because iteration is expensive: a message of 16 MiB may
have sixteen million entries. `check_all` checks a message and all messages in it; the conversions
of the hot calls (`decoding.HOT_METHODS`) check their own lists, by the same numbers.
"""

from __future__ import annotations

from google.protobuf.message import Message

from jobline.v1 import batch_service_pb2, event_pb2, job_pb2
from jobline_server.engine import limits
from jobline_server.engine.commands import Refused
from jobline_server.rpc import limits as rpc_limits
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.mistyped import check_own_fields

# A field of the protocol that is not served yet: any entry is refused.
NOT_SERVED = 0
# A set of enum members: each may be named once.
STATES = len(job_pb2.JobState.values())
REASONS = len(job_pb2.EndReason.values())
BATCH_STATES = len(batch_service_pb2.BatchState.values())
KINDS = len(event_pb2.EventKind.values())

# In one settle, or in all settles and extends of a frame together.
SETTLED = limits.SETTLE_ITEMS_MAX

LIST_LIMITS: dict[str, int] = {
    # push
    "jobline.v1.PushRequest.jobs": limits.PUSH_JOBS_MAX,
    "jobline.v1.PushRequest.payloads": limits.PUSH_PAYLOADS_MAX,
    "jobline.v1.PushRequest.header_columns": limits.HEADERS_MAX,
    "jobline.v1.HeaderColumn.values": limits.PUSH_PAYLOADS_MAX,
    "jobline.v1.PushRequest.job_keys": limits.PUSH_JOBS_MAX,
    "jobline.v1.PushRequest.groups": limits.PUSH_JOBS_MAX,
    "jobline.v1.PushRequest.unique_keys": limits.PUSH_JOBS_MAX,
    "jobline.v1.JobOptions.headers": limits.HEADERS_MAX,
    "jobline.v1.JobOptions.depends_on": limits.PARENTS_MAX,
    "jobline.v1.NewJob.depends_on_indexes": limits.PARENTS_MAX,
    "jobline.v1.JobOptions.phases": limits.PHASES_MAX,
    "jobline.v1.JobOptions.limiters": limits.LIMITERS_PER_JOB_MAX,
    "jobline.v1.JobOptions.tags": limits.TAGS_MAX,
    "jobline.v1.Backoff.delays": limits.BACKOFF_DELAYS_MAX,
    "jobline.v1.PushFlowRequest.jobs": rpc_limits.FLOW_JOBS_MAX,
    "jobline.v1.FlowJob.children": rpc_limits.FLOW_JOB_CHILDREN_MAX,
    # pull and settle
    "jobline.v1.PullRequest.queues": limits.QUEUES_PER_CONSUMER_MAX,
    "jobline.v1.PullRequest.names": rpc_limits.NAMES_MAX,
    "jobline.v1.AckRequest.ids": SETTLED,
    "jobline.v1.AckRequest.deliveries": SETTLED,
    "jobline.v1.AckRequest.items": SETTLED,
    "jobline.v1.FailRequest.items": SETTLED,
    "jobline.v1.ReleaseRequest.items": SETTLED,
    "jobline.v1.ExtendRequest.items": SETTLED,
    # streams
    "jobline.v1.StreamOpen.queues": limits.QUEUES_PER_CONSUMER_MAX,
    "jobline.v1.StreamOpen.handlers": rpc_limits.HANDLERS_MAX,
    "jobline.v1.WorkerDescription.labels": rpc_limits.LABELS_MAX,
    "jobline.v1.StreamRequest.settles": rpc_limits.FRAME_SETTLES_MAX,
    "jobline.v1.StreamSettle.ack_ids": SETTLED,
    "jobline.v1.StreamSettle.ack_deliveries": SETTLED,
    "jobline.v1.StreamSettle.acks": SETTLED,
    "jobline.v1.StreamSettle.fails": SETTLED,
    "jobline.v1.StreamSettle.releases": SETTLED,
    "jobline.v1.StreamRequest.extends": SETTLED,
    "jobline.v1.StreamRequest.logs": SETTLED,
    "jobline.v1.StreamLog.lines": limits.LOG_LINES_MAX,
    "jobline.v1.StreamLog.levels": limits.LOG_LINES_MAX,
    "jobline.v1.StreamLog.at_ms": limits.LOG_LINES_MAX,
    "jobline.v1.LogLines.lines": limits.LOG_LINES_MAX,
    "jobline.v1.LogLines.levels": limits.LOG_LINES_MAX,
    "jobline.v1.LogLines.at_ms": limits.LOG_LINES_MAX,
    # wait and watch
    "jobline.v1.WaitRequest.ids": limits.WAIT_IDS_MAX,
    "jobline.v1.WatchRequest.queues": rpc_limits.FILTER_QUEUES_MAX,
    "jobline.v1.WatchRequest.kinds": KINDS,
    # KEDA
    "externalscaler.ScaledObjectRef.scalerMetadata": rpc_limits.SCALER_KEYS_MAX,
    # operators
    "jobline.v1.JobFilter.states": STATES,
    "jobline.v1.JobFilter.headers": rpc_limits.FILTER_HEADERS_MAX,
    "jobline.v1.JobFilter.tags": limits.TAGS_MAX,
    "jobline.v1.JobSelection.ids": limits.SELECTION_IDS_MAX,
    "jobline.v1.CreateBatchRequest.tags": limits.TAGS_MAX,
    "jobline.v1.ListBatchesRequest.states": BATCH_STATES,
    "jobline.v1.ListBatchesRequest.tags": limits.TAGS_MAX,
    "jobline.v1.WebhookSettings.events": KINDS,
    "jobline.v1.WebhookSettings.names": limits.WEBHOOK_FILTERS_MAX,
    "jobline.v1.WebhookSettings.tags": limits.TAGS_MAX,
    "jobline.v1.DeadFilter.reasons": REASONS,
    "jobline.v1.DeadFilter.tags": limits.TAGS_MAX,
    "jobline.v1.CleanQueueRequest.states": STATES,
    "jobline.v1.QueueSettings.non_retryable_error_types": rpc_limits.ERROR_TYPES_MAX,
    "google.protobuf.FieldMask.paths": rpc_limits.MASK_PATHS_MAX,
}


def check_all(message: Message) -> None:
    """Refuses a message if it, or a message in it, has a list that is too long or a mistyped field.
    For calls that are not hot.
    """
    check_own_fields(message)
    for descriptor, value in message.ListFields():
        if descriptor.is_repeated:
            limit = LIST_LIMITS.get(descriptor.full_name, NOT_SERVED)
            if limit == NOT_SERVED:
                raise fields.not_served(descriptor.name)
            fields.at_most(value, descriptor.name, limit)
        inner = descriptor.message_type
        if inner is None or inner.GetOptions().map_entry:
            continue
        if not descriptor.is_repeated:
            _check_inner(value, descriptor.name)
        else:
            for index, item in enumerate(value):
                _check_inner(item, f"{descriptor.name}[{index}]")


def _check_inner(message: Message, place: str) -> None:
    try:
        check_all(message)
    except Refused as refused:
        raise fields.within(place, refused) from None

"""All that `jobline` offers, loaded when the first of it is asked for."""

from __future__ import annotations

from jobline import _public_errors
from jobline._ageing import Ageing
from jobline._asynchronous.cleanup import AsyncCleanup
from jobline._asynchronous.client import AsyncClient
from jobline._asynchronous.entities import AsyncEntityRef
from jobline._backup_values import Backup, Backups, BackupState
from jobline._batch_values import Batch, BatchCallback, BatchCancelled, BatchState
from jobline._blocking.cleanup import Cleanup
from jobline._blocking.client import Client
from jobline._blocking.entities import EntityRef
from jobline._cancel_reason import CancelReason
from jobline._context import BatchItem, Context
from jobline._dead_letters import DeadLetters
from jobline._declare import job
from jobline._dependencies import DependencyPolicy
from jobline._entity import Entity, EntityMethod, IdleReason, entity_method
from jobline._enums import (
    AckLevel,
    EndReason,
    EventKind,
    FailAction,
    JobState,
    LeaseReason,
    ObstacleKind,
    PushOutcome,
    ReleaseReason,
    RevokeReason,
    SettleOutcome,
)
from jobline._filters import DeadFilter, JobFilter
from jobline._flow_values import Flow, FlowJob, FlowNode, FlowPushed
from jobline._function_job import FunctionJob
from jobline._group_values import Group, GroupSettings, OnDeadHead
from jobline._identity import Tls
from jobline._job_end import JobEnd
from jobline._job_log import JobLog, LogLevel, LogLine
from jobline._job_type import JobType
from jobline._job_values import (
    Attempt,
    AttemptOutcome,
    BulkResult,
    DeadCount,
    DeadStats,
    Explanation,
    Job,
    JobPage,
    Obstacle,
)
from jobline._leased import LeasedJob
from jobline._limiter_values import Limiter
from jobline._new_job import NewJob
from jobline._objective import Objective, WorkersNeeded
from jobline._operation_values import Operation, OperationState, Undone
from jobline._option_enums import BackoffKind, DeliveryMode
from jobline._option_parts import Backoff, Retention
from jobline._options import JobOptions
from jobline._outcomes import (
    Cancel,
    Dead,
    Outcome,
    RateLimited,
    Retry,
    Snooze,
    Stopped,
    WaitFor,
)
from jobline._partial import Partial
from jobline._phases import Phase, Phases, PhaseState
from jobline._public_errors import *  # noqa: F403  # it lists them
from jobline._push.push_middleware import Outgoing, PushMiddleware
from jobline._queue_history import QueueMinute
from jobline._queue_values import PriorityCount, Queue, QueueCounts, QueueSettings
from jobline._rate_limit import RateLimit
from jobline._schedule_values import (
    Schedule,
    ScheduledJob,
    ScheduleMissed,
    ScheduleOverlap,
    ScheduleRun,
    ScheduleSettings,
    ScheduleSkip,
    ScheduleSkipReason,
    Triggered,
)
from jobline._server_values import (
    ConnectedWorker,
    Event,
    HandlerSummary,
    HandlerVariant,
    ServerStats,
    ShardStats,
    WatchedEvent,
    WorkerDescription,
    WorkerHandler,
)
from jobline._status import error_from_rpc
from jobline._times import Moment, Seconds
from jobline._unique_mode import UniqueMode
from jobline._values import Failed, JobError, Pushed, PushedLot, QueueWeight
from jobline._version import __version__
from jobline._webhook_values import (
    Webhook,
    WebhookDelivery,
    WebhookOutcome,
    WebhookSettings,
    WebhookWithSecret,
)
from jobline._worker.middleware import Middleware
from jobline._worker.routes import ANY
from jobline._worker.worker import Worker
from jobline._worker.worker_run import WorkerStats

__all__ = [
    "ANY",
    "AckLevel",
    "Ageing",
    "AsyncCleanup",
    "AsyncClient",
    "AsyncEntityRef",
    "Attempt",
    "AttemptOutcome",
    "Backoff",
    "BackoffKind",
    "Backup",
    "BackupState",
    "Backups",
    "Batch",
    "BatchCallback",
    "BatchCancelled",
    "BatchItem",
    "BatchState",
    "BulkResult",
    "Cancel",
    "CancelReason",
    "Cleanup",
    "Client",
    "ConnectedWorker",
    "Context",
    "Dead",
    "DeadCount",
    "DeadFilter",
    "DeadLetters",
    "DeadStats",
    "DeliveryMode",
    "DependencyPolicy",
    "EndReason",
    "Entity",
    "EntityMethod",
    "EntityRef",
    "Event",
    "EventKind",
    "Explanation",
    "FailAction",
    "Failed",
    "Flow",
    "FlowJob",
    "FlowNode",
    "FlowPushed",
    "FunctionJob",
    "Group",
    "GroupSettings",
    "HandlerSummary",
    "HandlerVariant",
    "IdleReason",
    "Job",
    "JobEnd",
    "JobError",
    "JobFilter",
    "JobLog",
    "JobOptions",
    "JobPage",
    "JobState",
    "JobType",
    "LeaseReason",
    "LeasedJob",
    "Limiter",
    "LogLevel",
    "LogLine",
    "Middleware",
    "Moment",
    "NewJob",
    "Objective",
    "Obstacle",
    "ObstacleKind",
    "OnDeadHead",
    "Operation",
    "OperationState",
    "Outcome",
    "Outgoing",
    "Partial",
    "Phase",
    "PhaseState",
    "Phases",
    "PriorityCount",
    "PushMiddleware",
    "PushOutcome",
    "Pushed",
    "PushedLot",
    "Queue",
    "QueueCounts",
    "QueueMinute",
    "QueueSettings",
    "QueueWeight",
    "RateLimit",
    "RateLimited",
    "ReleaseReason",
    "Retention",
    "Retry",
    "RevokeReason",
    "Schedule",
    "ScheduleMissed",
    "ScheduleOverlap",
    "ScheduleRun",
    "ScheduleSettings",
    "ScheduleSkip",
    "ScheduleSkipReason",
    "ScheduledJob",
    "Seconds",
    "ServerStats",
    "SettleOutcome",
    "ShardStats",
    "Snooze",
    "Stopped",
    "Tls",
    "Triggered",
    "Undone",
    "UniqueMode",
    "WaitFor",
    "WatchedEvent",
    "Webhook",
    "WebhookDelivery",
    "WebhookOutcome",
    "WebhookSettings",
    "WebhookWithSecret",
    "Worker",
    "WorkerDescription",
    "WorkerHandler",
    "WorkerStats",
    "WorkersNeeded",
    "__version__",
    "entity_method",
    "error_from_rpc",
    "job",
]
__all__ += _public_errors.__all__

"""Jobline's Python client: push jobs, work on them, wait for results, operate a server.

Everything public is imported from here; the modules behind it may move. `jobline.v1` has the
generated messages and stubs of the protocol.

    from jobline import Client, Worker, job

    @job(queue="mail", max_attempts=5)
    def welcome(to: str) -> None: ...

    with Client("localhost:7070") as client:
        welcome.push(client, "a@b.c")

    Worker("localhost:7070", [welcome]).run()

The package needs grpcio and protobuf and nothing else. It is laid out as: values that people write
and read (`_options`, `_filters`, `_queue_values`, `_job_values`, `_server_values`), pure parts
without threads, loops or sockets (`_session`, `_settles`, `_batching`, `_pushing`, `_outgoing`,
`_requests`, `_operating`, `_handlers`), the two clients that send what those make (`_blocking`,
`_asynchronous`), and `_worker`.
"""

from jobline._asynchronous.client import AsyncClient
from jobline._blocking.client import Client
from jobline._context import BatchItem, CancelReason, Context
from jobline._declare import job
from jobline._enums import (
    AckLevel,
    AttemptOutcome,
    BackoffKind,
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
from jobline._job_type import JobType
from jobline._job_values import (
    Attempt,
    BulkResult,
    DeadCount,
    DeadStats,
    Explanation,
    Job,
    JobPage,
    Obstacle,
)
from jobline._leased import LeasedJob
from jobline._options import Backoff, JobOptions, NewJob, Retention
from jobline._outcomes import Cancel, Dead, Outcome, Retry, Snooze, Stopped
from jobline._outgoing import Outgoing, PushMiddleware
from jobline._queue_values import PriorityCount, Queue, QueueCounts, QueueSettings
from jobline._server_values import (
    ConnectedWorker,
    Event,
    ServerStats,
    ShardStats,
    WatchedEvent,
    WorkerDescription,
    WorkerHandler,
)
from jobline._status import error_from_rpc
from jobline._times import Moment, Seconds
from jobline._values import Failed, JobEnd, JobError, Pushed, PushedLot, QueueWeight
from jobline._version import __version__
from jobline._worker.house import WorkerStats
from jobline._worker.middleware import Middleware
from jobline._worker.routes import ANY
from jobline._worker.worker import Worker
from jobline.errors import (
    AlreadyExists,
    BufferFull,
    ClientClosed,
    CodecError,
    DataLoss,
    DeadlineExceeded,
    DiskFull,
    FailedPrecondition,
    IdempotencyMismatch,
    Internal,
    InvalidArgument,
    JobCancelled,
    JobDead,
    JobExpired,
    JoblineError,
    JobNotDone,
    JobNotFound,
    KeysFull,
    NotConnected,
    NotFound,
    NotServed,
    OffsetGone,
    OutcomeUnknown,
    OutOfRange,
    PermissionDenied,
    ProtocolMistake,
    QueueActive,
    QueueFull,
    QueueNotCreated,
    QueueNotFound,
    ResourceExhausted,
    ServerFull,
    TooLarge,
    TooManyCalls,
    Unauthenticated,
    Unavailable,
    WaitTimeout,
    WrongState,
)

__all__ = [
    "ANY",
    "AckLevel",
    "AlreadyExists",
    "AsyncClient",
    "Attempt",
    "AttemptOutcome",
    "Backoff",
    "BackoffKind",
    "BatchItem",
    "BufferFull",
    "BulkResult",
    "Cancel",
    "CancelReason",
    "Client",
    "ClientClosed",
    "CodecError",
    "ConnectedWorker",
    "Context",
    "DataLoss",
    "Dead",
    "DeadCount",
    "DeadFilter",
    "DeadStats",
    "DeadlineExceeded",
    "DiskFull",
    "EndReason",
    "Event",
    "EventKind",
    "Explanation",
    "FailAction",
    "Failed",
    "FailedPrecondition",
    "IdempotencyMismatch",
    "Internal",
    "InvalidArgument",
    "Job",
    "JobCancelled",
    "JobDead",
    "JobEnd",
    "JobError",
    "JobExpired",
    "JobFilter",
    "JobNotDone",
    "JobNotFound",
    "JobOptions",
    "JobPage",
    "JobState",
    "JobType",
    "JoblineError",
    "KeysFull",
    "LeaseReason",
    "LeasedJob",
    "Middleware",
    "Moment",
    "NewJob",
    "NotConnected",
    "NotFound",
    "NotServed",
    "Obstacle",
    "ObstacleKind",
    "OffsetGone",
    "OutOfRange",
    "Outcome",
    "OutcomeUnknown",
    "Outgoing",
    "PermissionDenied",
    "PriorityCount",
    "ProtocolMistake",
    "PushMiddleware",
    "PushOutcome",
    "Pushed",
    "PushedLot",
    "Queue",
    "QueueActive",
    "QueueCounts",
    "QueueFull",
    "QueueNotCreated",
    "QueueNotFound",
    "QueueSettings",
    "QueueWeight",
    "ReleaseReason",
    "ResourceExhausted",
    "Retention",
    "Retry",
    "RevokeReason",
    "Seconds",
    "ServerFull",
    "ServerStats",
    "SettleOutcome",
    "ShardStats",
    "Snooze",
    "Stopped",
    "TooLarge",
    "TooManyCalls",
    "Unauthenticated",
    "Unavailable",
    "WaitTimeout",
    "WatchedEvent",
    "Worker",
    "WorkerDescription",
    "WorkerHandler",
    "WorkerStats",
    "WrongState",
    "__version__",
    "error_from_rpc",
    "job",
]

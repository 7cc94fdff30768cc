"""Jobline's Python client: push jobs, work on them, wait for results, operate a server.

Everything public is imported from here; the modules behind it may move. `jobline.v1` has the
generated messages and stubs of the protocol.

    from jobline import Client, Worker, job

    @job(queue="mail", max_attempts=5)
    def welcome(to: str) -> None: ...

    with Client("localhost:7070") as client:
        welcome.push(client, "a@b.c")

    Worker("localhost:7070", [welcome]).run()

The package needs grpcio and protobuf and nothing else. It is laid out as: pure parts without
threads, loops or sockets (`session`, `settles`, `batching`, `pushing`, `outgoing`, `requests`,
`operating`),
the two clients that send what those make (`blocking`, `asynchronous`), and `worker`.
"""

from jobline.asynchronous.client import AsyncClient
from jobline.blocking.client import Client
from jobline.context import CancelReason, Context
from jobline.declare import job
from jobline.enums import (
    AckLevel,
    BackoffKind,
    EndReason,
    EventKind,
    FailAction,
    JobState,
    LeaseReason,
    PushOutcome,
    ReleaseReason,
    RevokeReason,
    SettleOutcome,
)
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
from jobline.job_type import JobType
from jobline.leased import LeasedJob
from jobline.options import Backoff, JobOptions, NewJob, Retention
from jobline.outcomes import Cancel, Dead, Outcome, Retry, Snooze, Stopped
from jobline.outgoing import Outgoing, PushMiddleware
from jobline.status import error_from_rpc
from jobline.times import Seconds
from jobline.v1.dead_letter_service_pb2 import DeadFilter
from jobline.v1.job_admin_service_pb2 import JobFilter
from jobline.v1.queue_pb2 import QueueSettings
from jobline.values import Failed, JobEnd, JobError, Pushed, PushedLot, QueueWeight, WatchedEvent
from jobline.version import __version__
from jobline.worker.house import WorkerStats
from jobline.worker.middleware import Middleware
from jobline.worker.routes import ANY
from jobline.worker.running import BatchItem
from jobline.worker.worker import Worker

__all__ = [
    "ANY",
    "AckLevel",
    "AlreadyExists",
    "AsyncClient",
    "Backoff",
    "BackoffKind",
    "BatchItem",
    "BufferFull",
    "Cancel",
    "CancelReason",
    "Client",
    "ClientClosed",
    "CodecError",
    "Context",
    "DataLoss",
    "Dead",
    "DeadFilter",
    "DeadlineExceeded",
    "DiskFull",
    "EndReason",
    "EventKind",
    "FailAction",
    "Failed",
    "FailedPrecondition",
    "IdempotencyMismatch",
    "Internal",
    "InvalidArgument",
    "JobCancelled",
    "JobDead",
    "JobEnd",
    "JobError",
    "JobExpired",
    "JobFilter",
    "JobNotDone",
    "JobNotFound",
    "JobOptions",
    "JobState",
    "JobType",
    "JoblineError",
    "KeysFull",
    "LeaseReason",
    "LeasedJob",
    "Middleware",
    "NewJob",
    "NotConnected",
    "NotFound",
    "NotServed",
    "OffsetGone",
    "OutOfRange",
    "Outcome",
    "OutcomeUnknown",
    "Outgoing",
    "PermissionDenied",
    "ProtocolMistake",
    "PushMiddleware",
    "PushOutcome",
    "Pushed",
    "PushedLot",
    "QueueActive",
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
    "SettleOutcome",
    "Snooze",
    "Stopped",
    "TooLarge",
    "TooManyCalls",
    "Unauthenticated",
    "Unavailable",
    "WaitTimeout",
    "WatchedEvent",
    "Worker",
    "WorkerStats",
    "WrongState",
    "__version__",
    "error_from_rpc",
    "job",
]

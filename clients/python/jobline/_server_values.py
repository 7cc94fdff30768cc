"""The server, its workers, and its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from jobline._enums import EndReason, EventKind, JobState
from jobline._values import QueueWeight


@dataclass(frozen=True, slots=True)
class ShardStats:
    """One shard: the last committed offset of its journal, the one that its last checkpoint holds,
    its jobs that have not ended, and its queues. `problem`: why the server does not serve it any
    more, "" while it does.
    """

    shard: int
    epoch: int
    offset: int
    checkpoint_offset: int
    live_jobs: int
    queues: int
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStats:
    """Counts and health of the server.

    - `scheduled`, `blocked`, `ready`, `active`: jobs by state; `dead`, `completed`: those that are
      kept.
    - `pushed_total`, `completed_total`, `failed_total`, `commits`: since the server started.
    - `commit_time`: mean time of the last commits, fsync included. `loop_lag`: the longest its loop
      stood still in the last minute. None where nothing was measured.
    - `keys`: idempotency keys that are kept. `waiting_bytes`: payloads and logs of live
      jobs.
    - `disk_full`: pushes are refused. `transport`: "grpcio" or "native".
    """

    version: str
    started_at: datetime | None
    queues: int
    scheduled: int
    ready: int
    active: int
    dead: int
    completed: int
    pushed_total: int
    completed_total: int
    failed_total: int
    workers: int
    commits: int
    commit_time: timedelta | None
    loop_lag: timedelta | None
    keys: int
    disk_full: bool
    shards: tuple[ShardStats, ...]
    transport: str
    waiting_bytes: int
    blocked: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDescription:
    """What a worker reports of itself. `id`: its own name; `version`: of the user's program;
    `language`: of the client, such as "python/0.1.0".
    """

    id: str
    host: str
    pid: int
    version: str
    labels: Mapping[str, str]
    language: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerHandler:
    """A kind of work that a worker takes; schemas are JSON, or "". `any_name`: every other kind of
    work of the queue.
    """

    queue: str
    name: str
    payload_schema: str
    result_schema: str
    any_name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerVariant:
    """What some workers announce of a handler: the version of their program, and the JSON Schemas
    of payload and result, or "". `workers`: how many of them there are.
    """

    version: str
    payload_schema: str
    result_schema: str
    workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSummary:
    """A handler of connected workers.

    - `queue`, `name`; `any_name`: it takes what no other handler of the queue takes.
    - `workers`: how many workers have it.
    - `variants`: what they announce of it, that of the most workers first; at most 20.
    - `differs`: "version", "payload_schema" and "result_schema", where workers differ in it.
    """

    queue: str
    name: str
    any_name: bool
    workers: int
    variants: tuple[HandlerVariant, ...]
    differs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedWorker:
    """A connected worker, or one whose stream broke and whose leases are still held (`lost`).

    - `session`: its id at the server. `queues`: what it takes from, with weights.
    - `handlers`: the names it handles; empty: any.
    - `window`: how many jobs it wants to have at hand; `in_flight`: how many it has.
    - `draining`: it takes no more jobs.
    """

    session: str
    description: WorkerDescription
    queues: tuple[QueueWeight, ...]
    handlers: tuple[WorkerHandler, ...]
    window: int
    in_flight: int
    connected_at: datetime | None
    last_heard_at: datetime | None
    draining: bool
    lost: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened to one job or queue, or to the server.

    - `shard`, `offset`: its place in the journal; `at`: when it was decided.
    - `kind`, `queue`; `job_id`, `name`: the job's, 0 and "" for events of a queue.
    - `state`, `state_before`: the job's after and before it. `run_at`: when it becomes ready, where
      it waits.
    - `delivery`, `attempt`, `worker`: of the lease that it is about.
    - `error_type`, `error_message`, `reason`: where something went wrong.
    - `progress` (0 … 100), `message`: what the worker, or an operator, reported.
    - `partial`, `partial_number`: of the kind PARTIAL, a piece of the job's result, as `Partial`
      has it.
    - `batch_id`: the batch, for events of batches, whose `queue` is "" and `name` the batch's.
    - `group`: of events of a group, and of some events of one job. `principal`: who asked for it,
      where an operator paused, limited or drained something.
    """

    shard: int
    offset: int
    at: datetime | None
    kind: EventKind
    queue: str
    job_id: int
    name: str
    state: JobState
    state_before: JobState
    delivery: int
    attempt: int
    worker: str
    error_type: str
    error_message: str
    reason: EndReason
    run_at: datetime | None
    progress: float
    message: str
    partial: bytes
    partial_number: int
    batch_id: int
    group: str
    principal: str


class WatchedEvent(NamedTuple):
    """An event, and the token that resumes a watch after it."""

    event: Event
    resume_token: str

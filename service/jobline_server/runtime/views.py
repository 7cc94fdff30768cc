"""Views: what operators' calls return and select by, as plain values. Commands and outcomes of the
hot path are in `engine.commands`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from jobline_server.dispatch.frames import Handler, Worker
from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.commands import Refused
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.job_log import JobLog
from jobline_server.engine.limiters import LimiterSettings
from jobline_server.engine.operations import CancelledRuns
from jobline_server.engine.phases import FinishedPhase
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import (
    Attempt,
    EndReason,
    JobError,
    JobOptions,
    JobState,
    QueueSettings,
)


@dataclass(slots=True)
class JobView:
    """A job, live or ended. Moments are wall time in milliseconds, 0 where they do not apply."""

    id: int
    queue: str
    state: JobState
    options: JobOptions
    payload: bytes
    pushed_ms: int
    job_key: str = ""
    run_at_ms: int = 0
    ttl_ends_ms: int = 0
    ended_ms: int = 0
    attempts: int = 0
    stalls: int = 0
    releases: int = 0
    delivery: int = 0
    worker: str = ""
    lease_until_ms: int = 0
    times_out_ms: int = 0
    progress: float = 0.0
    progress_message: str = ""
    worker_checkpoint: bytes = b""
    result: bytes = b""
    error: JobError | None = None
    reason: EndReason = EndReason.NONE
    history: tuple[Attempt, ...] = ()
    cancel_requested: bool = False
    stale_from: JobState | None = None
    log: JobLog | None = None
    retry_ms: int = 0
    expires_ms: int = 0
    delete_ms: int = 0
    auto_retries: int = 0
    ties: Ties = NO_TIES
    phases: tuple[FinishedPhase, ...] = ()
    """Those that are finished; the names of all are among the options."""
    depends_on_left: int = 0
    blocked_until_ms: int = 0
    payload_bytes: int = 0
    """Size of the payload, also where a list leaves the payload itself out."""


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Selects jobs; all conditions that are set must hold. `ended_*` bound deaths, too."""

    queue: str = ""
    name: str | None = None
    states: frozenset[JobState] = frozenset()
    reasons: frozenset[EndReason] = frozenset()
    pushed_after_ms: int | None = None
    pushed_before_ms: int | None = None
    ended_after_ms: int | None = None
    ended_before_ms: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    error_type: str = ""
    error_contains: str = ""
    group: str = ""
    tags: frozenset[str] = frozenset()
    """All of them must be tags of the job."""
    batches: frozenset[int] = frozenset()
    """It must be a member of one of them."""

    def is_empty(self) -> bool:
        """Returns whether it selects every job."""
        return self == JobFilter()


@dataclass(frozen=True, slots=True)
class Selection:
    """Jobs by id, or by filter where `filter` is set."""

    ids: tuple[int, ...] = ()
    filter: JobFilter | None = None


@dataclass(frozen=True, slots=True)
class Audit:
    """Who asks for an operation, and why; kept with it. `verb` is the method that was called,
    `request` what it was asked, as JSON, and `operation_id` the name that the operation gets.
    Without a verb nothing is recorded: the server itself asks.
    """

    principal: str = ""
    reason: str = ""
    verb: str = ""
    request: str = ""
    operation_id: str = ""


NO_AUDIT = Audit()


@dataclass(slots=True)
class BulkResult:
    """What a call on many jobs did. `requested` are active jobs whose workers are told;
    `not_found_ids` are those of the skipped ids that do not exist. `full` is why ended jobs were
    left that would have to wait, if any were, and `full_ids` the first of them. `cancelled`
    collects the jobs of a cancel.
    """

    count: int = 0
    requested: int = 0
    skipped_ids: list[int] = field(default_factory=list)
    not_found_ids: list[int] = field(default_factory=list)
    full_ids: list[int] = field(default_factory=list)
    full: Refused | None = None
    operation_id: str = ""
    cancelled: CancelledRuns | None = None


class WorkersNeeded(NamedTuple):
    """How many workers a queue needs, and what that follows from; `run_seconds` 0: not known."""

    workers: int
    slots_per_worker: float
    backlog: int
    arrivals: float
    run_seconds: float


@dataclass(slots=True)
class QueueView:
    """A queue with its counts: `counts` by state, `priorities` READY jobs, highest first."""

    name: str
    shard: int
    settings: QueueSettings
    counts: dict[JobState, int]
    unhandled: int = 0
    priorities: list[tuple[int, int]] = field(default_factory=list)
    paused: bool = False
    paused_by: str = ""
    pause_reason: str = ""
    oldest_ready_ms: int = 0
    created_ms: int = 0
    pushed_total: int = 0
    completed_total: int = 0
    failed_total: int = 0
    tokens: int | None = None
    limited: TimeLimit | None = None
    worker_time_ms: int | None = None
    workers_needed: WorkersNeeded | None = None


@dataclass(frozen=True, slots=True)
class LimiterView:
    """A limiter, with its active jobs and the tokens in store."""

    settings: LimiterSettings
    active: int
    tokens: int | None
    limited: TimeLimit | None


@dataclass(slots=True)
class GroupView:
    """A group with its settings and jobs; `weight` is 0 unless its queue is fair."""

    queue: str
    name: str
    settings: GroupSettings
    ready: int
    active: int
    scheduled: int
    paused: bool
    paused_by: str
    pause_reason: str
    dead_heads: tuple[int, ...]
    weight: int = 0
    worker_time_ms: int = 0
    limited: TimeLimit | None = None
    tokens: int | None = None


@dataclass(slots=True)
class WorkerView:
    """A connected worker, or one that is lost and whose leases are still held."""

    session: str
    worker: Worker
    queues: tuple[tuple[str, int], ...]
    handlers: tuple[Handler, ...]
    window: int
    in_flight: int
    connected_ms: int
    last_heard_ms: int
    draining: bool
    lost: bool


class HandlerVariant(NamedTuple):
    """What some workers announce of a handler: their version, and schemas as JSON, or ""."""

    version: str
    payload_schema: str
    result_schema: str


@dataclass(slots=True)
class HandlerView:
    """A handler of connected workers. `variants` are (variant, workers), that of the most workers
    first; `differs` names the fields of variants in which workers differ.
    """

    queue: str
    name: str
    any_name: bool
    workers: int
    variants: list[tuple[HandlerVariant, int]]
    differs: list[str]


@dataclass(slots=True)
class DeadCount:
    """Counts dead jobs that have something in common."""

    queue: str
    name: str
    reason: EndReason
    error_type: str
    count: int
    oldest_ms: int
    newest_ms: int


@dataclass(slots=True)
class ShardView:
    """Health of one shard. `problem`: why it is not served any more; "" while it is."""

    shard: int
    epoch: int
    offset: int
    checkpoint_offset: int
    live_jobs: int
    queues: int
    problem: str = ""


@dataclass(slots=True)
class ServerView:
    """Counts and health of the server."""

    started_ms: int
    queues: int
    scheduled: int
    blocked: int
    ready: int
    active: int
    dead: int
    completed: int
    pushed_total: int
    completed_total: int
    failed_total: int
    workers: int
    commits: int
    commit_ms: float
    loop_lag_ms: float
    keys: int
    throttled_keys: int
    disk_full: bool
    waiting_bytes: int
    shards: list[ShardView]

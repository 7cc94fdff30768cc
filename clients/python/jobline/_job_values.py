"""Jobs as operators see them, and what became of calls on many of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any, Self

from jobline import _codec as codec
from jobline import _typed_json as typed_json
from jobline._enums import EndReason, JobState, ObstacleKind
from jobline._options import JobOptions
from jobline._phases import Phase
from jobline._reading import read
from jobline._values import JobError
from jobline.v1 import job_pb2


class AttemptOutcome(IntEnum):
    """The outcome of one attempt."""

    UNSPECIFIED = 0
    FAILED = 1
    STALLED = 2
    RELEASED = 3
    COMPLETED = 4
    CANCELLED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One delivery of a job and its outcome.

    - `attempt`: its number, from 1; a stalled or released one keeps its number.
    - `delivery`: the lease's counter. `worker`: the one that had it, and `worker_version`, or "".
    - `leased_at`, `ended_at`: from when to when. `outcome`: how it ended.
    - `error`: why it failed; None where it did not.
    """

    attempt: int
    delivery: int
    worker: str
    leased_at: datetime | None
    ended_at: datetime | None
    outcome: AttemptOutcome
    error: JobError | None
    worker_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as operators see it: its state and its history.

    - `id`, `queue`, `state`; `options`: what it was pushed with; `job_key`, or "".
    - `payload`: b"" in lists that leave payloads out; `payload_bytes` is always its size.
    - `pushed_at`; `run_at`: when it becomes ready, while it is SCHEDULED; `ended_at`;
      `ttl_ends_at`: when its TTL ends, if it has one.
    - `attempts`: how many it has used, the one that runs or has completed included: 1 for a job
      that completed at once. `failed`: how many of them failed.
    - `stalls`: leases lost, `releases`: how often it was released; neither uses an attempt.
    - `delivery`: the newest lease's counter, 0 before the first; `worker`, `lease_until`: who has
      it until when, while it is ACTIVE; `times_out_at`: when this attempt has taken too long.
    - `progress` (0 … 100) and `progress_message`: what its worker last reported.
    - `checkpoint`: what an attempt left; `result`: what it returned.
    - `phases`: its steps, in order.
    - `log_lines`: how many lines its log holds; `client.jobs.log` returns them.
    - `error`: the last one; `reason`: why it ended other than well; `history`: the last 20 attempts
      that did not simply complete, oldest first.
    - `cancel_requested`: it is ACTIVE, and its worker was asked to stop.
    - `stale_from`: the state in which it ended, once it is STALE.
    - `retry_at`: when it is put back by itself, and `expires_at`: when it becomes STALE, while it
      is DEAD; None where it does not. `auto_retries`: how often it was put back by itself.
    - `unique_key`, or ""; `unique_until`: how long it holds it, None for as long as it is
      unfinished.
    - `depends_on_left`: how many of the jobs that it depends on have not completed, and
      `blocked_until`: how long it waits for them at most, while it is BLOCKED.
    """

    id: int
    queue: str
    state: JobState
    options: JobOptions
    payload: bytes
    payload_bytes: int
    job_key: str
    pushed_at: datetime | None
    run_at: datetime | None
    ttl_ends_at: datetime | None
    ended_at: datetime | None
    attempts: int
    failed: int
    stalls: int
    releases: int
    delivery: int
    worker: str
    lease_until: datetime | None
    times_out_at: datetime | None
    progress: float
    progress_message: str
    checkpoint: bytes
    result: bytes
    error: JobError | None
    reason: EndReason
    history: tuple[Attempt, ...]
    cancel_requested: bool
    stale_from: JobState
    log_lines: int
    retry_at: datetime | None
    expires_at: datetime | None
    auto_retries: int
    phases: tuple[Phase, ...]
    unique_key: str
    unique_until: datetime | None
    depends_on_left: int
    blocked_until: datetime | None

    @classmethod
    def from_message(cls, message: job_pb2.Job) -> Self:
        """Returns the value of the protocol's message."""
        return read(
            cls,
            message,
            attempts=_attempts(message),
            failed=message.attempts,
            unique_key=message.options.unique_key,
        )

    @property
    def name(self) -> str:
        """The kind of work, or ""."""
        return self.options.name or ""

    @property
    def content_type(self) -> str:
        """What the payload is, or ""."""
        return self.options.content_type or ""

    def value(self, kind: Any = Any) -> Any:
        """Returns the payload as a type: by default JSON if the content type is JSON, else bytes.
        Raises CodecError.
        """
        return typed_json.decode_as(kind, self.payload, self.content_type)

    def result_value(self, kind: Any = Any) -> Any:
        """Returns the result as a type (default: JSON); None without one. Raises CodecError."""
        return typed_json.decode_as(kind, self.result, codec.JSON) if self.result else None


def _attempts(message: job_pb2.Job) -> int:
    """Returns how many attempts were used. The protocol counts those that failed; one that runs or
    has completed is one more, and one that was released or lost uses none.
    """
    ended = message.stale_from or message.state
    is_one_more = ended in {job_pb2.JOB_STATE_ACTIVE, job_pb2.JOB_STATE_COMPLETED}
    return message.attempts + is_one_more


@dataclass(frozen=True, slots=True)
class JobPage:
    """One page of a list of jobs. `next_page_token` asks for the next page; "" on the last one."""

    jobs: tuple[Job, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One thing that keeps a job from running: `message` is a sentence, `until` when it goes away
    and `count` how many there are, where that applies.
    """

    kind: ObstacleKind
    message: str
    until: datetime | None
    count: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a job is not running, the first obstacle first; without any it is about to be leased."""

    state: JobState
    obstacles: tuple[Obstacle, ...]


@dataclass(frozen=True, slots=True)
class BulkResult:
    """The outcome of a call on many jobs, or what it would be with `dry_run`.

    - `count`: how many it was done to. `requested`: active ones beside them, whose workers were
      asked to stop.
    - `skipped_ids`: those asked for by id that were left as they are; `not_found_ids`: those of
      them that do not exist.
    - `operation_id`: names the operation (`client.admin.operations`, `client.admin.undo`); "" for a
      dry run.
    """

    count: int
    requested: int = 0
    skipped_ids: tuple[int, ...] = ()
    not_found_ids: tuple[int, ...] = ()
    operation_id: str = ""

    @classmethod
    def from_message(cls, message: Any) -> Self:
        """Returns the value of any response to such a call; those of queues have fewer fields."""
        return cls(
            count=message.count,
            requested=getattr(message, "requested", 0),
            skipped_ids=tuple(getattr(message, "skipped_ids", ())),
            not_found_ids=tuple(getattr(message, "not_found_ids", ())),
            operation_id=message.operation_id,
        )


@dataclass(frozen=True, slots=True)
class DeadCount:
    """Number of dead jobs with the same queue, name, reason and error type, and when the first and
    the last of them died.
    """

    queue: str
    name: str
    reason: EndReason
    error_type: str
    count: int
    oldest_at: datetime | None
    newest_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeadStats:
    """Counts of dead jobs: all of them, and by queue, name, reason and error type, most first (at
    most 1,000 rows).
    """

    total: int
    counts: tuple[DeadCount, ...]

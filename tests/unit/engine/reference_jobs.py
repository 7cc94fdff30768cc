"""What the reference model is made of: jobs, queues, consumers and keys, as plain records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind
from jobline_server.engine.job_log import NewLine
from jobline_server.engine.rules import DeliveryMode, DependencyPolicy
from jobline_server.engine.values import (
    EndReason,
    JobOptions,
    JobState,
    LeaseReason,
    PushOutcome,
    QueueSettings,
)


@dataclass
class Consumer:
    """Somebody who has leases: a session that is heard, or a pull that is not."""

    worker: str
    session: bool
    last_seen_ms: int = 0
    disconnected_ms: int | None = None
    grace_ms: int = 0
    version: str = ""
    graces: dict[str, int] = field(default_factory=dict)


@dataclass
class ModelJob:
    """A job, live or ended."""

    id: int
    queue: str
    payload: bytes
    options: JobOptions
    volatile: bool
    job_key: str = ""
    beside_bytes: int = 0
    group: str = ""
    group_place: float = 0
    continues: bool = False
    state: JobState = JobState.SCHEDULED
    place: float = 0
    due: tuple[int, int] = (0, 0)
    expires_ms: int = 0
    times_out_ms: int = 0
    leased_ms: int = 0
    offset: int = 0
    attempts: int = 0
    stalls: int = 0
    releases: int = 0
    delivery: int = 0
    why: LeaseReason = LeaseReason.FIRST
    holder: Consumer | None = None
    lease_ms: int = 0
    deadline_ms: int = 0
    cancel_requested: bool = False
    checkpoint: bytes = b""
    log: list[tuple[int, str]] = field(default_factory=list)
    """The attempt that wrote it, and the text of each line."""
    auto_retries: int = 0
    retry_ms: int = 0
    phases: list[tuple[int, Any]] = field(default_factory=list)
    """The attempt that finished it, and the result of each finished phase."""
    result: bytes = b""
    reason: EndReason = EndReason.NONE
    unique_key: str = ""
    pushed_ms: int = 0
    waits_from_ms: int = 0
    parents_left: list[int] = field(default_factory=list)
    policies: dict[int, DependencyPolicy] = field(default_factory=dict)
    """About some of its parents alone."""
    parked: bool = False
    blocked_until_ms: int = 0
    ended_ms: int = 0
    delete_ms: int = 0
    wants: list[int] = field(default_factory=list)
    """All that it was to wait for."""
    for_readers: bool = False
    """It would be gone if nobody had waited for it."""

    def bytes(self) -> int:
        """Of its payload, and of what stands beside it as long as it is in its lot."""
        return len(self.payload) + self.beside_bytes

    def reported_bytes(self) -> int:
        """Of its log, its checkpoint and the results of its phases."""
        log = sum(len(text) + limits.LOG_LINE_EXTRA_BYTES for _, text in self.log)
        return log + len(self.checkpoint) + sum(len(result) for _, result in self.phases)

    def write(self, lines: Iterable[NewLine]) -> None:
        """Its log keeps the last lines."""
        self.log += [(self.attempts + 1, line.text) for line in lines]
        self.log = self.log[-limits.LOG_LINES_MAX :]

    def finish(self, phase: str, result: Any) -> None:
        """Only the next phase is finished; a new one forgives stalls."""
        names = self.options.rules.phases
        if phase and phase == next(iter(names[len(self.phases) :]), None):
            self.phases.append((self.attempts + 1, result))
            self.stalls = 0

    def lane(self) -> tuple[object, ...]:
        return self.queue, self.options.priority, self.options.name, self.options.rules.needs

    def ends_ms(self) -> int:
        """When its lease ends if nothing more is heard."""
        holder = self.holder
        assert holder is not None
        ends = self.deadline_ms
        if holder.session:
            ends = max(ends, holder.last_seen_ms + self.lease_ms)
        return (
            ends
            if holder.disconnected_ms is None
            else min(ends, holder.disconnected_ms + holder.graces.get(self.queue, holder.grace_ms))
        )


@dataclass(frozen=True)
class Key:
    """A job key: the first job that had it."""

    job_id: int
    payload: bytes
    expires_ms: int
    volatile: bool


@dataclass(frozen=True)
class Request:
    """A request id: what its first push was answered."""

    outcomes: list[tuple[PushOutcome | RefusalKind, int]]
    expires_ms: int
    volatile: bool


@dataclass
class ModelProducer:
    """What a producer has said, and what its calls were answered."""

    last_seen_ms: int = 0
    below: int = 0
    calls: dict[int, Request] = field(default_factory=dict)


def may_have(consumer: Consumer, job: ModelJob) -> bool:
    """Whether its version is new enough; the test's versions are numbers and dots."""
    minimum = job.options.rules.min_worker_version
    return not minimum or _numbers(consumer.version) >= _numbers(minimum)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part]


def is_once(job: ModelJob, settings: QueueSettings) -> bool:
    """Whether it runs at most once."""
    return (job.options.rules.delivery_mode or settings.delivery_mode) is DeliveryMode.ONCE


def first(*values: int | None) -> int:
    """The first that is not None."""
    for value in values:
        if value is not None:
            return value
    raise ValueError(values)


def backoff_ms(options: JobOptions, attempt: int) -> int:
    """The test's options have a list, or base and ceiling, doubled each time; and no jitter."""
    backoff = options.backoff
    if backoff.delays_ms:
        return (*backoff.delays_ms, *[backoff.delays_ms[-1]] * attempt)[attempt - 1]
    assert backoff.base_ms is not None
    assert backoff.max_delay_ms is not None
    assert backoff.jitter == 0.0
    doubled: int = backoff.base_ms << min(attempt - 1, 10)
    return min(doubled, backoff.max_delay_ms)


def is_kept(job: ModelJob, settings: QueueSettings) -> bool:
    """Whether anybody sees a job that has ended."""
    own, of_queue = job.options.retention, settings.retention
    remove = {
        JobState.COMPLETED: (own.remove_on_complete, of_queue.remove_on_complete),
        JobState.DEAD: (own.remove_on_fail, of_queue.remove_on_fail),
    }.get(job.state, ())
    said = [one for one in remove if one is not None]
    return not job.volatile and not (said and said[0])


def retry_ms(job: ModelJob, settings: QueueSettings, wall_ms: int) -> int:
    """When a job that ends now is put back by itself, each time after twice as long; 0: never."""
    rule = settings.dead_letters.auto_retry
    if job.state is not JobState.DEAD or rule is None or job.auto_retries >= rule.limit:
        return 0
    if is_once(job, settings) or job.reason in (
        EndReason.INTERRUPTED,
        EndReason.RETRY_UNTIL_PASSED,
        EndReason.DEPENDENCY_FAILED,
    ):
        return 0
    return wall_ms + (rule.first_delay_ms << job.auto_retries)

"""Queues: their settings, to read and to change, and their counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self, TypedDict

from jobline._ageing import Ageing
from jobline._arguments import duration_given, member_given, message_given, message_of
from jobline._dead_letters import DeadLetters
from jobline._dependencies import POLICIES, DependencyPolicy, DependencyPolicyName
from jobline._enums import AckLevel, AckLevelName, known
from jobline._group_values import GroupSettings
from jobline._objective import Objective, WorkersNeeded
from jobline._option_enums import DeliveryMode, DeliveryModeName
from jobline._option_parts import Backoff, Retention
from jobline._rate_limit import RateLimit
from jobline._reading import read
from jobline._times import Seconds, from_duration
from jobline._unique_mode import UniqueMode, UniqueModeName, known_mode
from jobline.v1 import queue_pb2


class SettingsHow(TypedDict, total=False):
    """The fields of `QueueSettings` as keywords; None takes a setting back to its default."""

    lease: Seconds | None
    max_attempts: int | None
    backoff: Backoff | None
    max_stalls: int | None
    retention: Retention | None
    min_ack_level: AckLevelName | None
    max_waiting: int | None
    non_retryable_error_types: Sequence[str]
    rate: RateLimit | None
    concurrency: int | None
    max_waiting_bytes: int | None
    delivery: DeliveryModeName | None
    dead_letters: DeadLetters | None
    check_payloads: bool
    disconnect_grace: Seconds | None
    ttl: Seconds | None
    expired_to_dead: bool | None
    timeout: Seconds | None
    ageing: Ageing | None
    group: GroupSettings | None
    objective: Objective | None
    unique_mode: UniqueModeName | None
    unique_ttl: Seconds | None
    unique_max_wait: Seconds | None
    on_dependency_failure: DependencyPolicyName | None
    block_timeout: Seconds | None
    fair: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """Defaults of a queue for jobs whose push left them out. None: the server's default.

    - `lease`: how long a worker may stay silent, 1 s … 12 h (default 30 s).
    - `max_attempts`: failures before a job is dead, 1 … 1,000, 0 for no limit (default 3).
    - `backoff`: the pause before the next attempt (default exponential from 1 s to 1 h, ± 10 %).
    - `max_stalls`: lost leases that are forgiven, 0 … 1,000 (default 3).
    - `retention`: how long ended jobs are kept.
    - `min_ack_level`: "memory", "buffered" or "fsynced": the lowest level that a push gets.
    - `max_waiting`: how many jobs may wait, 1 … 1,000,000,000 (default: no limit of its own).
    - `non_retryable_error_types`: errors of these types go straight to the dead letters; ≤ 100.
    - `rate`: how many jobs may start in a time (default: no limit).
    - `concurrency`: how many jobs may be active at once, 1 … 1,000,000 (default: no limit).
    - `max_waiting_bytes`: how many payload bytes it may hold (default: no limit of its own).
    - `delivery`: "at_least_once" (default), or "once": never again after a hand-out.
    - `check_payloads`: pushes are refused whose payload fits no schema that connected workers
      announce for the job's name (`PayloadMisfit`).
    - `dead_letters`: how long dead jobs are kept, and whether they are put back by themselves.
    - `disconnect_grace`: how long jobs wait for a worker whose stream broke, 0 s … 1 h (default: as
      the server is set, 15 s).
    - `ttl`: how long new jobs may wait, 0 s … 400 days (default: for ever).
    - `expired_to_dead`: jobs whose TTL ends are DEAD, not EXPIRED (default false).
    - `timeout`: how long one attempt may take in all, 1 s … 400 days (default: as it takes).
    - `ageing`: how jobs rise in priority while they wait (default: they do not).
    - `group`: what holds for each of its groups that has no settings of its own.
    - `objective`: how soon jobs shall start, from which `Queue.workers_needed` follows.
    - `unique_mode`, `unique_ttl`, `unique_max_wait`: see `JobOptions`.
    - `on_dependency_failure`: "fail" (default), "cancel", "ignore", "wait" or "continue": what
      happens to a job if one that it depends on does not complete.
    - `block_timeout`: how long a job may wait for others, 0 s … 400 days, 0 for no limit (default).
    - `fair`: groups are tenants, which run in parallel and are served by weight and by how long
      their jobs held workers (default false).

    Spans are given as seconds, timedeltas or text such as "90s", and read back as timedeltas.
    """

    lease: Seconds | None = None
    max_attempts: int | None = None
    backoff: Backoff | None = None
    max_stalls: int | None = None
    retention: Retention | None = None
    min_ack_level: AckLevelName | None = None
    max_waiting: int | None = None
    non_retryable_error_types: Sequence[str] = ()
    rate: RateLimit | None = None
    concurrency: int | None = None
    max_waiting_bytes: int | None = None
    delivery: DeliveryModeName | None = None
    dead_letters: DeadLetters | None = None
    check_payloads: bool = False
    disconnect_grace: Seconds | None = None
    ttl: Seconds | None = None
    expired_to_dead: bool | None = None
    timeout: Seconds | None = None
    ageing: Ageing | None = None
    group: GroupSettings | None = None
    objective: Objective | None = None
    unique_mode: UniqueModeName | None = None
    unique_ttl: Seconds | None = None
    unique_max_wait: Seconds | None = None
    on_dependency_failure: DependencyPolicyName | None = None
    block_timeout: Seconds | None = None
    fair: bool = False

    @classmethod
    def from_message(cls, message: queue_pb2.QueueSettings) -> Self:
        """Returns the value of the protocol's message."""
        has, level = message.HasField, known(AckLevel, message.min_ack_level)
        return cls(
            lease=from_duration(message.lease) if has("lease") else None,
            max_attempts=message.max_attempts if has("max_attempts") else None,
            backoff=Backoff.from_message(message.backoff) if has("backoff") else None,
            max_stalls=message.max_stalls if has("max_stalls") else None,
            retention=Retention.from_message(message.retention) if has("retention") else None,
            min_ack_level=level or None,
            max_waiting=message.max_waiting if has("max_waiting") else None,
            non_retryable_error_types=tuple(message.non_retryable_error_types),
            rate=RateLimit.from_message(message.rate) if has("rate") else None,
            concurrency=message.concurrency if has("concurrency") else None,
            max_waiting_bytes=message.max_waiting_bytes if has("max_waiting_bytes") else None,
            delivery=known(DeliveryMode, message.delivery) if message.delivery else None,
            dead_letters=(
                DeadLetters.from_message(message.dead_letters) if has("dead_letters") else None
            ),
            check_payloads=message.check_payloads,
            disconnect_grace=(
                from_duration(message.disconnect_grace) if has("disconnect_grace") else None
            ),
            ttl=from_duration(message.ttl) if has("ttl") else None,
            expired_to_dead=message.expired_to_dead if has("expired_to_dead") else None,
            timeout=from_duration(message.timeout) if has("timeout") else None,
            ageing=Ageing.from_message(message.ageing) if has("ageing") else None,
            group=GroupSettings.from_message(message.group) if has("group") else None,
            objective=Objective.from_message(message.objective) if has("objective") else None,
            unique_mode=known_mode(message.unique_mode),
            unique_ttl=from_duration(message.unique_ttl) if has("unique_ttl") else None,
            unique_max_wait=(
                from_duration(message.unique_max_wait) if has("unique_max_wait") else None
            ),
            on_dependency_failure=POLICIES.get(message.on_dependency_failure),
            block_timeout=from_duration(message.block_timeout) if has("block_timeout") else None,
            fair=message.fair,
        )

    def to_message(self) -> queue_pb2.QueueSettings:
        """Returns the message of the protocol. Raises InvalidArgument for text without meaning."""
        return message_of(
            queue_pb2.QueueSettings,
            lease=duration_given("lease", self.lease),
            max_attempts=self.max_attempts,
            backoff=message_given("backoff", self.backoff, Backoff),
            max_stalls=self.max_stalls,
            retention=message_given("retention", self.retention, Retention),
            min_ack_level=member_given("min_ack_level", AckLevel, self.min_ack_level),
            max_waiting=self.max_waiting,
            non_retryable_error_types=self.non_retryable_error_types,
            rate=message_given("rate", self.rate, RateLimit),
            concurrency=self.concurrency,
            max_waiting_bytes=self.max_waiting_bytes,
            delivery=member_given("delivery", DeliveryMode, self.delivery),
            dead_letters=message_given("dead_letters", self.dead_letters, DeadLetters),
            check_payloads=self.check_payloads,
            disconnect_grace=duration_given("disconnect_grace", self.disconnect_grace),
            ttl=duration_given("ttl", self.ttl),
            expired_to_dead=self.expired_to_dead,
            timeout=duration_given("timeout", self.timeout),
            ageing=message_given("ageing", self.ageing, Ageing),
            group=message_given("group", self.group, GroupSettings),
            objective=message_given("objective", self.objective, Objective),
            unique_mode=member_given("unique_mode", UniqueMode, self.unique_mode),
            unique_ttl=duration_given("unique_ttl", self.unique_ttl),
            unique_max_wait=duration_given("unique_max_wait", self.unique_max_wait),
            on_dependency_failure=member_given(
                "on_dependency_failure", DependencyPolicy, self.on_dependency_failure
            ),
            block_timeout=duration_given("block_timeout", self.block_timeout),
            fair=self.fair,
        )


@dataclass(frozen=True, slots=True)
class PriorityCount:
    """READY jobs of one priority."""

    priority: int
    ready: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCounts:
    """Jobs of a queue by state. Ended ones count while they are kept; `unhandled`: READY jobs with
    a name that no connected worker handles; `priorities`: READY jobs by priority, highest first.
    """

    scheduled: int
    blocked: int
    ready: int
    active: int
    completed: int
    dead: int
    cancelled: int
    expired: int
    stale: int
    unhandled: int
    priorities: tuple[PriorityCount, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue with its settings and counts.

    - `paused`: nothing is leased; `paused_by` and `pause_reason`: by whom and why.
    - `oldest_ready_at`: since when the oldest READY job has been READY; None if there is none.
    - `pushed_total`, `completed_total`, `failed_total`: jobs pushed, jobs completed and attempts
      failed since the server started.
    - `tokens`: those of its rate that are in store; None without a rate.
    - `limited_until`: until when it hands out nothing, as `limit` or a worker said; `limited_by`
      and `limited_reason`: by whom and why.
    - `worker_time`: how long workers have held its jobs in all, if it is fair.
    - `workers_needed`: how many workers keep its objective; None without one.
    """

    name: str
    shard: int
    settings: QueueSettings
    counts: QueueCounts
    paused: bool
    paused_by: str
    pause_reason: str
    oldest_ready_at: datetime | None
    created_at: datetime | None
    pushed_total: int
    completed_total: int
    failed_total: int
    tokens: int | None
    limited_until: datetime | None
    limited_by: str
    limited_reason: str
    worker_time: timedelta | None = None
    workers_needed: WorkersNeeded | None = None

    @classmethod
    def from_message(cls, message: queue_pb2.Queue) -> Self:
        """Returns the value of the protocol's message."""
        return read(cls, message)

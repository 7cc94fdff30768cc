"""Options of jobs as frozen values, and the messages they become.

`None` always means: unset here, so the push's shared options, the queue's settings or the
server's default decide, in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Self, TypedDict

from jobline._arguments import headers_given, value_given
from jobline._dependencies import POLICIES, DependencyPolicyName
from jobline._enums import known
from jobline._group_values import OnDeadHead, OnDeadHeadName
from jobline._keywords import refuse_unknown
from jobline._option_checks import CHECKS, PARTS, refuse_unhashable
from jobline._option_enums import DeliveryMode, DeliveryModeName
from jobline._option_parts import Backoff, Retention, overridden
from jobline._times import Moment, Seconds, from_duration, from_timestamp
from jobline._unique_mode import UniqueModeName, known_mode
from jobline.v1 import job_pb2

_DEAD_HEADS: dict[int, OnDeadHead] = {int(one): one for one in OnDeadHead}


class OptionsHow(TypedDict, total=False):
    """The fields of `JobOptions` as keywords, except the name, which is a keyword of its own."""

    content_type: str | None
    headers: Mapping[str, str] | None
    priority: int | None
    lease: Seconds | None
    max_attempts: int | None
    backoff: Backoff | None
    max_stalls: int | None
    retention: Retention | None
    lifo: bool | None
    retry_until: Moment | None
    ttl: Seconds | None
    attempt_timeout: Seconds | None
    tags: Iterable[str] | None
    phases: Iterable[str] | None
    limiters: Iterable[str] | None
    cost: int | None
    delivery: DeliveryModeName | None
    min_worker_version: str | None
    slots: int | None
    group: str | None
    sticky: bool | None
    on_dead_head: OnDeadHeadName | None
    unique_mode: UniqueModeName | None
    unique_ttl: Seconds | None
    unique_max_wait: Seconds | None
    depends_on: Iterable[Any] | None
    on_dependency_failure: DependencyPolicyName | None
    block_timeout: Seconds | None
    batch_id: int | None
    webhook: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """Options of a job. Frozen and hashable; jobs pushed with equal options share them.

    - `name`: the kind of work, ≤ 256 characters; workers route on it.
    - `content_type`: what the payload is; set by the client for JSON.
    - `headers`: at most 64, 8 KiB together.
    - `priority`: higher goes first, any 32-bit integer (default 0).
    - `lease`: how long a worker may stay silent, 1 s … 12 h (default 30 s).
    - `max_attempts`: failures until it is dead, 1 … 1,000, 0 for no limit (default 3).
    - `backoff`: the pause before the next attempt.
    - `max_stalls`: how many lost leases are forgiven, 0 … 1,000 (default 3).
    - `retention`: how long the job is kept when it has ended.
    - `delivery`: "at_least_once" (default), or "once": never again after a hand-out.
    - `min_worker_version`: only for workers of this `version` or later; 1.10 is later than 1.9.
    - `slots`: how many places of its worker's window it takes, 1 … 1,000 (default 1).
    - `lifo`: goes before all READY jobs of its queue, priority and name.
    - `retry_until`: no retry starts after this moment.
    - `ttl`: from push, 0 s … 400 days: a job that still waits then is EXPIRED; 0 for never.
    - `attempt_timeout`: how long one attempt may take in all, 1 s … 400 days; 0 for no limit.
    - `tags`: at most 16 words to filter by, 1 … 128 characters each.
    - `phases`: names of the steps that the worker runs in order, at most 100.
    - `group`: the entity whose jobs run one at a time, in order, ≤ 256 characters.
    - `sticky`: prefers, for at most 5 s, the worker that had the last job of its group.
    - `on_dead_head`: "continue" (default) or "hold": what its group does when it ran and is dead.
    - `limiters`: names of limiters to pass, at most 4.
    - `cost`: tokens that a hand-out takes of the rate of its queue and of its limiters, 1 …
      1,000,000 (default 1).
    - `unique_mode`: what a push does while another job holds its `unique_key`: "keep" (default),
      "replace", "extend", "reject", "debounce", "throttle", "after_active" or "supersede".
    - `unique_ttl`: how long the key is held from the push on, 1 ms … 400 days; with "throttle" all
      of it, else at most (default: as long as the job is unfinished).
    - `unique_max_wait`: "debounce" delays a job no longer than this after the first push of its
      series, 0 s … 400 days (default: no limit).
    - `depends_on`: at most 1,000 jobs that must complete first, of any queue: ids, or values with
      an `id`, as `push` returns.
    - `on_dependency_failure`: what happens if one of these, or a child that it adds, does not
      complete: "fail" (default: this one is dead), "cancel", "ignore" (it counts as done), "wait"
      (until it is retried) or "continue" (this one starts at once).
    - `block_timeout`: how long to wait for these at most, 0 s … 400 days; 0 for no limit (default).
    - `batch_id`: the batch that it is a member of; see `client.batches`.
    - `webhook`: a URL that is told when the job ends; see `client.webhooks`.
    """

    name: str | None = None
    content_type: str | None = None
    headers: Mapping[str, str] | None = None
    priority: int | None = None
    lease: Seconds | None = None
    max_attempts: int | None = None
    backoff: Backoff | None = None
    max_stalls: int | None = None
    retention: Retention | None = None
    lifo: bool | None = None
    retry_until: Moment | None = None
    ttl: Seconds | None = None
    attempt_timeout: Seconds | None = None
    tags: Iterable[str] | None = None
    phases: Iterable[str] | None = None
    limiters: Iterable[str] | None = None
    cost: int | None = None
    delivery: DeliveryModeName | None = None
    min_worker_version: str | None = None
    slots: int | None = None
    group: str | None = None
    sticky: bool | None = None
    on_dead_head: OnDeadHeadName | None = None
    unique_mode: UniqueModeName | None = None
    unique_ttl: Seconds | None = None
    unique_max_wait: Seconds | None = None
    depends_on: Iterable[Any] | None = None
    on_dependency_failure: DependencyPolicyName | None = None
    block_timeout: Seconds | None = None
    batch_id: int | None = None
    webhook: str | None = None
    _hash: int | None = field(init=False, repr=False, compare=False, default=None)
    _bare: JobOptions | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        for name, check in CHECKS.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, check(value))

    def __hash__(self) -> int:
        # Options are a dictionary key of every push, so the hash is worked out once.
        known = self._hash
        if known is None:
            values = (
                *(getattr(self, name) for name in _NAMES if name != "headers"),
                None if self.headers is None else frozenset(self.headers.items()),
            )
            try:
                known = hash(values)
            except TypeError:
                refuse_unhashable({name: getattr(self, name) for name in _NAMES})
                raise
            object.__setattr__(self, "_hash", known)
        return known

    @classmethod
    def from_message(cls, message: job_pb2.JobOptions) -> Self:
        """Returns the value of the protocol's message; None for fields that are unset."""
        has = message.HasField
        return cls(
            name=message.name or None,
            content_type=message.content_type or None,
            headers=dict(message.headers) or None,
            priority=message.priority if has("priority") else None,
            lease=from_duration(message.lease) if has("lease") else None,
            max_attempts=message.max_attempts if has("max_attempts") else None,
            backoff=Backoff.from_message(message.backoff) if has("backoff") else None,
            max_stalls=message.max_stalls if has("max_stalls") else None,
            retention=Retention.from_message(message.retention) if has("retention") else None,
            lifo=message.lifo if has("lifo") else None,
            retry_until=from_timestamp(message.retry_until) if has("retry_until") else None,
            attempt_timeout=from_duration(message.timeout) if has("timeout") else None,
            ttl=from_duration(message.ttl) if has("ttl") else None,
            tags=message.tags or None,
            phases=message.phases or None,
            limiters=message.limiters or None,
            cost=message.cost if has("cost") else None,
            delivery=known(DeliveryMode, message.delivery) if message.delivery else None,
            min_worker_version=message.min_worker_version or None,
            slots=message.slots if has("slots") else None,
            group=message.group or None,
            sticky=message.sticky if has("sticky") else None,
            on_dead_head=_DEAD_HEADS.get(message.on_dead_head),
            unique_mode=known_mode(message.unique_mode),
            unique_ttl=from_duration(message.unique_ttl) if has("unique_ttl") else None,
            unique_max_wait=(
                from_duration(message.unique_max_wait) if has("unique_max_wait") else None
            ),
            depends_on=message.depends_on or None,
            on_dependency_failure=POLICIES.get(message.on_dependency_failure),
            block_timeout=from_duration(message.block_timeout) if has("block_timeout") else None,
            batch_id=message.batch_id or None,
            webhook=message.webhook or None,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Made anew where it is unpickled: hashes differ between processes, and the view of the
        headers does not travel.
        """
        values = {name: getattr(self, name) for name in _NAMES}
        return _remade, (
            values | {"headers": None if self.headers is None else dict(self.headers)},
        )

    def merged(self, other: JobOptions | None) -> JobOptions:
        """Returns these options overridden by `other`, field by field down to those of `backoff`
        and `retention`; `headers` are merged, and `tags`, `limiters` and `depends_on` add up. The
        server merges the options of a push and those of its jobs in the same way.
        """
        if other is None or other is self:
            return self
        values = {name: value for name in _NAMES if (value := getattr(other, name)) is not None}
        if self.headers and other.headers:
            values["headers"] = {**self.headers, **other.headers}
        if self.tags and other.tags:
            values["tags"] = [*self.tags, *other.tags]
        if self.limiters and other.limiters:
            values["limiters"] = [*self.limiters, *other.limiters]
        if self.depends_on and other.depends_on:
            values["depends_on"] = [*self.depends_on, *other.depends_on]
        if values.keys() == _HEADERS_ALONE:  # as middleware that traces adds them to every push
            return with_headers(self, values["headers"])
        for name in PARTS:
            part = getattr(self, name)
            if part is not None and name in values:
                values[name] = overridden(part, values[name])
        return self.replaced(**values)

    def replaced(self, **changes: Any) -> Self:
        """Returns a copy with these fields changed."""
        return type(self)(**{**{name: getattr(self, name) for name in _NAMES}, **changes})


_NAMES = tuple(entry.name for entry in fields(JobOptions) if entry.init)
_HEADERS_ALONE = {"headers"}
_values_of = attrgetter(*_NAMES)
_SETTERS = [getattr(JobOptions, name).__set__ for name in _NAMES]

NO_OPTIONS = JobOptions()


def with_headers(options: JobOptions, headers: Mapping[str, str]) -> JobOptions:
    """Returns a copy with other headers, in a quarter of the time of `replaced`: middleware that
    traces makes one for each job.
    """
    made = object.__new__(JobOptions)
    for set_value, value in zip(_SETTERS, _values_of(options), strict=True):
        set_value(made, value)
    object.__setattr__(made, "headers", MappingProxyType(headers_given(headers)))
    object.__setattr__(made, "_hash", None)
    object.__setattr__(made, "_bare", without_headers(options))
    return made


def without_headers(options: JobOptions) -> JobOptions:
    """Returns options without their headers; for options that were merged the same object each
    time.
    """
    if options.headers is None:
        return options
    bare = options._bare  # noqa: SLF001  # this module's own class
    if bare is None:
        bare = NO_OPTIONS if has_headers_alone(options) else options.replaced(headers=None)
        object.__setattr__(options, "_bare", bare)
    return bare


def has_headers_alone(options: JobOptions) -> bool:
    """Returns whether nothing but headers is set, if they are."""
    return all(getattr(options, name) is None for name in _NAMES if name != "headers")


def with_keywords(
    options: JobOptions | None, keywords: OptionsHow, function: str, name: str | None = None
) -> JobOptions | None:
    """Returns options with the fields that were given to a function one by one, which override
    them. Raises TypeError for a keyword that is no field.
    """
    if options is not None:
        value_given("options", options, JobOptions)
    if not keywords and name is None:
        return options
    refuse_unknown(keywords, OptionsHow.__annotations__, function)
    own = JobOptions(name=name, **keywords)
    return own if options is None else options.merged(own)


def _remade(values: dict[str, Any]) -> JobOptions:
    return JobOptions(**values)

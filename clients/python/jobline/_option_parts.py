"""Parts of the options of jobs, which settings of queues have as well: backoff and retention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from jobline._arguments import duration_given, list_given, member_given, message_of
from jobline._option_enums import BackoffKind, BackoffKindName
from jobline._times import Seconds, from_duration
from jobline.v1 import job_pb2

_BACKOFF_KINDS: dict[int, BackoffKind] = {int(kind): kind for kind in BackoffKind}
# The fields of a backoff that say how its pauses grow.
_FORMULA = frozenset({"kind", "base", "max_delay"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """The pause before the next attempt.

    `kind`: "fixed" or "exponential" (default). `base`: the first pause, 0 s … 24 h (default 1 s);
    exponential backoff doubles it up to `max_delay`, 0 s … 24 h (default 1 h). `jitter`: share by
    which a pause may be shorter or longer, 0 … 1 (default 0.1). `delays`: the pauses one by one
    instead, the last one repeated, at most 100.
    """

    kind: BackoffKindName | None = None
    base: Seconds | None = None
    max_delay: Seconds | None = None
    jitter: float | None = None
    delays: Sequence[Seconds] | None = None

    def __post_init__(self) -> None:
        if self.delays is not None:
            object.__setattr__(self, "delays", list_given("backoff.delays", self.delays) or None)

    @classmethod
    def from_message(cls, message: job_pb2.Backoff) -> Self:
        """Returns the value of the protocol's message; pauses are timedeltas."""
        has = message.HasField
        return cls(
            kind=_BACKOFF_KINDS.get(message.kind),
            base=from_duration(message.base) if has("base") else None,
            max_delay=from_duration(message.max_delay) if has("max_delay") else None,
            jitter=message.jitter if has("jitter") else None,
            delays=tuple(map(from_duration, message.delays)),
        )

    def to_message(self) -> job_pb2.Backoff:
        """Returns the message of the protocol."""
        return message_of(
            job_pb2.Backoff,
            kind=member_given("backoff.kind", BackoffKind, self.kind),
            base=duration_given("backoff.base", self.base),
            max_delay=duration_given("backoff.max_delay", self.max_delay),
            jitter=self.jitter,
            delays=[duration_given("backoff.delays", each) for each in self.delays or ()],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long an ended job is kept.

    - `remove_on_complete`, `remove_on_fail`: forget it as soon as it is completed, or dead.
    - `age`: until it is stale, 0 s … 400 days. Default 1 h, for completed jobs beyond the queue's
      newest 1,000 alone; 7 days for dead ones.
    - `delete_after`: how long it is stale before it is deleted, 0 s … 400 days (default 1 h);
      a job may shorten what its queue says.
    - `count`, 0 … 10,000,000: it is deleted once this many later ones of its queue and state are
      kept. Default: no count; the queue has limits of its own.
    """

    remove_on_complete: bool | None = None
    remove_on_fail: bool | None = None
    age: Seconds | None = None
    count: int | None = None
    delete_after: Seconds | None = None

    @classmethod
    def from_message(cls, message: job_pb2.Retention) -> Self:
        """Returns the value of the protocol's message; times are timedeltas."""
        has = message.HasField
        return cls(
            remove_on_complete=message.remove_on_complete if has("remove_on_complete") else None,
            remove_on_fail=message.remove_on_fail if has("remove_on_fail") else None,
            age=from_duration(message.age) if has("age") else None,
            count=message.count if has("count") else None,
            delete_after=from_duration(message.delete_after) if has("delete_after") else None,
        )

    def to_message(self) -> job_pb2.Retention:
        """Returns the message of the protocol."""
        return message_of(
            job_pb2.Retention,
            remove_on_complete=self.remove_on_complete,
            remove_on_fail=self.remove_on_fail,
            age=duration_given("retention.age", self.age),
            count=self.count,
            delete_after=duration_given("retention.delete_after", self.delete_after),
        )


def overridden(part: Any, other: Any) -> Any:
    """Returns a part of options overridden by another one. A list of pauses replaces what says how
    they grow, and the other way round.
    """
    own = {entry.name: getattr(other, entry.name) for entry in fields(other)}
    changes = {name: value for name, value in own.items() if value is not None}
    if "delays" in changes:
        changes |= dict.fromkeys(_FORMULA)
    elif not _FORMULA.isdisjoint(changes):
        changes["delays"] = None
    return replace(part, **changes)

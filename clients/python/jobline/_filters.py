"""Which jobs: filters as values, made of keywords, of words, or of both.

    JobFilter(queue="mail", state="dead", older="1h")
    JobFilter.parse("queue:mail state:dead older:1h")

Spans of time are measured from the moment in which a filter is made, so all pages of a list that
one filter goes with are of the same jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self, TypedDict, TypeVar

from jobline import _filter_words as filter_words
from jobline._arguments import message_of, tags_given
from jobline._enums import (
    EndReason,
    EndReasonName,
    JobState,
    JobStateName,
    all_named,
)
from jobline._keywords import refuse_unknown
from jobline._times import Moment, Seconds, moment_of, seconds_of, to_timestamp
from jobline.errors import InvalidArgument
from jobline.v1 import dead_letter_service_pb2, job_admin_service_pb2, job_pb2

F = TypeVar("F", "JobFilter", "DeadFilter")


class JobConditions(TypedDict, total=False):
    """The fields of `JobFilter` as keywords."""

    queue: str
    name: str | None
    state: JobStateName | Iterable[JobStateName]
    headers: Mapping[str, str]
    error_type: str
    error_contains: str
    after: Moment | None
    before: Moment | None
    newer: Seconds | None
    older: Seconds | None
    tags: Iterable[str]
    group: str
    batch_id: int


class DeadConditions(TypedDict, total=False):
    """The fields of `DeadFilter` as keywords."""

    queue: str
    name: str | None
    end_reason: EndReasonName | Iterable[EndReasonName]
    error_type: str
    error_contains: str
    after: Moment | None
    before: Moment | None
    newer: Seconds | None
    older: Seconds | None
    tags: Iterable[str]
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Chooses jobs. All conditions must hold; a filter without conditions means all jobs.

    - `queue`; `name`: "" means jobs without one, None any.
    - `state`: one or several, as members or names: `state=["dead", "cancelled"]`.
    - `headers`: at most 8, which must be equal.
    - `error_type`, `error_contains`: class of the last error, and part of its message.
    - `after`, `before`: pushed at or after, and before, this moment (an aware datetime, or ISO 8601
      text). `newer`, `older`: the same as a span before now: `older="1h"`.
    - `tags`: at most 16, all of which the job must have. `group`: its group. `batch_id`:
      the batch that it is a member of.
    """

    queue: str = ""
    name: str | None = None
    state: JobStateName | Iterable[JobStateName] = ()
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)
    error_type: str = ""
    error_contains: str = ""
    after: Moment | None = None
    before: Moment | None = None
    newer: InitVar[Seconds | None] = None
    older: InitVar[Seconds | None] = None
    tags: Iterable[str] = ()
    group: str = ""
    batch_id: int = 0

    def __post_init__(self, newer: Seconds | None, older: Seconds | None) -> None:
        object.__setattr__(self, "state", all_named(JobState, self.state))
        object.__setattr__(self, "tags", tags_given("tags", self.tags))
        _settle_moments(self, newer, older)

    @classmethod
    def parse(cls, words: str, now: datetime | None = None) -> Self:
        """Returns the filter of some words, as the command line takes them: `queue:mail
        state:dead`. Raises InvalidArgument, which names what is understood.
        """
        return cls(**filter_words.of_jobs(filter_words.parse([words], now or datetime.now(UTC))))

    def to_message(self) -> job_admin_service_pb2.JobFilter:
        """Returns the message of the protocol."""
        states = all_named(JobState, self.state)
        return message_of(
            job_admin_service_pb2.JobFilter,
            queue=self.queue,
            name=self.name,
            states=[job_pb2.JobState.ValueType(state) for state in states],
            headers=self.headers,
            error_type=self.error_type,
            error_contains=self.error_contains,
            pushed_after=None if self.after is None else to_timestamp(self.after),
            pushed_before=None if self.before is None else to_timestamp(self.before),
            tags=self.tags,
            group=self.group,
            batch_id=self.batch_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadFilter:
    """Chooses dead jobs. All conditions must hold; a filter without conditions means all of them.

    - `queue`; `name`: "" means jobs without one, None any.
    - `end_reason`: why they died, one or several: `end_reason="stalled"`.
    - `error_type`, `error_contains`: class of the last error, and part of its message.
    - `after`, `before`: died at or after, and before, this moment (an aware datetime, or ISO 8601
      text). `newer`, `older`: the same as a span before now: `newer="1d"`.
    - `tags`: at most 16, all of which the job must have. `group`: its group.
    """

    queue: str = ""
    name: str | None = None
    end_reason: EndReasonName | Iterable[EndReasonName] = ()
    error_type: str = ""
    error_contains: str = ""
    after: Moment | None = None
    before: Moment | None = None
    newer: InitVar[Seconds | None] = None
    older: InitVar[Seconds | None] = None
    tags: Iterable[str] = ()
    group: str = ""

    def __post_init__(self, newer: Seconds | None, older: Seconds | None) -> None:
        object.__setattr__(self, "end_reason", all_named(EndReason, self.end_reason))
        object.__setattr__(self, "tags", tags_given("tags", self.tags))
        _settle_moments(self, newer, older)

    @classmethod
    def parse(cls, words: str, now: datetime | None = None) -> Self:
        """Returns the filter of some words, as `jobline dead` takes them: `queue:mail
        reason:stalled`. Raises InvalidArgument, which names what is understood.
        """
        return cls(**filter_words.of_dead(filter_words.parse([words], now or datetime.now(UTC))))

    def to_message(self) -> dead_letter_service_pb2.DeadFilter:
        """Returns the message of the protocol."""
        reasons = all_named(EndReason, self.end_reason)
        return message_of(
            dead_letter_service_pb2.DeadFilter,
            queue=self.queue,
            name=self.name,
            reasons=[job_pb2.EndReason.ValueType(reason) for reason in reasons],
            error_type=self.error_type,
            error_contains=self.error_contains,
            dead_after=None if self.after is None else to_timestamp(self.after),
            dead_before=None if self.before is None else to_timestamp(self.before),
            tags=self.tags,
            group=self.group,
        )


def _settle_moments(
    made: JobFilter | DeadFilter, newer: Seconds | None, older: Seconds | None
) -> None:
    """Converts moments to datetimes, however they were given."""
    for name, span_name, span in (("after", "newer", newer), ("before", "older", older)):
        moment = getattr(made, name)
        if moment is not None and span is not None:
            raise InvalidArgument(f"give {name} or {span_name}, not both")
        if span is not None:
            moment = datetime.now(UTC) - timedelta(seconds=seconds_of(span))
        object.__setattr__(made, name, None if moment is None else moment_of(moment))


def chosen(
    kind: type[F], where: str | F | None, conditions: Mapping[str, Any], function: str
) -> F | None:
    """Returns the filter of a call that was given words or a filter, and keywords, which override
    it; None without any. Raises TypeError for a keyword that is no field.
    """
    if conditions:
        # With its InitVars, unlike dataclasses.fields.
        refuse_unknown(conditions, list(kind.__dataclass_fields__), function)
    if where is None:
        return kind(**conditions) if conditions else None
    if not isinstance(where, (str, kind)):
        raise InvalidArgument(f"{function}() takes words or a {kind.__name__}, not {where!r}")
    found = kind.parse(where) if isinstance(where, str) else where
    return replace(found, **conditions) if conditions else found

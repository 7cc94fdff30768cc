"""Which jobs a command means: ids or filter words, as the protocol's messages.

Knows the filters of the protocol; nothing of how they are carried out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from jobline.cli import filters
from jobline.cli.exits import Mistake
from jobline.cli.filters import Filter
from jobline.enums import EndReason, JobState
from jobline.times import to_timestamp
from jobline.v1 import job_pb2
from jobline.v1.dead_letter_service_pb2 import DeadFilter
from jobline.v1.job_admin_service_pb2 import JobFilter

_ID_MAX = (1 << 53) - 1


@dataclass(frozen=True, slots=True)
class Chosen:
    """Jobs by id, or by a filter; neither means all."""

    ids: tuple[int, ...]
    words: Filter

    @property
    def where(self) -> JobFilter | None:
        """The filter for the protocol; None with ids or for all."""
        return None if self.ids or self.words.is_empty() else job_filter(self.words)


def choose(words: Sequence[str] | None, *, everything: bool, now: datetime) -> Chosen:
    """What ids or words choose; nothing at all needs `everything`. Raises Mistake."""
    words = words or []
    numbers = [word for word in words if word.isdecimal()]
    if numbers and len(numbers) < len(words):
        raise Mistake("ids and filter words do not go together: give one kind")
    chosen = Chosen(
        ids=tuple(dict.fromkeys(map(id_of, numbers))),
        words=Filter() if numbers else filters.parse(words, now),
    )
    said_nothing = not chosen.ids and chosen.words.is_empty()
    if said_nothing and not everything:
        raise Mistake("which jobs? Give ids, filter words, or --all")
    if everything and not said_nothing:
        raise Mistake("--all goes without ids and filter words")
    return chosen


def id_of(word: str) -> int:
    """The id that a word is. Raises Mistake."""
    if not word.isdecimal() or int(word) > _ID_MAX:
        raise Mistake(f"{word!r} is not the id of a job, a number of at most 16 digits")
    return int(word)


def job_filter(words: Filter) -> JobFilter:
    """The protocol's filter of jobs. Raises Mistake for what only dead jobs have."""
    if words.reasons:
        raise Mistake("reason: is a word for dead jobs: use `jobline dead …`")
    message = JobFilter(
        queue=words.queue,
        name=words.name,
        states=[job_pb2.JobState.ValueType(state) for state in words.states],
        headers=words.headers,
        error_type=words.error_type,
        error_contains=words.error_contains,
    )
    if words.after is not None:
        message.pushed_after.CopyFrom(to_timestamp(words.after))
    if words.before is not None:
        message.pushed_before.CopyFrom(to_timestamp(words.before))
    return message


def dead_filter(words: Filter) -> DeadFilter:
    """The protocol's filter of dead jobs. Raises Mistake for what dead jobs cannot be asked for."""
    if words.headers:
        raise Mistake("header.…: is not a word for dead jobs")
    if set(words.states) - {JobState.DEAD}:
        raise Mistake("these commands are about dead jobs; use `jobline job …` for other states")
    message = DeadFilter(
        queue=words.queue,
        name=words.name,
        reasons=[job_pb2.EndReason.ValueType(reason) for reason in words.reasons],
        error_type=words.error_type,
        error_contains=words.error_contains,
    )
    if words.after is not None:
        message.dead_after.CopyFrom(to_timestamp(words.after))
    if words.before is not None:
        message.dead_before.CopyFrom(to_timestamp(words.before))
    return message


def needs_ids(words: Filter) -> bool:
    """Whether a filter of dead jobs says what a filter of jobs cannot."""
    return bool(words.reasons or words.after or words.before)


def state_name(state: int) -> str:
    """A state as people read it."""
    return JobState(state).name if state in JobState.__members__.values() else str(state)


def reason_name(reason: int) -> str:
    """A reason as people read it; "" where there is none."""
    known = reason in EndReason.__members__.values() and reason
    return EndReason(reason).name.lower() if known else ""

"""Which jobs a command means: ids or filter words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from jobline import _filter_words as filter_words
from jobline._enums import EndReason, JobState
from jobline._filter_words import Conditions
from jobline._filters import DeadFilter, JobFilter
from jobline.cli.exit_codes import UsageError

_ID_MAX = (1 << 53) - 1


@dataclass(frozen=True, slots=True)
class Chosen:
    """Jobs by id, or by a filter; neither means all."""

    ids: tuple[int, ...]
    words: Conditions

    @property
    def where(self) -> JobFilter | None:
        """The filter of jobs; None with ids or for all."""
        return None if self.ids else job_filter(self.words)


def choose(
    words: Sequence[str] | None,
    *,
    everything: bool,
    now: datetime,
    takes: str = "ids, filter words",
) -> Chosen:
    """What ids or words choose; nothing at all needs `everything`. Raises Mistake."""
    words = words or []
    numbers = [word for word in words if word.isdecimal()]
    if numbers and len(numbers) < len(words):
        raise UsageError("ids and filter words do not go together: give one kind")
    chosen = Chosen(
        ids=tuple(dict.fromkeys(map(id_of, numbers))),
        words={} if numbers else filter_words.parse(words, now),
    )
    said_nothing = not chosen.ids and not chosen.words
    if said_nothing and not everything:
        raise UsageError(f"which jobs? Give {takes} or --all")
    if everything and not said_nothing:
        raise UsageError("--all goes without ids and filter words")
    return chosen


def id_of(word: str) -> int:
    """The id that a word is. Raises Mistake."""
    if not word.isdecimal() or int(word) > _ID_MAX:
        raise UsageError(f"{word!r} is not the id of a job, a number of at most 16 digits")
    return int(word)


def job_filter(words: Conditions) -> JobFilter | None:
    """The filter of jobs that words make, None if there are none. Raises InvalidArgument."""
    return JobFilter(**filter_words.of_jobs(words)) if words else None


def dead_filter(words: Conditions) -> DeadFilter | None:
    """The filter of dead jobs that words make, None if there are none. Raises InvalidArgument."""
    return DeadFilter(**filter_words.of_dead(words)) if words else None


def needs_ids(words: Conditions) -> bool:
    """Returns whether words about dead jobs have conditions that a filter of jobs lacks."""
    return not words.keys().isdisjoint({"end_reason", "after", "before"})


def state_name(state: JobState) -> str:
    """A state as people read it; one that only a newer client knows is `?`."""
    return state.name if state else "?"


def reason_name(reason: EndReason) -> str:
    """A reason as people read it; "" where there is none."""
    return reason.name.lower() if reason else ""

"""Filters in words: `queue:mail state:dead error:~timeout older:1h`.

A word is `key:value`; all words must hold. A value with spaces is quoted, as in a shell:
`error:~"connection refused"`. Pure: the present is an argument, and nothing here knows a message
class; `selection.py` turns what was parsed into the protocol's filters.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from jobline.cli.exits import Mistake
from jobline.enums import EndReason, JobState
from jobline.times import parse_moment, parse_span

E = TypeVar("E", JobState, EndReason)

HELP = """Words, all of which must hold:
queue:mail · name:welcome (name:- without one)
state:dead,cancelled · header.tenant:acme
error:TimeoutError (type) · error:~timeout (part of the message)
older:1h · newer:1h · before:2026-01-31 · after:2026-01-31T18:00
reason:stalled (dead jobs only)"""


class FilterError(Mistake):
    """A word that is not understood; the message says which and what is."""


@dataclass(slots=True)
class Filter:
    """What the words said. `after` and `before` bound the push, for dead jobs the death."""

    queue: str = ""
    name: str | None = None
    states: list[JobState] = field(default_factory=list)
    reasons: list[EndReason] = field(default_factory=list)
    error_type: str = ""
    error_contains: str = ""
    after: datetime | None = None
    before: datetime | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def is_empty(self) -> bool:
        """No word said anything."""
        return self == Filter()


def parse(words: Iterable[str], now: datetime) -> Filter:
    """The filter of some words; each argument may hold several. Raises FilterError."""
    found = Filter()
    for word in _split(words):
        key, colon, value = word.partition(":")
        if not colon or not value:
            raise FilterError(f"{word!r} is not key:value{_quoting(word)}. {HELP}")
        _take(found, key.lower(), value, now)
    return found


def _split(words: Iterable[str]) -> list[str]:
    try:
        return [part for word in words for part in shlex.split(word)]
    except ValueError as error:
        raise FilterError(f"the filter's quotes do not match: {error}") from None


def _quoting(word: str) -> str:
    return "" if ":" in word else ' (quote values with spaces: error:~"connection refused")'


def _take(found: Filter, key: str, value: str, now: datetime) -> None:
    if key.startswith("header."):
        found.headers[key.removeprefix("header.")] = value
        return
    take = _WORDS.get(key)
    if take is None:
        raise FilterError(f"{key!r} is not a word of filters. {HELP}")
    try:
        take(found, value, now)
    except FilterError:
        raise
    except ValueError as error:
        raise FilterError(f"{key}:{value}: {error}") from None


def _queue(found: Filter, value: str, _now: datetime) -> None:
    found.queue = value


def _name(found: Filter, value: str, _now: datetime) -> None:
    # `name:""` cannot be told from a forgotten value, so jobs without a name are `name:-`.
    found.name = "" if value == "-" else value


def _state(found: Filter, value: str, _now: datetime) -> None:
    found.states += [_member(JobState, one) for one in value.split(",")]


def _reason(found: Filter, value: str, _now: datetime) -> None:
    found.reasons += [_member(EndReason, one) for one in value.split(",")]


def _error(found: Filter, value: str, _now: datetime) -> None:
    if value.startswith("~"):
        found.error_contains = value[1:]
    else:
        found.error_type = value


def _older(found: Filter, value: str, now: datetime) -> None:
    found.before = now - timedelta(seconds=parse_span(value))


def _newer(found: Filter, value: str, now: datetime) -> None:
    found.after = now - timedelta(seconds=parse_span(value))


def _before(found: Filter, value: str, _now: datetime) -> None:
    found.before = parse_moment(value)


def _after(found: Filter, value: str, _now: datetime) -> None:
    found.after = parse_moment(value)


def _member(kind: type[E], text: str) -> E:
    known = {member.name.lower(): member for member in kind if member.value}
    try:
        return known[text.strip().lower().replace("-", "_")]
    except KeyError:
        raise FilterError(f"{text!r} is not one of {', '.join(known)}") from None


_WORDS: dict[str, Callable[[Filter, str, datetime], None]] = {
    "queue": _queue,
    "name": _name,
    "state": _state,
    "reason": _reason,
    "error": _error,
    "older": _older,
    "newer": _newer,
    "before": _before,
    "after": _after,
}

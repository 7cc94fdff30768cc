"""Filters in words: `queue:mail state:dead error:~timeout older:1h`.

A word is `key:value`; all words must hold. A value with spaces is quoted, as in a shell:
`error:~"connection refused"`. Words become the equivalent keywords of `JobFilter` and
`DeadFilter`. Pure: the present is an argument.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from jobline._enums import EndReason, JobState, named
from jobline._times import parse_moment, parse_span
from jobline.errors import InvalidArgument

Conditions = dict[str, Any]
"""The conditions of the words, as keywords of a filter."""

HELP = """Words, all of which must hold:
queue:mail · name:welcome (name:- without one) · tag:eu (repeatable) · group:acme · batch:17
state:dead,cancelled · header.tenant:acme
error:TimeoutError (type) · error:~timeout (part of the message)
older:1h · newer:1h · before:2026-01-31 · after:2026-01-31T18:00
reason:stalled (dead jobs only)"""


def parse(words: Iterable[str], now: datetime) -> Conditions:
    """Returns the conditions of some words; each argument may hold several. Raises InvalidArgument,
    which names the word that is not understood, and those that are.
    """
    found: Conditions = {}
    for word in _split(words):
        key, colon, value = word.partition(":")
        if not colon or not value:
            raise InvalidArgument(f"{word!r} is not key:value{_quoting(word)}. {HELP}")
        _take(found, key.lower(), value, now)
    return found


def of_jobs(conditions: Conditions) -> Conditions:
    """Returns the keywords of a `JobFilter`. Raises InvalidArgument for those of dead jobs."""
    if "end_reason" in conditions:
        raise InvalidArgument("reason: is a word for dead jobs: `client.dead`, `jobline dead …`")
    return conditions


def of_dead(conditions: Conditions) -> Conditions:
    """Returns the keywords of a `DeadFilter`. Raises InvalidArgument for what does not fit dead
    jobs.
    """
    if "headers" in conditions:
        raise InvalidArgument("header.…: is not a word for dead jobs")
    if "batch_id" in conditions:
        raise InvalidArgument("batch: is not a word for dead jobs")
    if set(conditions.get("state", ())) - {JobState.DEAD}:
        raise InvalidArgument(
            "this is about dead jobs: for other states `client.jobs`, `jobline job …`"
        )
    return {key: value for key, value in conditions.items() if key != "state"}


def _split(words: Iterable[str]) -> list[str]:
    try:
        return [part for word in words for part in shlex.split(word)]
    except ValueError as error:
        raise InvalidArgument(f"the filter's quotes do not match: {error}") from None


def _quoting(word: str) -> str:
    return "" if ":" in word else ' (quote values with spaces: error:~"connection refused")'


def _take(found: Conditions, key: str, value: str, now: datetime) -> None:
    if key.startswith("header."):
        found.setdefault("headers", {})[key.removeprefix("header.")] = value
        return
    take = _WORDS.get(key)
    if take is None:
        raise InvalidArgument(f"{key!r} is not a word of filters. {HELP}")
    try:
        take(found, value, now)
    except ValueError as error:
        raise InvalidArgument(f"{key}:{value}: {error}") from None


def _queue(found: Conditions, value: str, _now: datetime) -> None:
    found["queue"] = value


def _name(found: Conditions, value: str, _now: datetime) -> None:
    # `name:""` cannot be distinguished from a forgotten value, so jobs without a name are `name:-`.
    found["name"] = "" if value == "-" else value


def _batch(found: Conditions, value: str, _now: datetime) -> None:
    found["batch_id"] = int(value)


def _group(found: Conditions, value: str, _now: datetime) -> None:
    found["group"] = value


def _tag(found: Conditions, value: str, _now: datetime) -> None:
    found.setdefault("tags", []).append(value)


def _state(found: Conditions, value: str, _now: datetime) -> None:
    found.setdefault("state", []).extend(named(JobState, one) for one in value.split(","))


def _reason(found: Conditions, value: str, _now: datetime) -> None:
    found.setdefault("end_reason", []).extend(named(EndReason, one) for one in value.split(","))


def _error(found: Conditions, value: str, _now: datetime) -> None:
    if value.startswith("~"):
        found["error_contains"] = value[1:]
    else:
        found["error_type"] = value


def _older(found: Conditions, value: str, now: datetime) -> None:
    found["before"] = now - timedelta(seconds=parse_span(value))


def _newer(found: Conditions, value: str, now: datetime) -> None:
    found["after"] = now - timedelta(seconds=parse_span(value))


def _before(found: Conditions, value: str, _now: datetime) -> None:
    found["before"] = parse_moment(value)


def _after(found: Conditions, value: str, _now: datetime) -> None:
    found["after"] = parse_moment(value)


_WORDS: dict[str, Callable[[Conditions, str, datetime], None]] = {
    "queue": _queue,
    "name": _name,
    "tag": _tag,
    "group": _group,
    "batch": _batch,
    "state": _state,
    "reason": _reason,
    "error": _error,
    "older": _older,
    "newer": _newer,
    "before": _before,
    "after": _after,
}

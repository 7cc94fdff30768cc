"""The options of jobs that the arguments of `jobline push` say."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from jobline._enums import AckLevel
from jobline._times import parse_moment
from jobline.cli.dependency_options import policy_of
from jobline.cli.exit_codes import UsageError
from jobline.cli.retry_options import backoff_of, retention_of

if TYPE_CHECKING:
    from jobline import JobOptions

# Options of jobs that are arguments of `push` as they are.
_AS_TYPED = (
    "group",
    "max_stalls",
    "block_timeout",
    "depends_on",
    "priority",
    "max_attempts",
    "lease",
    "ttl",
    "attempt_timeout",
    "content_type",
    "min_worker_version",
    "slots",
    "batch_id",
    "webhook",
    "cost",
    "on_dead_head",
    "unique_mode",
    "unique_ttl",
    "unique_max_wait",
)


def options_of(arguments: dict[str, Any]) -> JobOptions:
    """Returns the options that the arguments of `push` say, by their names. Raises UsageError."""
    from jobline import JobOptions

    given: dict[str, Any] = {field: arguments[field] for field in _AS_TYPED} | {
        "name": arguments["name"] or None,
        "lifo": arguments["lifo"] or None,
        "sticky": arguments["sticky"] or None,
        "retry_until": moment_of(arguments["retry_until"], "--retry-until"),
        "headers": _headers_of(arguments["header"] or []) or None,
        "tags": arguments["tag"],
        "limiters": arguments["limiter"],
        "phases": arguments["phase"],
        "on_dependency_failure": policy_of(arguments["on_failure"]),
        "delivery": "once" if arguments["once"] else None,
        "backoff": backoff_of(arguments["backoff"]),
        "retention": retention_of(arguments["retention"]),
    }
    return JobOptions(**given)


def _headers_of(words: list[str]) -> dict[str, str]:
    headers = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"{word!r} is not KEY=VALUE")
        headers[key] = value
    return headers


def moment_of(text: str, flag: str) -> datetime | None:
    """Returns the moment that a flag says, None without one. Raises UsageError."""
    try:
        return parse_moment(text) if text else None
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from None


def level_of(text: str) -> AckLevel | None:
    """Returns the ack level of this name, None without one. Raises UsageError."""
    if not text:
        return None
    try:
        return AckLevel[text.upper()]
    except KeyError:
        raise UsageError(f"--ack-level: {text!r} is not memory, buffered or fsynced") from None

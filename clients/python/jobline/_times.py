"""Times between people, Python and the wire: `90s`, seconds or timedelta ↔ Duration, ISO text or
aware datetime ↔ Timestamp.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from jobline._base_errors import InvalidArgument

Seconds = float | timedelta | str
"""A span of time: seconds, a timedelta, or text such as `"250ms"`, `"90s"`, `"1h30m"`, `"2d"`."""

Moment = datetime | str
"""A moment: an aware datetime, or ISO 8601 text, which is local time without a zone."""

_UNITS = {
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3_600.0,
    "d": 86_400.0,
    "w": 604_800.0,
}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|min|s|m|h|d|w)")
_NANOS = 1_000_000_000
_NO_SPAN = "{} is not a time span; write seconds, a timedelta, or text such as '90s'"
_SECONDS_MAX = 315_576_000_000  # what a protobuf Duration holds: 10,000 years


def parse_span(text: str) -> float:
    """Returns the seconds of `250ms`, `90s`, `90`, `5m`, `1h30m`, `2d`, `1w`. Raises ValueError."""
    text = text.strip().lower()
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip():
        raise ValueError(f"{text!r} is not a time span; write 90s, 5m, 1h30m or 2d")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def parse_moment(text: str) -> datetime:
    """Returns an ISO 8601 moment; without a zone it is local time. Raises ValueError."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"{text!r} is not a moment; write 2026-01-31, 2026-01-31T18:00 or …T18:00:00Z"
        ) from None
    return moment.astimezone(UTC)


def seconds_of(span: Seconds) -> float:
    """Returns the span in seconds. Raises InvalidArgument for what is no span."""
    if isinstance(span, timedelta):
        return span.total_seconds()
    if isinstance(span, str):
        try:
            return parse_span(span)
        except ValueError as error:
            raise InvalidArgument(str(error)) from None
    if isinstance(span, bool):
        raise InvalidArgument(_NO_SPAN.format(span))
    try:
        return float(span)
    except TypeError:
        raise InvalidArgument(_NO_SPAN.format(repr(span))) from None


def moment_of(moment: Moment) -> datetime:
    """Returns the moment as a datetime. Raises InvalidArgument for what is no moment."""
    if isinstance(moment, datetime):
        return moment
    if not isinstance(moment, str):
        raise InvalidArgument(
            f"{moment!r} is not a moment; write an aware datetime, or text such as 2026-01-31T18:00"
        )
    try:
        return parse_moment(moment)
    except ValueError as error:
        raise InvalidArgument(str(error)) from None


def to_duration(span: Seconds) -> Duration:
    """Returns the span as a message. Raises InvalidArgument if it is not finite or out of all
    bounds.
    """
    seconds = seconds_of(span)
    if not -_SECONDS_MAX <= seconds <= _SECONDS_MAX:  # false for NaN too
        raise InvalidArgument(f"a time span must be a number of seconds, not {seconds}")
    nanos = round(seconds * _NANOS)
    whole = int(nanos / _NANOS)  # towards zero: a Duration's parts have the same sign
    return Duration(seconds=whole, nanos=nanos - whole * _NANOS)


def from_duration(duration: Duration) -> timedelta:
    """Returns the span of a message."""
    return timedelta(seconds=duration.seconds, microseconds=duration.nanos / 1_000)


def to_timestamp(moment: Moment) -> Timestamp:
    """Returns the moment as a message. Raises InvalidArgument if it has no time zone."""
    moment = moment_of(moment)
    if moment.tzinfo is None:
        raise InvalidArgument(
            f"{moment.isoformat()} has no time zone: use datetime.now(UTC) or .astimezone()"
        )
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp


def from_timestamp(timestamp: Timestamp) -> datetime:
    """Returns the moment of a message, in UTC."""
    return timestamp.ToDatetime(tzinfo=UTC)

"""Times between Python and the wire: seconds or timedelta ↔ Duration, aware datetime ↔
Timestamp.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from jobline.errors import InvalidArgument

Seconds = float | timedelta
"""A span of time: seconds, or a timedelta."""

_NANOS = 1_000_000_000
_SECONDS_MAX = 315_576_000_000  # what a protobuf Duration holds: 10,000 years


def seconds_of(span: Seconds) -> float:
    """The span in seconds."""
    return span.total_seconds() if isinstance(span, timedelta) else float(span)


def to_duration(span: Seconds) -> Duration:
    """The span as a message; raises InvalidArgument if it is not finite or out of all bounds."""
    seconds = seconds_of(span)
    if not -_SECONDS_MAX <= seconds <= _SECONDS_MAX:  # false for NaN too
        raise InvalidArgument(f"a time span must be a number of seconds, not {seconds}")
    nanos = round(seconds * _NANOS)
    whole = int(nanos / _NANOS)  # towards zero: a Duration's parts have the same sign
    return Duration(seconds=whole, nanos=nanos - whole * _NANOS)


def from_duration(duration: Duration) -> timedelta:
    """The span of a message."""
    return timedelta(seconds=duration.seconds, microseconds=duration.nanos / 1_000)


def to_timestamp(moment: datetime) -> Timestamp:
    """The moment as a message; raises InvalidArgument if it has no time zone."""
    if moment.tzinfo is None:
        raise InvalidArgument(
            f"{moment.isoformat()} has no time zone: use datetime.now(UTC) or .astimezone()"
        )
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp


def from_timestamp(timestamp: Timestamp) -> datetime:
    """The moment of a message, in UTC."""
    return timestamp.ToDatetime(tzinfo=UTC)

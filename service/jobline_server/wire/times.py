"""Durations and timestamps as whole milliseconds, the only unit of time in the engine."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

NANOS_PER_MS = 1_000_000


def milliseconds_of(value: Duration | Timestamp) -> int:
    """Returns the milliseconds of a duration, or of a timestamp since 1970. Rounds up, so that
    nothing happens earlier than asked.
    """
    return value.seconds * 1_000 - (-value.nanos // NANOS_PER_MS)


def fill_time(message: Duration | Timestamp, milliseconds: int) -> None:
    """Writes milliseconds into a message that is a field of another."""
    seconds, rest = divmod(milliseconds, 1_000)
    message.seconds = seconds
    message.nanos = rest * NANOS_PER_MS

"""Checks single fields, and returns their plain values.

`field` is the name used in error messages. Nothing here knows the message of a field, or its use.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Sized
from enum import IntEnum
from typing import TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.rpc.validate.mistyped import check_own_fields
from jobline_server.wire.times import milliseconds_of

E = TypeVar("E", bound=IntEnum)

QUEUE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,255}")
VERSION = re.compile("[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}")
A_NAME = "must be 1 to 256 of A-Z a-z 0-9 . _ : -, the first a letter or digit"
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
# The years 0001 … 9999, which is what a Timestamp may hold.
MOMENT_SECONDS_MIN = -62_135_596_800
MOMENT_SECONDS_MAX = 253_402_300_799
NANOS_MAX = 999_999_999


def invalid(field: str, message: str) -> Refused:
    """Returns the refusal of a field."""
    return Refused(RefusalKind.INVALID_FIELD, message, field=field)


def too_large(field: str, message: str) -> Refused:
    """Returns the refusal of a list or a value that is too large."""
    return Refused(RefusalKind.TOO_LARGE, message, field=field)


def not_served(field: str, message: str = "this field is not served yet") -> Refused:
    """Returns the refusal of a field of the protocol that is not served yet."""
    return Refused(RefusalKind.NOT_SERVED, message, field=field)


def within(place: str, refused: Refused) -> Refused:
    """Returns the same refusal, with its field prefixed: `worker` and `id` become `worker.id`."""
    refused.field = f"{place}.{refused.field}" if refused.field else place
    return refused


def queue_name(value: str, field: str = "queue") -> str:
    """Checks a queue's name; names that start with `_` are reserved."""
    if QUEUE_NAME.fullmatch(value):
        return value
    if not value:
        raise invalid(field, "is required")
    if value.startswith("_"):
        raise invalid(field, "names that start with _ are the system's")
    raise invalid(field, A_NAME)


def single_line(value: str, field: str, characters_max: int) -> str:
    """Checks a text of one line, which may be empty."""
    if len(value) > characters_max:
        raise invalid(field, f"must be at most {characters_max} characters")
    if not value.isprintable() and CONTROL.search(value):
        raise invalid(field, "must not hold control characters")
    return value


def single_lines(values: Iterable[str], field: str, characters_max: int) -> None:
    """Checks many texts of one line at once; finds the wrong one only if there is one."""
    values = list(values)
    if max(map(len, values), default=0) <= characters_max and "".join(values).isprintable():
        return
    for index, value in enumerate(values):
        single_line(value, f"{field}[{index}]", characters_max)


def required_line(value: str, field: str, characters_max: int) -> str:
    """Checks a text of one line, which must not be empty."""
    if not value:
        raise invalid(field, "is required")
    return single_line(value, field, characters_max)


def key(value: str, field: str, bytes_max: int) -> str:
    """Checks a key: one line, measured in bytes; empty means none."""
    single_line(value, field, bytes_max)
    if not value.isascii() and len(value.encode()) > bytes_max:
        raise invalid(field, f"must be at most {bytes_max} bytes")
    return value


def version(value: str, field: str) -> str:
    """Checks the version of a worker's program; empty means none."""
    if value and not VERSION.fullmatch(value):
        raise invalid(field, "must be 1 to 64 of A-Z a-z 0-9 . + _ -, the first a letter or digit")
    return value


def cut_text(value: str, bytes_max: int) -> str:
    """Returns free text of a worker, cut rather than refused: a job must always be able to fail.
    Replaces NUL, which some databases cannot hold.
    """
    if "\0" in value:
        value = value.replace("\0", "\ufffd")
    if len(value) * 4 <= bytes_max:
        return value
    encoded = value.encode()
    return value if len(encoded) <= bytes_max else encoded[:bytes_max].decode(errors="ignore")


def integer(value: int, field: str, minimum: int, maximum: int) -> int:
    """Checks a whole number within a range."""
    if not minimum <= value <= maximum:
        raise invalid(field, f"must be {minimum} to {maximum}")
    return value


def real(value: float, field: str, minimum: float, maximum: float) -> float:
    """Checks a finite number within a range."""
    if not math.isfinite(value) or not minimum <= value <= maximum:
        raise invalid(field, f"must be a number from {minimum:g} to {maximum:g}")
    return value


def enum_member(value: int, field: str, kinds: type[E], *, but: Container[int] = ()) -> E | None:
    """Returns a member of an enum, or None where it is unset; refuses an unknown number."""
    if value == 0:
        return None
    try:
        known = kinds(value)
    except ValueError:
        raise invalid(field, "is not a known value") from None
    if known in but:
        raise invalid(field, f"{known.name} is not allowed here")
    return known


def at_most(values: Sized, field: str, limit: int) -> None:
    """Refuses a list of more than `limit` entries."""
    if len(values) > limit:
        raise too_many(field, limit)


def too_many(field: str, limit: int) -> Refused:
    """Returns the refusal of a list of more than `limit` entries."""
    return too_large(field, f"must be at most {limit} entries")


def non_empty(values: Sized, field: str) -> None:
    """Refuses an empty list."""
    if not values:
        raise invalid(field, "must not be empty")


def duration_ms(value: Duration, field: str, minimum_ms: int, maximum_ms: int) -> int:
    """Returns the milliseconds of a duration within a range."""
    _check_types(value, field)
    seconds, nanos = value.seconds, value.nanos
    if seconds < 0 or nanos < 0:
        raise invalid(field, "must not be negative")
    if nanos > NANOS_MAX:
        raise invalid(field, "nanos must be below a second")
    milliseconds = milliseconds_of(value)
    if not minimum_ms <= milliseconds <= maximum_ms:
        shortest, longest = _shown_seconds(minimum_ms), _shown_seconds(maximum_ms)
        raise invalid(field, f"must be {shortest} s to {longest} s")
    return milliseconds


def _shown_seconds(milliseconds: int) -> str:
    """Returns seconds for a message: 400 days are `34,560,000`, without an exponent."""
    return f"{milliseconds / 1_000:,.15g}"


def moment_ms(value: Timestamp, field: str) -> int:
    """Returns the milliseconds of a timestamp since 1970."""
    _check_types(value, field)
    if not MOMENT_SECONDS_MIN <= value.seconds <= MOMENT_SECONDS_MAX:
        raise invalid(field, "must be in the years 0001 to 9999")
    if not 0 <= value.nanos <= NANOS_MAX:
        raise invalid(field, "nanos must be 0 to 999999999")
    return milliseconds_of(value)


def coming_ms(value: Timestamp, field: str, now_ms: int) -> int:
    """Returns the milliseconds of a timestamp since 1970; refuses one over 400 days ahead."""
    milliseconds = moment_ms(value, field)
    if milliseconds > now_ms + limits.DELAY_MS_MAX:
        raise invalid(field, "must be at most 400 days ahead")
    return milliseconds


def _check_types(value: Duration | Timestamp, field: str) -> None:
    try:
        check_own_fields(value)
    except Refused as refused:
        raise within(field, refused) from None

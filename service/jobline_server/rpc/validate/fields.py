"""The leaves: one field each, checked and made plain.

Nothing here knows which message a field stands in, or what its value will do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Sized
from enum import IntEnum
from typing import TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.rpc.validate.mistyped import check_own_fields
from jobline_server.wire.times import milliseconds_of

E = TypeVar("E", bound=IntEnum)

QUEUE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,255}")
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
# The years 0001 … 9999, which is what a Timestamp may hold.
MOMENT_SECONDS_MIN = -62_135_596_800
MOMENT_SECONDS_MAX = 253_402_300_799
NANOS_MAX = 999_999_999


def invalid(field: str, message: str) -> Refused:
    """The refusal of a field."""
    return Refused(RefusalKind.INVALID_FIELD, message, field=field)


def too_large(field: str, message: str) -> Refused:
    """The refusal of a list or a value that is too large."""
    return Refused(RefusalKind.TOO_LARGE, message, field=field)


def not_served(field: str, message: str = "this field is not served yet") -> Refused:
    """The refusal of a field that stands in the protocol and is not served."""
    return Refused(RefusalKind.NOT_SERVED, message, field=field)


def within(place: str, refused: Refused) -> Refused:
    """The same refusal, its path seen from outside `place`."""
    refused.field = f"{place}.{refused.field}" if refused.field else place
    return refused


def queue_name(value: str, field: str = "queue") -> str:
    """A queue's name; names that start with `_` are the system's."""
    if QUEUE_NAME.fullmatch(value):
        return value
    if not value:
        raise invalid(field, "a queue is required")
    if value.startswith("_"):
        raise invalid(field, "names that start with _ are the system's")
    raise invalid(field, "must be 1 to 256 of A-Z a-z 0-9 . _ : -, the first a letter or digit")


def single_line(value: str, field: str, characters_max: int) -> str:
    """A text in one line, empty or not."""
    if len(value) > characters_max:
        raise invalid(field, f"must be at most {characters_max} characters")
    if not value.isprintable() and CONTROL.search(value):
        raise invalid(field, "must not hold control characters")
    return value


def single_lines(values: Iterable[str], field: str, characters_max: int) -> None:
    """Many texts of one line at once; the field at fault is found only if there is one."""
    values = list(values)
    if max(map(len, values), default=0) <= characters_max and "".join(values).isprintable():
        return
    for index, value in enumerate(values):
        single_line(value, f"{field}[{index}]", characters_max)


def required_line(value: str, field: str, characters_max: int) -> str:
    """A text in one line that must be there."""
    if not value:
        raise invalid(field, "is required")
    return single_line(value, field, characters_max)


def key(value: str, field: str, bytes_max: int) -> str:
    """A key: one line, counted in bytes; empty means none."""
    single_line(value, field, bytes_max)
    if not value.isascii() and len(value.encode()) > bytes_max:
        raise invalid(field, f"must be at most {bytes_max} bytes")
    return value


def cut_text(value: str, bytes_max: int) -> str:
    """Free text of a worker, cut rather than refused: a job must always be able to fail. NUL, which
    some databases cannot hold, is replaced."""
    if "\0" in value:
        value = value.replace("\0", "\ufffd")
    if len(value) * 4 <= bytes_max:
        return value
    encoded = value.encode()
    return value if len(encoded) <= bytes_max else encoded[:bytes_max].decode(errors="ignore")


def integer(value: int, field: str, least: int, most: int) -> int:
    """A whole number within a range."""
    if not least <= value <= most:
        raise invalid(field, f"must be {least} to {most}")
    return value


def real(value: float, field: str, least: float, most: float) -> float:
    """A finite number within a range."""
    if not math.isfinite(value) or not least <= value <= most:
        raise invalid(field, f"must be a number from {least:g} to {most:g}")
    return value


def enum_member(value: int, field: str, kinds: type[E], *, but: Container[int] = ()) -> E | None:
    """A member of an enum, or None where it is unset; an unknown number is refused."""
    if value == 0:
        return None
    try:
        known = kinds(value)
    except ValueError:
        raise invalid(field, "is not a known value") from None
    if known in but:
        raise invalid(field, f"{known.name} is not allowed here")
    return known


def at_most(values: Sized, field: str, most: int) -> None:
    """A list of bounded length."""
    if len(values) > most:
        raise too_large(field, f"must be at most {most} entries")


def non_empty(values: Sized, field: str) -> None:
    """A list that is not empty."""
    if not values:
        raise invalid(field, "must not be empty")


def duration_ms(value: Duration, field: str, least_ms: int, most_ms: int) -> int:
    """A length of time in milliseconds."""
    _check_types(value, field)
    seconds, nanos = value.seconds, value.nanos
    if seconds < 0 or nanos < 0:
        raise invalid(field, "must not be negative")
    if nanos > NANOS_MAX:
        raise invalid(field, "nanos must be below a second")
    milliseconds = milliseconds_of(value)
    if not least_ms <= milliseconds <= most_ms:
        raise invalid(field, f"must be {_shown_seconds(least_ms)} s to {_shown_seconds(most_ms)} s")
    return milliseconds


def _shown_seconds(milliseconds: int) -> str:
    """Seconds as a person writes them: 400 days are `34,560,000`, and no power of ten."""
    return f"{milliseconds / 1_000:,.15g}"


def moment_ms(value: Timestamp, field: str) -> int:
    """A moment in milliseconds since 1970."""
    _check_types(value, field)
    if not MOMENT_SECONDS_MIN <= value.seconds <= MOMENT_SECONDS_MAX:
        raise invalid(field, "must be in the years 0001 to 9999")
    if not 0 <= value.nanos <= NANOS_MAX:
        raise invalid(field, "nanos must be 0 to 999999999")
    return milliseconds_of(value)


def _check_types(value: Duration | Timestamp, field: str) -> None:
    try:
        check_own_fields(value)
    except Refused as refused:
        raise within(field, refused) from None

"""Values as a reader wants them: durations with a fitting unit, shares in per cent, times short."""

from __future__ import annotations

from datetime import datetime
from typing import Any

_UNITS = ((86_400_000.0, "d"), (3_600_000.0, "h"), (60_000.0, "min"), (1_000.0, "s"))


def count(value: Any) -> str:
    """Returns a number with commas; a fraction with as many digits as tell something."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"
    return f"{value:,}"


def duration(value: Any) -> str:
    """Returns milliseconds in a fitting unit, with three digits."""
    number = float(value)
    for size, unit in _UNITS:
        if number >= size:
            return f"{_three_digits(number / size)} {unit}"
    return f"{_three_digits(number)} ms"


def share(value: Any) -> str:
    """Returns a share of 1 in per cent."""
    number = float(value) * 100
    # Not 100 % unless it is: 99.996 % of an objective of 100 % is not kept.
    if 99 < number < 100:
        number = min(number, 99.999)
        return f"{number:.3f}".rstrip("0").rstrip(".") + " %"
    return f"{number:.1f}".removesuffix(".0") + " %"


def moment(value: Any) -> str:
    """Returns a time, UTC, to the minute."""
    return _parsed(value).strftime("%d %b %H:%M")


def text(value: Any) -> str:
    """Returns the value as it is: names, messages, ids."""
    return str(value)


def span(seconds: float) -> str:
    """Returns a length of time in words, for a heading."""
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size and seconds % size == 0:
            number = int(seconds // size)
            return unit if number == 1 else f"{number} {unit}s"
    return f"{seconds:g} seconds"


def period(first: Any, last: Any) -> str:
    """Returns from when to when, UTC, and how long that is; the day is said once if it is one."""
    begin, end = _parsed(first), _parsed(last)
    length = duration(seconds_between(first, last) * 1_000)
    last_form = "%H:%M:%S" if begin.date() == end.date() else "%d %B %Y, %H:%M:%S"
    return f"{begin:%d %B %Y, %H:%M:%S} to {end.strftime(last_form)} UTC ({length})"


def seconds_between(first: Any, last: Any) -> float:
    """Returns the seconds from one time to another."""
    return (_parsed(last) - _parsed(first)).total_seconds()


def _parsed(value: Any) -> datetime:
    return datetime.fromisoformat(str(value))


def _three_digits(number: float) -> str:
    if number >= 100 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"

"""Times as people read them: `1.5 h`, `3 min ago`; `jobline._times` reads what they type.

Pure: a moment that something is measured from is an argument.
"""

from __future__ import annotations

import math
from datetime import datetime

# Seconds of a unit, and how many of it are one of the next.
_SMALL = [(1e-6, "µs", 1_000), (1e-3, "ms", 1_000), (1.0, "s", 60)]
# Seconds of a unit and of the smaller one that is shown beside it; and seconds of the next unit.
_LARGE = [
    ((60, "min", 1, "s"), 3_600.0),
    ((3_600, "h", 60, "min"), 86_400.0),
    ((86_400, "d", 3_600, "h"), math.inf),
]


def show_span(seconds: float) -> str:
    """A span in common units: `2.4 µs`, `12 ms`, `3.4 s`, `5 min 8 s`, `1 h 30 min`, `3 d 4 h`."""
    if seconds < 0:
        return f"-{show_span(-seconds)}"
    for size, unit, most in _SMALL:
        count = _rounded(seconds / size)
        if count < most:  # otherwise it is one of the next unit, once rounded
            return f"{count:g} {unit}" if count else "0 s"
    size, unit, smaller, smaller_unit = next(
        large for large, most in _LARGE if round(seconds / large[2]) * large[2] < most
    )
    count, rest = divmod(round(seconds / smaller) * smaller, size)
    return f"{count} {unit} {rest // smaller} {smaller_unit}" if rest else f"{count} {unit}"


def _rounded(number: float) -> float:
    """Two digits of a small number, no fraction of a larger one."""
    return round(number, 1) if number < 9.95 else round(number)  # 10 when rounded


def show_ago(moment: datetime | None, now: datetime) -> str:
    """How long ago it was, or in how long it will be, in one unit; "" without a moment."""
    if moment is None:
        return ""
    passed = (now - moment).total_seconds()
    whole = int(abs(passed))
    if whole == 0:
        return "now"
    units = (large[:2] for large, _ in reversed(_LARGE) if whole >= large[0])
    size, unit = next(units, (1, "s"))
    span = f"{whole // size} {unit}"
    return f"{span} ago" if passed > 0 else f"in {span}"


def show_moment(moment: datetime | None) -> str:
    """A moment in local time, to the second; "" without one."""
    return "" if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def show_clock(moment: datetime, now: datetime) -> str:
    """A moment in local time, to the second; of another day than today's with its date."""
    local = moment.astimezone()
    return f"{local:%H:%M:%S}" if local.date() == now.astimezone().date() else show_moment(moment)

"""Times as people type and read them: `90s`, `1h30m`, `2d`; and `3 min ago`.

Pure: a moment that something is measured from is an argument.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

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
_SHOWN = [(86_400.0, "d"), (3_600.0, "h"), (60.0, "min")]


def parse_span(text: str) -> float:
    """Seconds of `250ms`, `90s`, `90`, `5m`, `1h30m`, `2d`, `1w`. Raises ValueError."""
    text = text.strip().lower()
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip():
        raise ValueError(f"{text!r} is not a time span; write 90s, 5m, 1h30m or 2d")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def parse_moment(text: str) -> datetime:
    """An ISO 8601 moment; without a zone it is local time. Raises ValueError."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"{text!r} is not a moment; write 2026-01-31, 2026-01-31T18:00 or …T18:00:00Z"
        ) from None
    return moment.astimezone(UTC)


def show_span(seconds: float) -> str:
    """A span, as short as it is honest: `1.2 ms`, `3.4 s`, `2 min`, `5.5 h`."""
    for size, unit in _SHOWN:
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    if abs(seconds) >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1_000:.3g} ms"


def show_ago(moment: datetime | None, now: datetime) -> str:
    """How long ago it was, or in how long it will be; "" without a moment."""
    if moment is None:
        return ""
    passed = (now - moment).total_seconds()
    if abs(passed) < 0.001:
        return "now"
    return f"{show_span(passed)} ago" if passed > 0 else f"in {show_span(-passed)}"


def show_moment(moment: datetime | None) -> str:
    """A moment in local time, to the second; "" without one."""
    return "" if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")

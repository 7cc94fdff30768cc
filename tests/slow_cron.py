"""Cron, computed as slowly and plainly as can be: every minute is looked at, by the clock on the
wall. It shares no code with the server.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo

EXPRESSIONS = (
    "30 2 * * *",
    "0 0 * * *",
    "15,45 1-3 * * *",
    "5 0,1,2,3,4 * * *",
    "*/30 * * * *",
    "20 * * * *",
    "*/15 2 * * *",
    "0 12 * * 0",
)
# Midnights, in UTC, around the days on which clocks change.
DAYS = (
    ("Europe/Berlin", datetime(2026, 3, 28, 23, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 24, 22, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 5, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 4, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 13, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 13, 30, tzinfo=UTC)),
)
_LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def slow_times(expression: str, zone: tzinfo, start: datetime, end: datetime) -> list[int]:
    """Returns the times after a moment and up to another one, in milliseconds since 1970."""
    minutes, hours, days, months, weekdays = (
        _values(field, *limits) for field, limits in zip(expression.split(), _LIMITS, strict=True)
    )

    def has(at: datetime) -> bool:
        is_day = at.day in days and at.month in months and at.isoweekday() % 7 in weekdays
        return is_day and at.hour in hours and at.minute in minutes

    follows_wall = any(field.startswith("*") for field in expression.split()[:2])
    found: set[datetime] = set()
    walls = _walls(zone, start - timedelta(days=2), end + timedelta(days=2))
    if follows_wall:
        found = {moment for moment, wall in walls if has(wall)}
    else:
        # A time of the day: the first minute that shows it, or the first one after it.
        by_day: dict[date, list[tuple[datetime, datetime]]] = {}
        for moment, wall in walls:
            by_day.setdefault(wall.date(), []).append((moment, wall))
        for day, shown in by_day.items():
            midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001  # a wall's time
            for minute in range(1_440):
                wanted = midnight + timedelta(minutes=minute)
                if has(wanted):
                    after = [moment for moment, wall in shown if wall >= wanted]
                    found.update(after[:1])
    return sorted(round(one.timestamp() * 1_000) for one in found if start < one <= end)


def _walls(zone: tzinfo, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """Returns each minute with what a clock on the wall shows then."""
    count = int((end - start).total_seconds()) // 60
    moments = [start + timedelta(minutes=number) for number in range(count)]
    return [(one, one.astimezone(zone).replace(tzinfo=None)) for one in moments]


def _values(field: str, lowest: int, highest: int) -> set[int]:
    found: set[int] = set()
    for term in field.split(","):
        span, _, step = term.partition("/")
        first, _, last = span.partition("-")
        low, high = (lowest, highest) if span == "*" else (int(first), int(last or first))
        found.update(range(low, high + 1, int(step or 1)))
    return found

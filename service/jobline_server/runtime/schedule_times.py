"""Times of schedules: which runs a cron expression or an interval has, in which time zone.

The engine gets them as values. All times are wall time in milliseconds since 1970; 0 is no time.

Cron expressions are read by `cronsim`, which follows Debian's cron. An expression whose minute and
hour are both fixed (neither starts with `*`) means a time of the day: where the clocks go forward
past it, it runs when the gap ends, and where they go back it runs the first time only. Any other
one follows the clock on the wall: it has no run in a gap, and runs both times. `cronsim` does the
former for five fields alone; here six fields, with seconds, are the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from jobline_server.engine.limits import MISSED_RUNS_MAX
from jobline_server.engine.schedule import DueRuns, Schedule, ScheduleSettings

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
# Due runs that are computed one after the other; of more than these, the last ones are looked for.
STEPS_MAX = 200
# Due runs that are listed: those that may be made up for, and one that is not missed.
LISTED_MAX = MISSED_RUNS_MAX + 1
# Schedules of one moment mostly have few expressions: each is computed once.
CACHED = 4_096


class _Times(CronSim):
    """The times of an expression, also where clocks change by half an hour (Lord Howe Island)."""

    def advance_hour(self) -> bool:
        """Rolls forward to an hour of the expression, by half hours: whole ones would pass over the
        beginning of the hour after such a change.
        """
        if self.dt.hour in self.hours:
            return False
        self.dt = self.dt.replace(minute=0, second=0)
        while self.dt.hour not in self.hours:
            self.tick(seconds=1_800)
            if self.dt.hour == self.dt.minute == 0:
                # Another day, and perhaps another month: these go first.
                break
        return True


class BadTiming(Exception):
    """Raised for an expression or a zone that means nothing; says what is wrong with it."""


def check_cron(expression: str, time_zone: str) -> None:
    """Raises `BadTiming` for a zone that does not exist, or an expression that means nothing or
    has no time within 50 years.
    """
    zone_of(time_zone)
    if not _after(expression, time_zone, 0):
        raise BadTiming("has no time in 50 years")


@lru_cache(maxsize=1_024)
def zone_of(name: str) -> tzinfo:
    """Returns a time zone by its IANA name; "" is UTC. Raises `BadTiming`."""
    if name in {"", "UTC"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, LookupError, OSError):
        raise BadTiming(f"there is no time zone {name}") from None


def next_run(settings: ScheduleSettings, anchor_ms: int, after_ms: int) -> int:
    """Returns the first run after a moment; 0 if there is none."""
    start_ms = settings.start_ms
    if start_ms:
        after_ms = max(after_ms, start_ms - 1)
    if settings.every_ms:
        number = (after_ms - anchor_ms) // settings.every_ms + 1
        # A schedule without a start was created at its anchor: that is no run.
        run_ms = anchor_ms + max(number, 0 if start_ms else 1) * settings.every_ms
    else:
        run_ms = _after(settings.cron, settings.time_zone, after_ms // 1_000) * 1_000
    return 0 if settings.end_ms and run_ms > settings.end_ms else run_ms


def first_run(settings: ScheduleSettings, anchor_ms: int, now_ms: int) -> int:
    """Returns the first run of a schedule that is created now; 0 if it has none."""
    if settings.immediately:
        run_ms = max(now_ms, settings.start_ms)
        return 0 if settings.end_ms and run_ms > settings.end_ms else run_ms
    return next_run(settings, anchor_ms, now_ms)


def coming_runs(settings: ScheduleSettings, anchor_ms: int, run_ms: int) -> Iterator[int]:
    """Yields a run and all after it; nothing if it is 0."""
    while run_ms:
        yield run_ms
        run_ms = next_run(settings, anchor_ms, run_ms)


def resumed_run(schedule: Schedule, now_ms: int) -> int:
    """Returns the next run of a schedule that is resumed, 0 of one that is over."""
    if schedule.next_ms and schedule.next_ms <= now_ms:
        return next_run(schedule.settings, schedule.anchor_ms, now_ms)
    return schedule.next_ms


def due_runs(schedule: Schedule, now_ms: int) -> DueRuns:
    """Returns the runs that have started by now, with their jitter, and the next one. Runs keep
    their order: one that starts later than those after it holds them up.
    """
    settings, anchor_ms = schedule.settings, schedule.anchor_ms
    due: deque[int] = deque(maxlen=LISTED_MAX)
    count, run_ms = 0, schedule.next_ms
    while run_ms and schedule.starts_ms(run_ms) <= now_ms:
        due.append(run_ms)
        count += 1
        if count == STEPS_MAX:
            skipped = _skip_ahead(settings, anchor_ms, run_ms, now_ms - settings.jitter_ms)
            if skipped is not None:
                count += skipped[0]
                due.extend(skipped[1])
        run_ms = next_run(settings, anchor_ms, due[-1])
    return DueRuns(tuple(due), count - len(due), run_ms)


def _skip_ahead(
    settings: ScheduleSettings, anchor_ms: int, run_ms: int, until_ms: int
) -> tuple[int, list[int]] | None:
    """Returns the last runs after one and up to a moment, and how many there are. Of a cron
    expression only those that are listed are counted: years of seconds are not gone through.
    """
    if settings.end_ms:
        until_ms = min(until_ms, settings.end_ms)
    if settings.every_ms:
        # A first run that was immediate is no multiple, those after it are.
        number = (until_ms - anchor_ms) // settings.every_ms
        count = number - (run_ms - anchor_ms) // settings.every_ms
        last_ms = anchor_ms + number * settings.every_ms
        times = [last_ms - at * settings.every_ms for at in range(min(count, LISTED_MAX))]
    else:
        times = list(islice(_before(settings, until_ms // 1_000 + 1), LISTED_MAX))
        count = len(times)
    times = [time_ms for time_ms in reversed(times) if time_ms > run_ms]
    return (count, times) if times else None


def _before(settings: ScheduleSettings, before_s: int) -> Iterator[int]:
    """Yields runs before a moment, the last one first."""
    found = _simulation(settings.cron, settings.time_zone, before_s, reverse=True)
    last_s = before_s
    for moment in found:
        at_s = int(moment.timestamp())
        if at_s < last_s:
            last_s = at_s
            yield at_s * 1_000


@lru_cache(maxsize=CACHED)
def _after(expression: str, time_zone: str, after_s: int) -> int:
    """Returns the first time of an expression after a moment, in seconds; 0 if there is none."""
    try:
        for moment in _simulation(expression, time_zone, after_s):
            at_s = int(moment.timestamp())
            # A time of the day that comes twice is given as the first, which may be over.
            if at_s > after_s:
                return at_s
    except (OverflowError, ValueError):
        # After the year 9999.
        pass
    return 0


def _simulation(expression: str, time_zone: str, from_s: int, *, reverse: bool = False) -> CronSim:
    zone = zone_of(time_zone)
    expression = MACROS.get(expression.lower(), expression)
    try:
        found = _Times(expression, datetime.fromtimestamp(from_s, zone), reverse)
    except CronSimError as error:
        raise BadTiming(str(error)) from None
    is_time_of_day = not (found.parts[1].startswith("*") or found.parts[2].startswith("*"))
    if is_time_of_day and zone is not UTC and found.fixup_tz is None:
        found.fixup_tz = zone
        found.dt = found.dt.replace(tzinfo=None)
    return found

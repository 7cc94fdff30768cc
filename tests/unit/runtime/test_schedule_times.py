"""Times of schedules, beside what a slow and independent computation says of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine.schedule import Schedule, ScheduleSettings
from jobline_server.runtime import schedule_times
from jobline_server.runtime.schedule_times import (
    LISTED_MAX,
    MACROS,
    STEPS_MAX,
    BadTiming,
    check_cron,
    coming_runs,
    due_runs,
    first_run,
    next_run,
)
from tests.slow_cron import DAYS, EXPRESSIONS, slow_times

MINUTE = 60_000
DAY = 1_440 * MINUTE


def cron(expression: str, zone: str = "", **settings: Any) -> ScheduleSettings:
    return ScheduleSettings("q", cron=expression, time_zone=zone, **settings)


def every(seconds: int, **settings: Any) -> ScheduleSettings:
    return ScheduleSettings("q", every_ms=seconds * 1_000, **settings)


def ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000)


def times(settings: ScheduleSettings, after_ms: int, until_ms: int) -> list[int]:
    first_ms = next_run(settings, 0, after_ms)
    found: list[int] = []
    for run_ms in coming_runs(settings, 0, first_ms):
        if run_ms > until_ms:
            break
        found.append(run_ms)
    return found


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize(("zone", "day"), DAYS)
def test_times_over_a_change_of_the_clock(zone: str, day: datetime, expression: str) -> None:
    """From the day before to the day after, in summer and winter."""
    start, end = day - timedelta(days=1), day + timedelta(days=2)
    expected = slow_times(expression, ZoneInfo(zone), start, end)
    assert expected
    assert times(cron(expression, zone), ms(start), ms(end)) == expected
    # From any moment on they are the same.
    for after in (start + timedelta(minutes=step) for step in range(0, 4_320, 37)):
        later = [one for one in expected if one > ms(after)]
        found = next_run(cron(expression, zone), 0, ms(after))
        assert not later or found == later[0]


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize(("zone", "day"), DAYS)
def test_times_backwards_are_the_same(zone: str, day: datetime, expression: str) -> None:
    """What was missed for long is found from its end."""
    start, end = day - timedelta(days=1), day + timedelta(days=2)
    expected = slow_times(expression, ZoneInfo(zone), start, end)
    settings = cron(expression, zone)
    found = list(islice(schedule_times._before(settings, ms(end) // 1_000 + 1), len(expected)))
    assert found[::-1] == expected


@pytest.mark.parametrize(("macro", "expression"), MACROS.items())
def test_macros_are_expressions(macro: str, expression: str) -> None:
    for name in (macro, macro.upper()):
        check_cron(name, "")
        assert next_run(cron(name), 0, 5) == next_run(cron(expression), 0, 5)


def test_six_fields_begin_with_seconds() -> None:
    assert times(cron("*/20 5 0 1 1 *"), 0, DAY) == [300_000, 320_000, 340_000]


def test_time_of_the_day_with_seconds_comes_once() -> None:
    """As one without; `cronsim` alone would run it twice in autumn, and never in spring."""
    settings = cron("15 30 2 * * *", "Europe/Berlin")
    autumn = datetime(2026, 10, 25, tzinfo=UTC) - timedelta(hours=2)
    assert len(times(settings, ms(autumn), ms(autumn + timedelta(days=1)))) == 1
    spring = datetime(2026, 3, 29, tzinfo=UTC) - timedelta(hours=1)
    (run_ms,) = times(settings, ms(spring), ms(spring + timedelta(hours=20)))
    assert run_ms == ms(datetime(2026, 3, 29, 1, 0, 15, tzinfo=UTC))


@pytest.mark.parametrize(
    ("expression", "zone"),
    [
        ("* * * *", ""),
        ("* * * * * * *", ""),
        ("61 * * * *", ""),
        ("@often", ""),
        ("", ""),
        ("0 0 30 2 *", ""),
        ("0 0 31 2,4 */2", ""),
        ("* * * * *", "Mars/Olympus"),
        ("* * * * *", "Europe"),
        ("* * * * *", "/etc/passwd"),
        ("* * * * *", "x\0"),
    ],
)
def test_what_means_nothing_is_refused(expression: str, zone: str) -> None:
    with pytest.raises(BadTiming):
        check_cron(expression, zone)


def test_after_the_last_year_there_is_nothing() -> None:
    assert next_run(cron("0 0 1 1 *"), 0, ms(datetime(9999, 12, 31, tzinfo=UTC))) == 0


def test_every_is_anchored() -> None:
    """It neither drifts nor bunches, however late it is looked at; its creation is no run."""
    assert next_run(every(10), 3_000, 3_000) == 13_000
    assert next_run(every(10), 3_000, 22_999) == 23_000
    assert next_run(every(10), 3_000, 23_000) == 33_000
    assert next_run(every(10), 3_000, 0) == 13_000


def test_start_and_end_bound_runs() -> None:
    settings = every(10, start_ms=5_000, end_ms=25_000)
    assert list(coming_runs(settings, 5_000, next_run(settings, 5_000, 0))) == [
        5_000,
        15_000,
        25_000,
    ]
    settings = cron("* * * * *", start_ms=2 * MINUTE, end_ms=3 * MINUTE)
    assert times(settings, 0, DAY) == [2 * MINUTE, 3 * MINUTE]


def test_first_run_may_be_at_once() -> None:
    settings = ScheduleSettings("q", every_ms=10_000, immediately=True)
    assert first_run(settings, 7_000, 7_000) == 7_000
    assert first_run(every(10), 7_000, 7_000) == 17_000
    late = ScheduleSettings("q", every_ms=10_000, immediately=True, start_ms=9_000)
    assert first_run(late, 9_000, 7_000) == 9_000
    over = ScheduleSettings("q", every_ms=10_000, immediately=True, end_ms=5_000)
    assert first_run(over, 7_000, 7_000) == 0


def schedule_of(settings: ScheduleSettings, anchor_ms: int, next_ms: int) -> Schedule:
    schedule = Schedule("s", 1, settings)
    schedule.anchor_ms, schedule.next_ms = anchor_ms, next_ms
    return schedule


def test_due_runs_end_with_the_next_one() -> None:
    schedule = schedule_of(every(10), 0, 10_000)
    assert due_runs(schedule, 9_999) == ((), 0, 10_000)
    assert due_runs(schedule, 30_000) == ((10_000, 20_000, 30_000), 0, 40_000)


@pytest.mark.parametrize("jitter_ms", [0, 90_000])
@pytest.mark.parametrize(
    "settings", [every(60), cron("* * * * *"), cron("* * * * *", "Europe/Berlin")]
)
def test_of_many_due_runs_the_last_are_listed(settings: ScheduleSettings, jitter_ms: int) -> None:
    """A year of minutes is not gone through one by one."""
    settings = ScheduleSettings(
        "q",
        cron=settings.cron,
        every_ms=settings.every_ms,
        time_zone=settings.time_zone,
        jitter_ms=jitter_ms,
    )
    schedule = schedule_of(settings, 0, MINUTE)
    now_ms = 365 * DAY + 30_000
    runs = due_runs(schedule, now_ms)
    assert len(runs.times_ms) == LISTED_MAX
    assert list(runs.times_ms) == sorted(set(runs.times_ms))
    assert schedule.starts_ms(runs.next_ms) > now_ms >= schedule.starts_ms(runs.times_ms[-1])
    assert {b - a for a, b in zip(runs.times_ms, runs.times_ms[1:], strict=False)} == {MINUTE}
    if settings.every_ms:
        assert runs.dropped == runs.times_ms[0] // MINUTE - 1
    else:
        assert runs.dropped >= STEPS_MAX


def test_end_bounds_many_due_runs() -> None:
    settings = every(60, end_ms=1_000 * MINUTE)
    runs = due_runs(schedule_of(settings, 0, MINUTE), 365 * DAY)
    assert (runs.times_ms[-1], runs.dropped, runs.next_ms) == (1_000 * MINUTE, 899, 0)


@given(st.integers(1, 400), st.integers(0, 100), st.integers(0, 5_000), st.integers(0, 20_000))
def test_due_runs_are_all_that_have_come(
    step: int, anchor: int, passed: int, jitter_ms: int
) -> None:
    """However many steps are skipped, nothing is lost, and nothing comes twice."""
    settings = ScheduleSettings("q", every_ms=step * 1_000, jitter_ms=jitter_ms)
    anchor_ms, now_ms = anchor * 1_000, (anchor + passed) * 1_000
    schedule = schedule_of(settings, anchor_ms, anchor_ms + step * 1_000)
    expected = []
    run_ms = schedule.next_ms
    while schedule.starts_ms(run_ms) <= now_ms:
        expected.append(run_ms)
        run_ms += step * 1_000
    runs = due_runs(schedule, now_ms)
    assert list(runs.times_ms) == expected[-LISTED_MAX:]
    assert (runs.dropped, runs.next_ms) == (max(len(expected) - LISTED_MAX, 0), run_ms)

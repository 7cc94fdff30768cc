"""Times as people type and read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobline._times import parse_moment, parse_span
from jobline.cli.durations import show_ago, show_span

NOW = datetime(2026, 1, 31, 18, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("1.5", 1.5),
        ("250ms", 0.25),
        ("90s", 90),
        ("5m", 300),
        ("5min", 300),
        ("1h30m", 5_400),
        ("1h 30m", 5_400),
        ("2D", 172_800),
        ("1w", 604_800),
    ],
)
def test_span_is_read(text, seconds):
    assert parse_span(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "5 apples", "-3s", "1h30", "h"])
def test_what_is_no_span_is_refused_with_examples(text):
    with pytest.raises(ValueError, match="write 90s, 5m"):
        parse_span(text)


def test_moment_with_a_zone_is_that_moment():
    assert parse_moment("2026-01-31T19:00:00+01:00") == NOW


def test_moment_without_a_zone_is_local():
    assert parse_moment("2026-01-31T18:00").tzinfo is UTC


def test_what_is_no_moment_is_refused_with_examples():
    with pytest.raises(ValueError, match="2026-01-31T18:00"):
        parse_moment("tomorrow")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (0.00000236, "2.4 µs"),
        (0.00125, "1.2 ms"),
        (0.0123, "12 ms"),
        (0.9996, "1 s"),
        (3.4, "3.4 s"),
        (59.7, "1 min"),
        (119, "1 min 59 s"),
        (308, "5 min 8 s"),
        (3_599.8, "1 h"),
        (5_400, "1 h 30 min"),
        (86_400 * 3, "3 d"),
        (86_399, "1 d"),
        (-150, "-2 min 30 s"),
    ],
)
def test_span_is_shown_as_people_say_it(seconds, shown):
    """Trial D10: no "0.00236 ms", no "5.13 min"."""
    assert show_span(seconds) == shown


@pytest.mark.parametrize(
    ("passed", "shown"),
    [
        (timedelta(seconds=308), "5 min ago"),
        (timedelta(hours=47), "1 d ago"),
        (timedelta(milliseconds=2), "now"),
        (-timedelta(seconds=9), "in 9 s"),
    ],
)
def test_past_and_future_are_told_in_one_unit(passed, shown):
    """Trial D10: an age is a whole number of one unit."""
    assert show_ago(NOW - passed, NOW) == shown


def test_no_moment_is_nothing():
    assert show_ago(None, NOW) == ""

"""Times as people type and read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobline.cli.spans import parse_moment, parse_span, show_ago, show_span

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
    [(0.00125, "1.25 ms"), (3.4, "3.4 s"), (119, "119 s"), (150, "2.5 min"), (86_400 * 3, "3 d")],
)
def test_span_is_shown_as_short_as_honest(seconds, shown):
    assert show_span(seconds) == shown


def test_past_future_and_nothing_are_told_apart():
    assert show_ago(NOW - timedelta(minutes=5), NOW) == "5 min ago"
    assert show_ago(NOW + timedelta(seconds=9), NOW) == "in 9 s"
    assert show_ago(NOW, NOW) == "now"
    assert show_ago(None, NOW) == ""

"""The last hour of a queue, as bars."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from jobline._queue_history import QueueMinute
from jobline.cli import last_hour

NOW = datetime(2026, 1, 2, 12, 0, 30, tzinfo=UTC)


def minute(ago: int, pushed: int = 0, waited: float | None = None) -> QueueMinute:
    """The minute that began this many minutes before the one that goes on."""
    span = None if waited is None else timedelta(seconds=waited)
    return QueueMinute(
        start_time=NOW.replace(second=0) - timedelta(minutes=ago),
        pushed=pushed,
        completed=0,
        failed=0,
        dead=0,
        waited_p50=span,
        waited_p95=span,
    )


def shown(*minutes: QueueMinute, width: int = 120) -> list[str]:
    screen = io.StringIO()
    found = last_hour.rows(minutes, NOW)
    Console(width=width, file=screen).print(last_hour.view(found, width))
    return screen.getvalue().splitlines()


def test_each_minute_is_a_bar() -> None:
    """Held against the most of the hour; a minute in which nothing happened is the lowest."""
    pushed = last_hour.rows([minute(60, 8), minute(2, 1), minute(1, 4)], NOW)[0]
    assert pushed.bars(60) == "█" + "▁" * 57 + "▂▅"
    assert (pushed.latest(), pushed.most(), pushed.total()) == ("4", "8", "13")


def test_little_is_more_than_nothing() -> None:
    pushed = last_hour.rows([minute(2, 1_000_000), minute(1, 1)], NOW)[0]
    assert pushed.bars(2) == "█▂"


def test_minutes_without_a_wait_are_empty() -> None:
    """Nothing was handed out, which is not a wait of nothing."""
    *_, waited = last_hour.rows([minute(3, 1, 0.0), minute(2, 1, 1.5), minute(1, 1)], NOW)
    assert waited.bars(4) == " ▁█ "
    assert (waited.latest(), waited.most(), waited.total()) == ("1.5 s", "1.5 s", "")


@pytest.mark.parametrize("ago", [0, 61, 5_000])
def test_other_minutes_are_not_of_the_hour(ago: int) -> None:
    assert last_hour.rows([minute(ago, 1)], NOW) == []


def test_nobody_waited() -> None:
    *_, waited = last_hour.rows([minute(1, 1)], NOW)
    assert (waited.bars(2), waited.latest(), waited.most()) == ("  ", "", "")


@pytest.mark.parametrize(("width", "bars"), [(120, 60), (80, 32), (60, 12), (50, 0)])
def test_a_narrow_terminal_has_fewer_bars(width: int, bars: int) -> None:
    """Never a broken line, and the numbers stay."""
    lines = shown(minute(1, 1_234_567, 90.0), width=width)
    assert len(lines) == 7
    assert all(len(line) <= width for line in lines)
    assert lines[1].count("▁") == max(bars - 1, 0)
    assert "1,234,567" in lines[1]

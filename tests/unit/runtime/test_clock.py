"""The clocks, and time that the process stood still."""

from __future__ import annotations

import time

import pytest

from jobline_server.runtime.clock import STOOD_STILL_MS, ManualClock, SystemClock


@pytest.fixture
def monotonic(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The machine's monotonic clock in seconds, set by hand."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "monotonic_ns", lambda: round(now[0] * 1e9))
    return now


def test_time_that_the_process_stood_still_does_not_count(monotonic: list[float]) -> None:
    """A process that was stopped for a minute finds its leases as they were."""
    clock = SystemClock()
    before = clock.now().mono_ms
    monotonic[0] += 60.25
    late_ms = clock.beat(250)
    assert late_ms == pytest.approx(60_000)
    assert clock.now().mono_ms - before == 250


def test_a_beat_that_is_late_by_load_counts(monotonic: list[float]) -> None:
    """A busy loop is no stopped process."""
    clock = SystemClock()
    before = clock.now().mono_ms
    monotonic[0] += (250 + STOOD_STILL_MS) / 1_000
    assert clock.beat(250) == pytest.approx(STOOD_STILL_MS)
    assert clock.now().mono_ms - before == 250 + STOOD_STILL_MS


def test_an_early_beat_is_not_late(monotonic: list[float]) -> None:
    """Something was due before the pause was over."""
    clock = SystemClock()
    monotonic[0] += 0.1
    assert clock.beat(250) == 0.0


def test_a_manual_clock_moves_only_by_hand() -> None:
    """Both clocks together, or the wall clock alone."""
    clock = ManualClock(wall_ms=1_000, mono_ms=50)
    clock.advance(10)
    clock.wall_ms += 3_600_000
    now = clock.now()
    assert (now.wall_ms, now.mono_ms) == (3_601_010, 60)
    assert clock.beat(250) == 0.0

"""A host gets a few deliveries at once, and is left alone for a time when it is down."""

from __future__ import annotations

import pytest

from jobline_server.background import webhook_hosts
from jobline_server.background.webhook_hosts import (
    BUSY_MS,
    FAILURES_MAX,
    OPEN_MS,
    OPEN_MS_MAX,
    SENDING_MAX,
    Hosts,
)


def fail(hosts: Hosts, times: int, now_ms: int = 0) -> None:
    for _ in range(times):
        assert hosts.begin("h", now_ms) == 0
        hosts.end("h", now_ms, is_down=True)


def test_few_deliveries_are_under_way_at_once() -> None:
    hosts = Hosts()
    assert [hosts.begin("h", 5) for _ in range(SENDING_MAX + 1)] == [0] * SENDING_MAX + [
        5 + BUSY_MS
    ]
    assert hosts.begin("other", 5) == 0
    hosts.end("h", 5, is_down=False)
    assert hosts.begin("h", 5) == 0


def test_breaker_opens_and_lets_one_try() -> None:
    hosts = Hosts()
    fail(hosts, FAILURES_MAX)
    assert hosts.begin("h", OPEN_MS - 1) == OPEN_MS
    assert hosts.begin("h", OPEN_MS) == 0
    assert hosts.begin("h", OPEN_MS) == OPEN_MS + BUSY_MS
    hosts.end("h", OPEN_MS, is_down=True)
    assert hosts.begin("h", OPEN_MS) == 3 * OPEN_MS
    assert hosts.begin("h", 3 * OPEN_MS) == 0
    hosts.end("h", 3 * OPEN_MS, is_down=False)
    assert hosts.begin("h", 3 * OPEN_MS) == 0
    assert hosts.begin("h", 3 * OPEN_MS) == 0


def test_breaker_is_open_for_half_an_hour_at_most() -> None:
    hosts, now_ms = Hosts(), 0
    for _ in range(40):
        now_ms = hosts.begin("h", now_ms) or now_ms
        hosts.begin("h", now_ms)
        hosts.end("h", now_ms, is_down=True)
    again_ms = hosts.begin("h", now_ms)
    assert 0 < again_ms - now_ms <= OPEN_MS_MAX


def test_clock_that_was_set_back_closes_the_breaker() -> None:
    hosts = Hosts()
    fail(hosts, FAILURES_MAX, 10 * OPEN_MS_MAX)
    assert hosts.begin("h", 10 * OPEN_MS_MAX)
    assert hosts.begin("h", 0) == 0


def test_hosts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_hosts, "HOSTS_MAX", 2)
    hosts = Hosts()
    for name in ("a", "b", "c", "d"):
        hosts.begin(name, 0)
        if name != "a":
            hosts.end(name, 0, is_down=True)
    assert len(hosts._hosts) == 2
    hosts.end("a", 0, is_down=False)
